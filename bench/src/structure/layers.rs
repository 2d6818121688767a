// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layers inside the image: a module of the hypervisor imports from its own layer and from lower ones.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::files::rust_files;

/// Folders of the hypervisor's sources, the lowest first. `main.rs` is above them.
pub const LAYERS: [&str; 5] = ["arch", "kernel", "guests", "lifecycle", "control"];
/// The hypervisor's sources.
pub const SOURCE: &str = "hypervisor/src";

/// Returns the imports from a higher layer, each as `file: crate::name`.
pub fn upward_imports(root: &Path) -> Result<Vec<String>> {
    let source = root.join(SOURCE);
    let mut upward = Vec::new();
    for folder in LAYERS {
        let files = rust_files(&source.join(folder)).with_context(|| format!("layer {folder}"))?;
        for file in files.iter().map(|file| Path::new(folder).join(file)) {
            let names = imports(&fs::read_to_string(source.join(&file))?, depth(&file));
            let above = names.into_iter().filter(|name| layer(name) > layer(folder));
            upward.extend(above.map(|name| format!("{}: crate::{name}", file.display())));
        }
    }
    Ok(upward)
}

/// The layer of a module in the crate's root; above all layers where it is in none.
fn layer(module: &str) -> usize {
    LAYERS.iter().position(|layer| *layer == module).unwrap_or(LAYERS.len())
}

/// Returns how many modules lie between the crate's root and what the file holds, that one included.
fn depth(file: &Path) -> usize {
    let is_named_by_folder = file.ends_with("mod.rs") || file.ends_with("main.rs");
    file.components().count() - usize::from(is_named_by_folder)
}

/// Returns what a file names in the crate's root, by `crate::` or by as many `super::` as lead there.
fn imports(text: &str, depth: usize) -> Vec<String> {
    let code: String = text.lines().filter_map(|line| line.split("//").next()).flat_map(|line| [line, "\n"]).collect();
    let is_in_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for root in ["crate::".to_owned(), "super::".repeat(depth)].iter().filter(|root| !root.is_empty()) {
        for (at, _) in code.match_indices(root.as_str()) {
            // Not at the end of a longer name.
            if !code[..at].ends_with(is_in_name) {
                found.extend(first_names(&code[at + root.len()..]));
            }
        }
    }
    found
}

/// The first names of the paths that follow `crate::`: one, or those of a group in braces.
fn first_names(rest: &str) -> Vec<String> {
    let Some(group) = rest.strip_prefix('{') else { return vec![first_name(rest)] };
    let mut depth = 0;
    let mut paths = vec![String::new()];
    for c in group.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => paths.push(String::new()),
            c => paths.last_mut().expect("there is one").push(c),
        }
        depth += i32::from(c == '{') - i32::from(c == '}');
    }
    paths.iter().map(|path| first_name(path)).filter(|name| !name.is_empty()).collect()
}

fn first_name(path: &str) -> String {
    path.trim_start().chars().take_while(|c| c.is_alphanumeric() || "_*".contains(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upward_import_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        for layer in LAYERS {
            fs::create_dir_all(folder.path().join(SOURCE).join(layer)).expect("made");
        }
        let write = |file: &str, text: &str| fs::write(folder.path().join(SOURCE).join(file), text).expect("written");
        write("arch/cpu.rs", "use crate::arch::apic;\nuse crate::guests::Guest;");
        write("guests/mod.rs", "use crate::{arch, kernel::memory};");
        assert_eq!(upward_imports(folder.path()).expect("read"), ["arch/cpu.rs: crate::guests"]);
    }

    #[test]
    fn imports_are_found_however_they_are_written() {
        let names = |text: &str| imports(text, 2).join(" ");
        assert_eq!(names("use crate::end;"), "end");
        assert_eq!(names("use crate::Source;\nlet x = crate::update::takes();"), "Source update");
        assert_eq!(names("use crate::{arch::{cpu, apic}, end,\n    strays::{self}};"), "arch end strays");
        assert_eq!(names("use crate::*;"), "*");
        assert_eq!(names("use super::super::virt::Virt;"), "virt");
        assert_eq!(names("use super::super::{ledger, main as entry};"), "ledger main");
        assert_eq!(
            names("use super::cpu; // crate::end\n/// [`crate::end`]\nuse mycrate::x; pub(crate) fn f() {}"),
            ""
        );
        assert_eq!((depth(Path::new("arch/svm/mod.rs")), depth(Path::new("arch/svm/page.rs"))), (2, 3));
    }
}
