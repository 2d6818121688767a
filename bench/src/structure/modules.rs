// SPDX-License-Identifier: MIT OR Apache-2.0
//! Imports between the modules of a crate, and their cycles. A module is a file. A re-export is an import by the file
//! that has it; a name that is imported through it is imported from the file that defines it.

mod cycles;
mod resolve;
mod scan;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

pub use cycles::Cycle;

use super::files::rust_files;
use resolve::{Crate, Sources};

/// The folder of the image's package.
pub const IMAGE: &str = "hypervisor";
const CRATES: &str = "crates";

/// Returns the folders of every crate and of the image.
pub fn crates(root: &Path) -> Result<Vec<String>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(root.join(CRATES)).context("the folder of the crates cannot be read")? {
        folders.push(format!("{CRATES}/{}", entry?.file_name().to_string_lossy()));
    }
    folders.push(IMAGE.to_owned());
    folders.sort();
    Ok(folders)
}

/// Returns the cycles of imports in a package: through each import that is part of one, the shortest.
pub fn cycles_of(package: &Path) -> Result<BTreeSet<Cycle>> {
    let folder = package.join("src");
    let mut sources = Sources::new();
    for file in rust_files(&folder)? {
        let text = fs::read_to_string(folder.join(&file))?;
        sources.insert(file.to_string_lossy().into_owned(), text);
    }
    let read = Crate::read(&sources).with_context(|| format!("{} cannot be read", folder.display()))?;
    Ok(cycles::cycles(&read.imports()))
}
