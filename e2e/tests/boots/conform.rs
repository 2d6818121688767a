// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test of docs/conformance.md's statements "as on hardware": the same small guest under Baton and on the bare machine,
//! line by line.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use e2e::place::{Emulator, built};
use e2e::recipe::{Recipe, tiny};
use lab::bound::bound;
use wire::{EventKind, VmState};

use super::Rule;

pub const RULES: &[Rule] =
    &[("a_guest_finds_a_cpu_and_an_apic_as_the_bare_machine_has_them", as_the_bare_machine_has_them)];

const GUEST: &str = "conform";
/// Code that a test guest writes to its debug-exit port on success, and QEMU's exit status for it.
const RIGHT: u32 = 0x10;
const RIGHT_STATUS: i32 = 33;
const BARE_LIMIT: Duration = Duration::from_secs(60);
/// The lowest number of checks.
const CHECKS: usize = 20;

fn as_the_bare_machine_has_them() -> Result<()> {
    let bare = on_the_bare_machine()?;
    ensure!(bare.len() >= CHECKS && bare.iter().all(|line| line.ends_with(": ok")), "on the bare machine: {bare:#?}");
    let mut host = Recipe::new().guest(tiny(GUEST, "conform", "")?).start()?;
    host.guest_says(GUEST, "disabled-apic-is-hidden")?;
    host.state(GUEST, VmState::Stopped)?;
    let console = host.seen.console(GUEST);
    let guest = lines(&console);
    ensure!(guest == bare, "under Baton: {guest:#?}\non the bare machine: {bare:#?}");
    host.event(&EventKind::VmDebugExit { name: GUEST.into(), code: RIGHT })?;
    host.powers_off()
}

fn lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| line.starts_with("conform: ")).map(|line| line.trim_end().to_owned()).collect()
}

/// The lines of the guest as the only program of a machine.
fn on_the_bare_machine() -> Result<Vec<String>> {
    let folder = e2e::recipe::folder()?;
    let console = folder.path().join("console");
    let mut machine = Command::new(Emulator::System.program()?);
    machine
        .args(["-nodefaults", "-display", "none", "-no-reboot", "-cpu", "max,-cx16", "-m", "64M", "-kernel"])
        .arg(built("guests/conform.elf")?)
        .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-serial"])
        .arg(format!("file:{}", console.display()));
    let mut machine = bound(machine).stdin(Stdio::null()).spawn()?;
    let end = Instant::now() + BARE_LIMIT;
    let status = loop {
        match machine.try_wait()? {
            Some(status) => break status,
            None if Instant::now() < end => thread::sleep(Duration::from_millis(20)),
            None => {
                machine.kill()?;
                machine.wait()?;
                bail!("the bare machine did not end within {BARE_LIMIT:?}: {:?}", fs::read_to_string(&console));
            }
        }
    };
    let found = lines(&String::from_utf8_lossy(&fs::read(&console)?));
    ensure!(status.code() == Some(RIGHT_STATUS), "the bare machine ended with {status}: {found:#?}");
    Ok(found)
}
