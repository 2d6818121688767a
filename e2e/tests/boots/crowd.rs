// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests of several CPUs that send each other every kind of interrupt, and take each other offline and online.

use anyhow::{Result, ensure};
use baton::config::Guest;
use e2e::recipe::{Recipe, tiny};
use wire::{EventKind, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("interrupts_between_cpus_are_the_architectures", interrupts_between_cpus_are_the_architectures),
    ("cpus_that_share_one_are_no_different", cpus_that_share_one_are_no_different),
];

const GOOD: &str = "good";
/// Code that a test guest writes to its debug-exit port on success.
const RIGHT: u32 = 0x10;

fn crowd(name: &str, cmdline: &str) -> Result<Guest> {
    Ok(Guest { vcpus: 4, ..tiny(name, "crowd", &format!("cpus=4 {cmdline}"))? })
}

/// One with its local APICs' registers as MSRs, one with them in memory, and beside them one that does not notice.
fn interrupts_between_cpus_are_the_architectures() -> Result<()> {
    let guests = [("msrs", ""), ("memory", "apic=memory")];
    let mut recipe = Recipe::new().cpus(4).beating(GOOD)?;
    for (name, cmdline) in guests {
        recipe = recipe.guest(crowd(name, cmdline)?);
    }
    let mut host = recipe.start()?;
    for (name, _) in guests {
        ends_well(&mut host, name)?;
    }
    host.beats(GOOD, 5)?;
    host.seen.no_heartbeat_is_missing(GOOD)?;
    ensure!(host.vm(GOOD)?.state == VmState::Running, "{}", host.seen);
    host.powers_off()
}

fn cpus_that_share_one_are_no_different() -> Result<()> {
    let mut host = Recipe::new().cpus(1).guest(crowd("crowd", "")?).start()?;
    ends_well(&mut host, "crowd")?;
    host.powers_off()
}

fn ends_well(host: &mut e2e::host::Host, name: &str) -> Result<()> {
    host.state(name, VmState::Stopped)?;
    let console = host.seen.console(name);
    ensure!(!console.contains("WRONG"), "{name}:\n{console}\n{}", host.seen);
    host.event(&EventKind::VmDebugExit { name: name.to_owned(), code: RIGHT })
}
