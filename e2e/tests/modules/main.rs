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

/// The sources of every crate and of the image, by the folder's path.
fn crates() -> Vec<(String, Sources)> {
    let root = workspace().expect("the tests run in the workspace");
    let entries = fs::read_dir(root.join("crates")).expect("crates").map(|entry| entry.expect("an entry").file_name());
    let folders = entries.map(|name| format!("crates/{}", name.to_string_lossy())).chain(["hypervisor".to_owned()]);
    let with_sources = |folder: String| {
        let mut sources = Sources::new();
        read(&root.join(&folder).join("src"), "", &mut sources);
        (folder, sources)
    };
    folders.map(with_sources).collect()
}

#[test]
fn no_modules_of_a_crate_import_each_other() {
    let mut found = Vec::new();
    for (name, sources) in crates() {
        let cycles = cycles(&Crate::read(&sources).imports());
        found.extend(cycles.iter().map(|cycle| format!("{name}/src: {cycle}")));
    }
    assert!(found.is_empty(), "{} cycles of imports:\n{}", found.len(), found.join("\n"));
}
