// SPDX-License-Identifier: MIT OR Apache-2.0
//! Source files, and those that are too long to be read at once.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The length beyond which a file is parted.
const MOST_LINES: usize = 300;
/// Files that are not read from top to bottom, with the reason.
const TABLES: [(&str, &str); 2] = [
    ("crates/vm/src/cpu/cpuid/features.rs", "the bits of CPUID, a row for each"),
    ("crates/wire/src/request.rs", "the requests of the protocol, a variant for each"),
];

/// Returns the Rust files in a folder, by their paths in it: no build output, nothing hidden.
pub fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("{} cannot be read", next.display()))? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let is_left_out = name == "target" || name.to_string_lossy().starts_with('.');
            match path.is_dir() {
                true if is_left_out => {}
                true => folders.push(path),
                false if path.extension().is_some_and(|kind| kind == "rs") => {
                    files.push(path.strip_prefix(folder)?.to_owned());
                }
                false => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the files below `root` that have more than 300 lines, tests and tables excepted, with their lines.
pub fn long_files(root: &Path) -> Result<Vec<(PathBuf, usize)>> {
    let mut long = Vec::new();
    for file in rust_files(root)?.into_iter().filter(|file| !is_test(file) && !is_table(file)) {
        let lines = fs::read_to_string(root.join(&file))?.lines().count();
        if lines > MOST_LINES {
            long.push((file, lines));
        }
    }
    Ok(long)
}

/// Returns true if a file holds only tests: it is below a folder `tests`, or named after them.
fn is_test(file: &Path) -> bool {
    let is_in_tests = file.components().any(|part| part.as_os_str() == "tests");
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    is_in_tests || name == "tests.rs" || name.ends_with("_tests.rs")
}

fn is_table(file: &Path) -> bool {
    TABLES.iter().any(|(table, _)| file == Path::new(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_measured() {
        let folder = tempfile::tempdir().expect("a folder");
        let (most, long) = ("//\n".repeat(MOST_LINES), "//\n".repeat(MOST_LINES + 1));
        let files = [
            ("src/long.rs", &long),
            ("src/most.rs", &most),
            ("src/tests.rs", &long),
            ("src/long_tests.rs", &long),
            ("tests/all/long.rs", &long),
            ("target/long.rs", &long),
            (".git/long.rs", &long),
            ("long.md", &long),
            (TABLES[0].0, &long),
        ];
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        let found = long_files(folder.path()).expect("read");
        assert_eq!(found, [(PathBuf::from("src/long.rs"), MOST_LINES + 1)]);
    }

    #[test]
    fn every_table_is_there() {
        let root = baton::paths::workspace().expect("the sources");
        TABLES.iter().for_each(|(table, _)| assert!(root.join(table).is_file(), "{table} is gone"));
    }
}
