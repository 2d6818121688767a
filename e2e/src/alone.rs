// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test guest of ours as the only program of an emulated machine, without Baton.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use lab::bound::bound;

use crate::place::{Emulator, built};
use crate::recipe;

/// QEMU's exit status when a test guest reports success: its code 0x10, doubled, plus one.
const RIGHT_STATUS: i32 = 33;
const LIMIT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the guest `target/guests/<guest>.elf` on a machine with these further arguments; returns the lines of its
/// console that begin with its name.
///
/// # Errors
/// The guest reports a failure, or the machine does not end within a minute.
pub fn run(emulator: Emulator, guest: &str, cmdline: &str, arguments: &[&str]) -> Result<Vec<String>> {
    let folder = recipe::folder()?;
    let console = folder.path().join("console");
    let mut machine = Command::new(emulator.program()?);
    machine
        .args(["-nodefaults", "-display", "none", "-no-reboot", "-cpu", "max,-cx16", "-m", "64M", "-kernel"])
        .arg(built(&format!("guests/{guest}.elf"))?)
        .args(["-append", cmdline, "-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-serial"])
        .arg(format!("file:{}", console.display()))
        .args(arguments);
    let status = end_of(bound(machine).stdin(Stdio::null()).spawn()?, &console)?;
    let lines = lines_of(guest, &fs::read(&console)?);
    ensure!(status.code() == Some(RIGHT_STATUS), "the machine ended with {status}: {lines:#?}");
    Ok(lines)
}

fn end_of(mut machine: Child, console: &Path) -> Result<ExitStatus> {
    let end = Instant::now() + LIMIT;
    loop {
        match machine.try_wait().context("the machine's state is unknown")? {
            Some(status) => return Ok(status),
            None if Instant::now() < end => thread::sleep(POLL_INTERVAL),
            None => {
                machine.kill()?;
                machine.wait()?;
                bail!("the machine did not end within {LIMIT:?}: {:?}", fs::read_to_string(console));
            }
        }
    }
}

/// The lines of a console that begin with a guest's name.
pub fn lines_of(guest: &str, console: &[u8]) -> Vec<String> {
    let (text, start) = (String::from_utf8_lossy(console), format!("{guest}: "));
    text.lines().filter(|line| line.starts_with(&start)).map(|line| line.trim_end().to_owned()).collect()
}
