// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performance counters in guests.

use anyhow::{Result, ensure};
use baton::config::Guest;
use bundle::{Pmu, PmuEvent};
use e2e::recipe::{Recipe, tiny};
use wire::{EventKind, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("both_vendors_counters_answer_as_their_manuals_say", || answer("")),
    ("and_so_they_do_where_each_change_makes_a_new_event", || answer("vpmu=reprogram")),
    ("a_guest_has_no_counters_unless_it_is_given_some", a_guest_has_no_counters_unless_it_is_given_some),
    ("what_a_guest_may_not_count_stands_still", what_a_guest_may_not_count_stands_still),
];

/// What a guest of ours writes to its debug-exit port when all was right.
const RIGHT: u32 = 0x10;

fn counting(name: &str, pmu: Pmu, cmdline: &str) -> Result<Guest> {
    Ok(Guest { pmu, ..tiny(name, "counters", cmdline)? })
}

/// Intel's and AMD's registers at once, two guests of each kind on one processor; then they end with a counter on.
fn answer(options: &str) -> Result<()> {
    let mut recipe = Recipe::new().options(options);
    let guests = [("intel", Pmu::Intel), ("amd", Pmu::Amd), ("intel-too", Pmu::Intel), ("amd-too", Pmu::Amd)];
    for (name, pmu) in guests {
        recipe = recipe.guest(counting(name, pmu, "do=all")?);
    }
    let mut host = recipe.start()?;
    for (name, _) in guests {
        host.guest_says(name, "counters: writes: ")?;
        host.state(name, VmState::Stopped)?;
        let console = host.seen.console(name);
        let wrong: Vec<&str> = console.lines().filter(|line| line.contains("WRONG")).collect();
        ensure!(wrong.is_empty(), "{name}: {wrong:#?}\n{}", host.seen);
        host.event(&EventKind::VmDebugExit { name: name.to_owned(), code: RIGHT })?;
    }
    host.powers_off()
}

fn a_guest_has_no_counters_unless_it_is_given_some() -> Result<()> {
    let mut host = Recipe::new().guest(counting("none", Pmu::Off, "do=none")?).start()?;
    host.state("none", VmState::Stopped)?;
    host.event(&EventKind::VmDebugExit { name: "none".to_owned(), code: RIGHT })?;
    host.powers_off()
}

/// The very test that cycles are counted fails where they are not among what may be.
fn what_a_guest_may_not_count_stands_still() -> Result<()> {
    let cycles = PmuEvent { select: 0x3c, unit: 0 };
    let instructions = PmuEvent { select: 0xc0, unit: 0 };
    let guest = |name, only: &[PmuEvent]| {
        anyhow::Ok(Guest { pmu_events: Some(only.to_vec()), ..counting(name, Pmu::Intel, "do=stopped")? })
    };
    let recipe = Recipe::new().guest(guest("may", &[instructions, cycles])?).guest(guest("may-not", &[instructions])?);
    let mut host = recipe.start()?;
    for (name, said) in [("may", "counters: stopped: ok"), ("may-not", "counters: stopped: WRONG: it has counted")] {
        host.guest_says(name, said)?;
    }
    host.powers_off()
}
