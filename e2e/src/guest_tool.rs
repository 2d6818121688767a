// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tool in a guest: this program, which plays it there, its libraries, and a script that uses it.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use baton::size::Size;
use cpio::{NewcBuilder, write_cpio};
use tempfile::TempDir;

use crate::place::{Kernel, built};
use crate::recipe::program;
use crate::stock;
use crate::tool::PLAYS_TOOL;

/// Memory of such a guest: its files are in it.
const MEMORY: Size = Size::mebibytes(384);
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
/// Begins like every guest's of tests, and ends with the script.
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

/// A guest with these drivers and files, whose `/init` runs a shell script in which `baton` is the tool: the host that
/// it reaches is the one below the guest.
///
/// # Errors
/// Something that it is made of is not here.
pub fn guest(folder: &Path, name: &str, drivers: &[&str], script: &str, files: &[(&str, &Path)]) -> Result<Guest> {
    let mut guest = program(name, Kernel::Default.file()?);
    guest.memory = MEMORY;
    guest.initrd = Some(built("guests/initramfs.cpio")?);
    guest.cmdline = "console=ttyS0 loglevel=5".to_owned();
    guest.modules = vec![stock::archive(folder, Kernel::Default, drivers)?, archive(folder, script, files)?];
    Ok(guest)
}

fn archive(folder: &Path, script: &str, added: &[(&str, &Path)]) -> Result<PathBuf> {
    let tool = std::env::current_exe()?;
    let read = |path: &Path| fs::read(path).with_context(|| format!("{} cannot be read", path.display()));
    let mut files = vec![
        ("init".to_owned(), INIT.as_bytes().to_vec()),
        ("script".to_owned(), format!("export {PLAYS_TOOL}=1 BATON_CONNECT=vsock:2\n{script}").into_bytes()),
        ("bin/baton".to_owned(), stripped(&tool)?),
    ];
    for library in libraries(&tool)? {
        let content = read(&library)?;
        let name = library.file_name().unwrap_or_default().to_string_lossy();
        let folder = if name.starts_with("ld-linux") { "lib64" } else { "lib" };
        files.push((format!("{folder}/{name}"), content));
    }
    for (name, path) in added {
        files.push(((*name).to_owned(), read(path)?));
    }
    let folders = ["bin", "lib", "lib64"].map(|name| (NewcBuilder::new(name).mode(FOLDER), Cursor::new(&[][..])));
    let files = files.iter().map(|(name, content)| (NewcBuilder::new(name).mode(PROGRAM), Cursor::new(&content[..])));
    let path = folder.join("tool.cpio");
    let content = write_cpio(folders.into_iter().chain(files), Vec::new()).context("the archive cannot be written")?;
    fs::write(&path, content).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(path)
}

/// A program without what only debuggers read.
fn stripped(program: &Path) -> Result<Vec<u8>> {
    let folder = TempDir::new()?;
    let smaller = folder.path().join("program");
    let status = Command::new("objcopy").arg("--strip-all").arg(program).arg(&smaller).status();
    ensure!(status.context("objcopy cannot be run")?.success(), "objcopy failed on {}", program.display());
    Ok(fs::read(smaller)?)
}

/// The files of a program's libraries, and of the loader.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("ldd cannot be run")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(text.lines().filter_map(path).collect())
}
