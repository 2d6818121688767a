// SPDX-License-Identifier: MIT OR Apache-2.0
//! crash, the kernel's debugger for core files, with the symbols of the kernel that guests run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::place::{Kernel, built};

/// Returns whether set-up has fetched both (`scripts/setup.sh all`).
pub fn is_here() -> bool {
    program().is_ok() && symbols().is_ok()
}

fn program() -> Result<PathBuf> {
    built("crash/crash")
}

/// The debug file of the very build that is under `target/kernels/6.1`.
fn symbols() -> Result<PathBuf> {
    let image = fs::canonicalize(Kernel::V6_1.file()?)?;
    let name = image.file_name().and_then(|name| name.to_str()).context("a kernel has a name")?;
    built(&format!("crash/{}", name.replace("vmlinuz", "vmlinux")))
}

/// Returns what crash answers to `commands` about a core file of a Linux 6.1 guest.
pub fn ask(core: &Path, commands: &str) -> Result<String> {
    let script = core.with_extension("commands");
    fs::write(&script, format!("{commands}\nquit\n"))?;
    let mut crash = Command::new(program()?);
    crash.args(["-s", "-i"]).arg(&script).arg(symbols()?).arg(core);
    let output = crash.env("TERM", "dumb").output().context("crash cannot be run")?;
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    ensure!(output.status.success(), "crash failed on {}:\n{text}", core.display());
    Ok(text)
}
