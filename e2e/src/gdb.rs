// SPDX-License-Identifier: MIT OR Apache-2.0
//! gdb, which opens core files that we have written.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Returns whether this machine has it.
pub fn is_here() -> bool {
    Command::new("gdb").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Returns gdb's output for `commands` about a core file.
pub fn ask(core: &Path, commands: &[&str]) -> Result<String> {
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-core"]).arg(core);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    let output = gdb.output().context("gdb cannot be run")?;
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    ensure!(output.status.success(), "gdb failed on {}:\n{text}", core.display());
    Ok(text)
}
