// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests whose `/init` is a shell script, with or without the tool: this program, which plays it there.

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

/// The variable that makes the test program the service.
pub const PLAYS_SERVICE: &str = "BATON_E2E_PLAYS_SERVICE";

/// Memory of a guest with the tool: its files are in it.
const MEMORY: Size = Size::mebibytes(512);
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

/// A guest with these drivers and files, whose `/init` runs a shell script in which `baton` is the tool and
/// `baton_serve` the service: the host that the tool reaches is the one below the guest.
///
/// # Errors
/// Something that it is made of is not here.
pub fn guest(folder: &Path, name: &str, drivers: &[&str], script: &str, files: &[(&str, &Path)]) -> Result<Guest> {
    let mut guest = program(name, Kernel::Default.file()?);
    guest.memory = MEMORY;
    guest.initrd = Some(built("guests/initramfs.cpio")?);
    guest.cmdline = "console=ttyS0 loglevel=5 panic=1".to_owned();
    let tool = folder.join("tool.cpio");
    let script = format!(
        "export {PLAYS_TOOL}=1 BATON_CONNECT=vsock:2\n\
         baton_serve() {{ env -u {PLAYS_TOOL} {PLAYS_SERVICE}=1 /bin/baton \"$@\"; }}\n{script}"
    );
    let mut content = archive(&script, files)?;
    content.extend(tool_archive()?);
    fs::write(&tool, content).with_context(|| format!("{} cannot be written", tool.display()))?;
    guest.modules = vec![stock::archive(folder, Kernel::Default, drivers)?, tool];
    Ok(guest)
}

/// An archive of an `/init` that loads the drivers beside it and runs a shell script, and of these files.
///
/// # Errors
/// A file cannot be read.
pub fn archive(script: &str, files: &[(&str, &Path)]) -> Result<Vec<u8>> {
    let mut all = vec![("init".to_owned(), INIT.into()), ("script".to_owned(), script.as_bytes().to_vec())];
    for (name, path) in files {
        all.push(((*name).to_owned(), read(path)?));
    }
    pack(&[], all)
}

/// An archive of this program and its libraries.
fn tool_archive() -> Result<Vec<u8>> {
    let tool = std::env::current_exe()?;
    let mut files = vec![("bin/baton".to_owned(), stripped(&tool)?)];
    for library in libraries(&tool)? {
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
fn stripped(program: &Path) -> Result<Vec<u8>> {
    let folder = TempDir::new()?;
    let smaller = folder.path().join("program");
    let status = Command::new("objcopy").arg("--strip-all").arg(program).arg(&smaller).status();
    ensure!(status.context("objcopy cannot be run")?.success(), "objcopy failed on {}", program.display());
    read(&smaller)
}

/// The files of a program's libraries, and of the loader.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("ldd cannot be run")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(text.lines().filter_map(path).collect())
}
