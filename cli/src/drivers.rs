// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drivers of a stock Linux kernel, as more of a guest's initial file system.
//!
//! An archive has the modules that are asked for and all that they depend on, not compressed, and their order in
//! `modules.load`; the guest's `/init` loads them. A distribution's package has no `modules.dep` (`depmod` makes it
//! where the kernel is installed), so dependencies are read from the modules themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use cpio::{NewcBuilder, write_cpio};
use object::Endianness;
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _};

use crate::suggest::did_you_mean;

/// The file with the names of an archive's modules in the order in which they are loaded.
const LIST: &str = "modules.load";
/// The programs that decompress modules to their standard output, by suffix.
const DECOMPRESSORS: [(&str, &str); 3] = [("xz", "xz"), ("zst", "zstd"), ("gz", "gzip")];
const FOLDER: u32 = 0o040_755;
const REGULAR_FILE: u32 = 0o100_644;

/// The drivers that a kernel has.
#[derive(Debug)]
pub struct Drivers {
    folder: PathBuf,
    release: String,
    /// The files of its modules, by name.
    modules: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

/// A module that is to be loaded.
#[derive(Debug, PartialEq, Eq)]
struct Module {
    name: String,
    content: Vec<u8>,
}

impl Drivers {
    /// Reads which there are under `kernel`, where a kernel's package is unpacked (`target/kernels/6.1`).
    ///
    /// # Errors
    /// There are no modules, or those of several kernels.
    pub fn of(kernel: &Path) -> Result<Self> {
        let folder = kernel.join("lib/modules");
        let explain = || format!("the kernel's modules at {} cannot be read", folder.display());
        let found = fs::read_dir(&folder).with_context(explain)?.flatten().map(|entry| entry.path());
        let found: Vec<PathBuf> = found.collect();
        let [tree] = &found[..] else { bail!("{} has {} kernels' modules, not one", folder.display(), found.len()) };
        Self::of_release(tree)
    }

    /// Reads which there are in the folder of a release (`/lib/modules/6.1.0-57-amd64`).
    ///
    /// # Errors
    /// The folder cannot be read, or is none of modules.
    pub fn of_release(tree: &Path) -> Result<Self> {
        let explain = || format!("the kernel's modules at {} cannot be read", tree.display());
        let release = tree.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut modules = BTreeMap::new();
        collect(&tree.join("kernel"), &mut modules).with_context(explain)?;
        let built_in = fs::read_to_string(tree.join("modules.builtin")).with_context(explain)?;
        let built_in = built_in.lines().filter_map(|line| name_of(Path::new(line))).collect();
        Ok(Self { folder: tree.to_owned(), release, modules, built_in })
    }

    /// Returns the folder of the release.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns whether the kernel has a driver, built in or as a module.
    pub fn has(&self, name: &str) -> bool {
        let name = normal(name);
        self.built_in.contains(&name) || self.modules.contains_key(&name)
    }

    /// Returns an archive with these modules and all that they depend on; those that are built in need none.
    ///
    /// # Errors
    /// A module that the kernel does not have, or a file of one that cannot be read.
    pub fn archive(&self, names: &[&str]) -> Result<Vec<u8>> {
        let mut ordered = Vec::new();
        let mut visited = BTreeSet::new();
        for name in names {
            self.add(&normal(name), &mut visited, &mut ordered)?;
        }
        pack(&self.release, &ordered).context("the archive of modules cannot be written")
    }

    /// Adds a module behind those that it depends on.
    fn add(&self, name: &str, visited: &mut BTreeSet<String>, ordered: &mut Vec<Module>) -> Result<()> {
        if self.built_in.contains(name) || !visited.insert(name.to_owned()) {
            return Ok(());
        }
        let Some(path) = self.modules.get(name) else { bail!(self.missing(name)) };
        let content = read(path).with_context(|| format!("the module {} cannot be read", path.display()))?;
        let needed = dependencies(&content).with_context(|| format!("{} is no module", path.display()))?;
        for needed in needed {
            self.add(&needed, visited, ordered).with_context(|| format!("the module {name:?} depends on another"))?;
        }
        ordered.push(Module { name: name.to_owned(), content });
        Ok(())
    }

    fn missing(&self, name: &str) -> String {
        let known = self.modules.keys().chain(&self.built_in).map(String::as_str);
        let suggestion = match did_you_mean(name, known) {
            none if none.is_empty() => "; Debian's full kernels have more than its cloud kernels".to_owned(),
            found => found,
        };
        format!("Linux {} has no driver {name:?}, built in or as a module{suggestion}", self.release)
    }
}

/// Adds the modules in a folder and in those below it.
fn collect(folder: &Path, modules: &mut BTreeMap<String, PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), modules)?;
        } else if let Some(name) = name_of(&entry.path()) {
            modules.insert(name, entry.path());
        }
    }
    Ok(())
}

/// Returns the name of the module in a file such as `nvme-core.ko.xz`.
fn name_of(path: &Path) -> Option<String> {
    path.file_name()?.to_str()?.split_once(".ko").map(|(name, _)| normal(name))
}

/// As the kernel does, takes `-` and `_` as the same.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

/// Returns a module's content, decompressed.
fn read(path: &Path) -> Result<Vec<u8>> {
    let suffix = path.extension().unwrap_or_default().to_string_lossy();
    let Some((_, program)) = DECOMPRESSORS.iter().find(|(known, _)| *known == suffix) else {
        return Ok(fs::read(path)?);
    };
    let output = Command::new(program).args(["--decompress", "--stdout"]).arg(path).output();
    let output = output.with_context(|| format!("{program} cannot be started; install it"))?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(output.stdout)
}

/// Returns the modules that a module names in `depends=` of its section `.modinfo`.
fn dependencies(module: &[u8]) -> Result<Vec<String>> {
    let file = ElfFile64::<Endianness>::parse(module)?;
    let section = file.section_by_name(".modinfo").context("it has no section .modinfo")?;
    let words = section.data()?.split(|&byte| byte == 0);
    let list = words.into_iter().find_map(|word| word.strip_prefix(b"depends="));
    let list = String::from_utf8_lossy(list.context("its section .modinfo has no depends=")?).into_owned();
    Ok(list.split(',').filter(|name| !name.is_empty()).map(normal).collect())
}

fn pack(release: &str, modules: &[Module]) -> std::io::Result<Vec<u8>> {
    let tree = format!("lib/modules/{release}");
    let list: String = modules.iter().map(|module| format!("{}\n", module.name)).collect();
    let folders = ["lib", "lib/modules", &tree].map(|path| (NewcBuilder::new(path).mode(FOLDER), &[][..]));
    let files = modules.iter().map(|module| (format!("{tree}/{}.ko", module.name), &module.content[..]));
    let files = files.chain([(format!("{tree}/{LIST}"), list.as_bytes())]);
    let files = files.map(|(path, content)| (NewcBuilder::new(&path).mode(REGULAR_FILE), content));
    let entries = folders.into_iter().chain(files).map(|(entry, content)| (entry, Cursor::new(content)));
    write_cpio(entries, Vec::new())
}

#[cfg(test)]
mod tests;
