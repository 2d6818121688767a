// SPDX-License-Identifier: MIT OR Apache-2.0
//! No module of a crate imports one that imports it, directly or through others. A module is a file; a re-export is an
//! import by the file that has it, and what is imported through it counts for the file that defines it.

mod cycles;
mod resolve;
mod scan;
mod tests;

use std::fs;
use std::path::Path;

use baton::paths::workspace;

use cycles::cycles;
use resolve::{Crate, Sources};

fn read(folder: &Path, below: &str, sources: &mut Sources) {
    for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = format!("{below}{}", path.file_name().expect("a name").to_string_lossy());
        match path.is_dir() {
            true => read(&path, &format!("{name}/"), sources),
            false => drop(sources.insert(name, fs::read_to_string(&path).expect("text"))),
        }
    }
}

/// The sources of every crate, by its folder's name.
fn crates() -> Vec<(String, Sources)> {
    let folder = workspace().expect("the tests run in the workspace").join("crates");
    let folders = fs::read_dir(folder).expect("crates").map(|entry| entry.expect("an entry").path());
    let with_sources = |folder: &Path| {
        let mut sources = Sources::new();
        read(&folder.join("src"), "", &mut sources);
        (folder.file_name().expect("a name").to_string_lossy().into_owned(), sources)
    };
    folders.map(|folder| with_sources(&folder)).collect()
}

#[test]
fn no_modules_of_a_crate_import_each_other() {
    let mut found = Vec::new();
    for (name, sources) in crates() {
        let cycles = cycles(&Crate::read(&sources).imports());
        found.extend(cycles.iter().map(|cycle| format!("crates/{name}/src: {cycle}")));
    }
    assert!(found.is_empty(), "{} cycles of imports:\n{}", found.len(), found.join("\n"));
}
