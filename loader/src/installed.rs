// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel that is installed on a mounted file system.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use crate::entries::{self, EntryFile};
use crate::entry::{Entry, Environment};
use crate::grub;

/// Folders with boot files, from the root of a file system: its own, or, on a partition for it, the root.
const PLACES: [&str; 2] = ["boot", ""];
/// GRUB's own folders there.
const GRUB: [&str; 2] = ["grub", "grub2"];
/// The largest configuration that is read.
const MOST_BYTES: u64 = 4 << 20;
/// The most files of `loader/entries` that are read.
const MOST_ENTRIES: usize = 256;

/// A kernel with its initial RAM disk and its command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Installed {
    /// The name that the menu shows.
    pub title: String,
    /// Its file.
    pub kernel: PathBuf,
    /// The parts of its initial RAM disk, in their order.
    pub initrds: Vec<PathBuf>,
    /// Its command line.
    pub cmdline: String,
}

/// Returns the kernel that this file system's boot loader would start.
///
/// # Errors
/// There is no configuration of a boot loader, it offers no kernel, or a file that it names is not there.
pub fn find(root: &Path) -> Result<Installed> {
    for place in PLACES {
        let folder = root.join(place);
        let environment = environment(&folder);
        let files = entry_files(&folder.join("loader/entries"))?;
        if let Some(entry) = entries::default_entry(&files, &environment) {
            return installed(root, place, entry);
        }
        let mut menus = GRUB.into_iter().filter_map(|name| read(&folder.join(name).join("grub.cfg")).transpose());
        if let Some(text) = menus.next() {
            let entry = grub::default_entry(&text?, &environment).context("grub.cfg offers no Linux kernel")?;
            return installed(root, place, entry);
        }
    }
    bail!("it has neither grub.cfg nor loader/entries, at its root or in /boot")
}

/// GRUB's variables; none where there is no file of them.
fn environment(folder: &Path) -> Environment {
    let mut texts = GRUB.into_iter().filter_map(|name| read(&folder.join(name).join("grubenv")).ok().flatten());
    texts.next().map(|text| Environment::parse(&text)).unwrap_or_default()
}

fn entry_files(folder: &Path) -> Result<Vec<EntryFile>> {
    let Ok(found) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    for path in found.flatten().map(|entry| entry.path()).take(MOST_ENTRIES) {
        let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".conf")).map(str::to_owned);
        if let (Some(name), Some(text)) = (name, read(&path)?) {
            files.push(EntryFile { name, text });
        }
    }
    Ok(files)
}

/// Reads a configuration; `None` where there is none.
fn read(path: &Path) -> Result<Option<String>> {
    let Ok(about) = fs::metadata(path) else { return Ok(None) };
    ensure!(about.len() <= MOST_BYTES, "{} has {} bytes: more than {MOST_BYTES}", path.display(), about.len());
    let content = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(Some(String::from_utf8_lossy(&content).into_owned()))
}

fn installed(root: &Path, place: &str, entry: Entry) -> Result<Installed> {
    let kernel = file(root, place, &entry.kernel)?;
    let initrds = entry.initrds.iter().map(|path| file(root, place, path)).collect::<Result<_>>()?;
    Ok(Installed { title: entry.title, kernel, initrds, cmdline: entry.cmdline })
}

/// Returns the file at a path that a configuration names: from the file system's root, or, if it is not there, from the
/// folder that has the configuration.
fn file(root: &Path, place: &str, path: &str) -> Result<PathBuf> {
    let is_plain = |part: &Component<'_>| matches!(part, Component::Normal(_));
    let inside: PathBuf = Path::new(path).components().filter(is_plain).collect();
    let mut candidates = [root.join(&inside), root.join(place).join(&inside)].into_iter();
    candidates
        .find(|file| file.is_file())
        .with_context(|| format!("{path}, which its configuration names, is not there"))
}

#[cfg(test)]
#[path = "installed_tests.rs"]
mod tests;
