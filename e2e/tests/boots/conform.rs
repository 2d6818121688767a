// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test of docs/conformance.md's statements "as on hardware": the same small guest under Baton and on the bare machine,
//! line by line.

use anyhow::{Result, ensure};
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
/// The lowest number of checks.
const CHECKS: usize = 20;

fn as_the_bare_machine_has_them() -> Result<()> {
    let bare = alone::run(Emulator::System, GUEST, "", &[])?;
    ensure!(bare.len() >= CHECKS && bare.iter().all(|line| line.ends_with(": ok")), "on the bare machine: {bare:#?}");
    let mut host = Recipe::new().guest(tiny(GUEST, "conform", "")?).start()?;
    host.guest_prints(GUEST, "disabled-apic-is-hidden")?;
    host.state(GUEST, VmState::Stopped)?;
    let guest = alone::lines_of(GUEST, host.seen.console(GUEST).as_bytes());
    ensure!(guest == bare, "under Baton: {guest:#?}\non the bare machine: {bare:#?}");
    host.event(&EventKind::VmDebugExit { name: GUEST.into(), code: RIGHT })?;
    host.powers_off()
}
