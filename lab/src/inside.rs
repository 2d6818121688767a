// SPDX-License-Identifier: MIT OR Apache-2.0
//! Archives that give a guest of stock Linux a shell script as its `/init`, and a program of this machine.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use cpio::{NewcBuilder, write_cpio};

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
/// Loads the drivers that are beside it, and goes on with the script.
const INIT: &str = r#"#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs dev /dev
drivers=/lib/modules/$($b uname -r)
while read -r name; do $b insmod "$drivers/$name.ko"; done <"$drivers/modules.load"
export HOME=/root PATH=/bin TERM=dumb
. /script
echo "script: done"
while :; do $b sleep 1000; done
"#;

/// An archive of an `/init` that loads the drivers beside it ([`baton::drivers`]) and runs a shell script, and of these
/// files. Its busybox is that of `target/guests/initramfs.cpio`.
///
/// # Errors
/// A file cannot be read.
pub fn script(script: &str, files: &[(&str, &Path)]) -> Result<Vec<u8>> {
    let mut all = vec![("init".to_owned(), INIT.into()), ("script".to_owned(), script.as_bytes().to_vec())];
    for (name, path) in files {
        all.push(((*name).to_owned(), read(path)?));
    }
    pack(&[], all)
}

/// An archive of a program of this machine as `/bin/<name>`, without its symbols, and of its libraries. What is made on
/// the way is written to `folder`.
///
/// # Errors
/// A file cannot be read, or `objcopy` or `ldd` cannot be run.
pub fn program(name: &str, program: &Path, folder: &Path) -> Result<Vec<u8>> {
    let mut files = vec![(format!("bin/{name}"), stripped(program, &folder.join("stripped"))?)];
    for library in libraries(program)? {
        let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder = if name.starts_with("ld-linux") { "lib64" } else { "lib" };
        files.push((format!("{folder}/{name}"), read(&library)?));
    }
    pack(&["bin", "lib", "lib64"], files)
}

fn pack(folders: &[&str], files: Vec<(String, Vec<u8>)>) -> Result<Vec<u8>> {
    let folders = folders.iter().map(|name| (NewcBuilder::new(name).mode(FOLDER), Vec::new()));
    let files = files.into_iter().map(|(name, content)| (NewcBuilder::new(&name).mode(PROGRAM), content));
    let entries = folders.chain(files).map(|(entry, content)| (entry, Cursor::new(content)));
    write_cpio(entries, Vec::new()).context("an archive cannot be written")
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("{} cannot be read", path.display()))
}

/// A program without what only debuggers read.
fn stripped(program: &Path, smaller: &Path) -> Result<Vec<u8>> {
    let status = Command::new("objcopy").arg("--strip-all").args([program, smaller]).status();
    ensure!(status.context("objcopy cannot be run")?.success(), "objcopy failed on {}", program.display());
    read(smaller)
}

/// The files of a program's libraries, and of the loader.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("ldd cannot be run")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(text.lines().filter_map(path).collect())
}
