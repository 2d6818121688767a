// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test of docs/conformance.md's statements "as on hardware": the same small guest under Baton and on the bare machine,
//! line by line.

use anyhow::{Result, ensure};
use baton::config::Guest;
use e2e::alone;
use e2e::place::Emulator;
use e2e::recipe::{Recipe, tiny};
use wire::{EventKind, VmState};

use super::Rule;

pub const RULES: &[Rule] =
    &[("a_guest_finds_a_cpu_and_an_apic_as_the_bare_machine_has_them", as_the_bare_machine_has_them)];

const GUEST: &str = "conform";
/// Code that a test guest writes to its debug-exit port on success.
const RIGHT: u32 = 0x10;
/// The number of checks.
const CHECKS: usize = 33;
/// Checks of features that guests have, and QEMU may not: none has the deadline, and only QEMU 10 has x2APIC mode.
const ABSENT_ON_BARE: [&str; 2] = ["conform: tsc-deadline: absent", "conform: x2apic: absent"];

fn as_the_bare_machine_has_them() -> Result<()> {
    let bare = names_of(Emulator::System, &ABSENT_ON_BARE)?;
    if Emulator::Ten.is_here() {
        ensure!(names_of(Emulator::Ten, &ABSENT_ON_BARE[..1])? == bare, "the emulators' lines differ");
    }
    let mut host = Recipe::new().guest(Guest { vcpus: 2, ..tiny(GUEST, "conform", "")? }).start()?;
    host.guest_prints(GUEST, "disabled-apic-is-hidden")?;
    host.state(GUEST, VmState::Stopped)?;
    let guest = alone::lines_of(GUEST, host.seen.console(GUEST).as_bytes());
    let expected: Vec<String> = bare.iter().map(|name| format!("{name}: ok")).collect();
    ensure!(guest == expected, "under Baton: {guest:#?}\non the bare machine: {bare:#?}");
    host.event(&EventKind::VmDebugExit { name: GUEST.into(), code: RIGHT })?;
    host.powers_off()
}

/// The names of the checks that a bare machine of two CPUs passes, or may lack the feature of.
fn names_of(emulator: Emulator, absent: &[&str]) -> Result<Vec<String>> {
    let bare = alone::run(emulator, GUEST, "", &["-smp", "2"])?;
    let is_right = |line: &String| line.ends_with(": ok") || absent.contains(&line.as_str());
    ensure!(bare.len() == CHECKS && bare.iter().all(is_right), "on the bare machine: {bare:#?}");
    Ok(bare.iter().filter_map(|line| line.rsplit_once(": ")).map(|(name, _)| name.to_owned()).collect())
}
