// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts of one, two and more processors.

use anyhow::{Result, ensure};
use e2e::place::Emulator;
use e2e::recipe::Recipe;

use super::Rule;
use baton::config::Guest;
use e2e::place::Kernel;
use e2e::recipe::linux;

pub const RULES: &[Rule] = &[
    ("one_processor_is_enough", one_processor_is_enough),
    ("four_processors_run_four_guests", four_processors_run_four_guests),
    ("fewer_processors_are_used_where_that_is_wanted", fewer_processors_are_used_where_that_is_wanted),
    ("two_guests_of_four_processors_share_two", two_guests_of_four_processors_share_two),
    ("one_processor_runs_three_guests_in_turn", one_processor_runs_three_guests_in_turn),
    ("serial_bring_up_finds_every_processor", serial_bring_up_finds_every_processor),
    ("a_late_kick_finds_every_processor", a_late_kick_finds_every_processor),
    ("a_hundred_and_twenty_eight_processors_come_up", a_hundred_and_twenty_eight_processors_come_up),
    ("one_that_gives_no_sign_is_named_and_done_without", one_that_gives_no_sign_is_named_and_done_without),
    (
        "one_that_never_prepares_itself_is_named_and_done_without",
        one_that_never_prepares_itself_is_named_and_done_without,
    ),
    (
        "one_whose_clock_stays_unknown_is_named_and_done_without",
        one_whose_clock_stays_unknown_is_named_and_done_without,
    ),
    ("one_that_never_takes_work_is_named_and_done_without", one_that_never_takes_work_is_named_and_done_without),
    (
        "serially_one_that_stops_holds_up_the_others_for_a_while",
        serially_one_that_stops_holds_up_the_others_for_a_while,
    ),
];

/// Those that want QEMU 10.
pub const X2APIC_RULES: &[Rule] = &[
    ("four_processors_start_in_x2apic_mode", four_processors_start_in_x2apic_mode),
    ("a_hundred_and_twenty_eight_come_up_in_x2apic_mode", a_hundred_and_twenty_eight_come_up_in_x2apic_mode),
];

/// Boots with these processors, of which so many are to be used, with as many guests.
fn uses(recipe: Recipe, processors: u32) -> Result<()> {
    let names = ["a", "b", "c", "d"];
    let names = &names[..processors as usize];
    let recipe = names.iter().try_fold(recipe, |recipe, name| recipe.linux(name, "heartbeat:100"))?;
    let mut host = Recipe { memory: baton::size::Size::mebibytes(2048), ..recipe }.start()?;
    for name in names {
        host.greets(name)?;
    }
    for name in names {
        host.beats(name, 3)?;
    }
    let online = host.client()?.info()?.processors;
    ensure!(online == processors, "{online} processors are online:\n{}", host.seen);
    let mut used: Vec<u32> = host.client()?.vms()?.into_iter().flat_map(|vm| vm.processors).collect();
    used.sort_unstable();
    ensure!(used == (0..processors).collect::<Vec<_>>(), "{used:?}");
    host.powers_off()
}

fn one_processor_is_enough() -> Result<()> {
    uses(Recipe::new().cpus(1), 1)
}

fn four_processors_run_four_guests() -> Result<()> {
    uses(Recipe::new().cpus(4), 4)
}

fn four_processors_start_in_x2apic_mode() -> Result<()> {
    uses(Recipe::new().cpus(4).on(Emulator::Ten), 4)
}

fn fewer_processors_are_used_where_that_is_wanted() -> Result<()> {
    uses(Recipe::new().cpus(4).options("cpus=1"), 1)
}

fn two_guests_of_four_processors_share_two() -> Result<()> {
    let guest = |name| Ok::<_, anyhow::Error>(Guest { vcpus: 4, ..linux(name, Kernel::Default, "heartbeat:100")? });
    let mut host = Recipe::new().cpus(2).guest(guest("a")?).guest(guest("b")?).start()?;
    for name in ["a", "b"] {
        host.greets(name)?;
        host.guest_says(name, "processors  4 (")?;
    }
    for vm in host.client()?.vms()? {
        ensure!(vm.processors.len() == 4 && vm.processors.iter().all(|&at| at < 2), "{:?}", vm.processors);
    }
    for name in ["a", "b"] {
        host.beats(name, 3)?;
    }
    host.powers_off()
}

fn one_processor_runs_three_guests_in_turn() -> Result<()> {
    uses_in_turn(Recipe::new().cpus(1), ["a", "b", "c"])
}

fn uses_in_turn(recipe: Recipe, names: [&str; 3]) -> Result<()> {
    let recipe = names.iter().try_fold(recipe, |recipe, name| recipe.linux(name, "heartbeat:100"))?;
    let mut host = Recipe { memory: baton::size::Size::mebibytes(2048), ..recipe }.start()?;
    for name in names {
        host.greets(name)?;
    }
    for name in names {
        host.beats(name, 3)?;
    }
    host.powers_off()
}

fn serial_bring_up_finds_every_processor() -> Result<()> {
    uses(Recipe::new().cpus(4).options("smp=serial"), 4)
}

fn a_late_kick_finds_every_processor() -> Result<()> {
    uses(Recipe::new().cpus(4).options("kick=late"), 4)
}

/// All are online, none was given up, and a guest runs.
fn many(emulator: Emulator) -> Result<()> {
    const MANY: u32 = 128;
    let recipe = Recipe::new().on(emulator).cpus(MANY).linux("debian", "heartbeat:100")?;
    let mut host = recipe.start()?;
    host.says(&[&format!("processors: {MANY} online")])?;
    host.greets("debian")?;
    host.beats("debian", 3)?;
    let online = host.client()?.info()?.processors;
    ensure!(online == MANY, "{online} processors are online:\n{}", host.seen);
    host.powers_off()
}

fn a_hundred_and_twenty_eight_processors_come_up() -> Result<()> {
    many(Emulator::System)
}

fn a_hundred_and_twenty_eight_come_up_in_x2apic_mode() -> Result<()> {
    many(Emulator::Ten)
}

/// Processor 2 of four stops where it is waited for `phase`: the other three run three guests.
fn does_without(options: &str, phase: &str) -> Result<()> {
    let names = ["a", "b", "c"];
    let recipe = Recipe::new().cpus(4).options(options);
    let recipe = names.iter().try_fold(recipe, |recipe, name| recipe.linux(name, "heartbeat:100"))?;
    let mut host = Recipe { memory: baton::size::Size::mebibytes(2048), ..recipe }.start()?;
    host.says(&["processor 2 (APIC id 2) did not come further than", phase, "the host goes on without it"])?;
    for name in names {
        host.greets(name)?;
    }
    let mut used: Vec<u32> = host.client()?.vms()?.into_iter().flat_map(|vm| vm.processors).collect();
    used.sort_unstable();
    ensure!(used == [0, 1, 3], "{used:?}");
    let online = host.client()?.info()?.processors;
    ensure!(online == 3, "{online} processors are online:\n{}", host.seen);
    host.powers_off()
}

fn one_that_gives_no_sign_is_named_and_done_without() -> Result<()> {
    does_without("selftest=stop:2:first-sign", "first sign of life")
}

fn one_that_never_prepares_itself_is_named_and_done_without() -> Result<()> {
    does_without("selftest=stop:2:initialisation", "initialisation")
}

fn one_whose_clock_stays_unknown_is_named_and_done_without() -> Result<()> {
    does_without("selftest=stop:2:tsc-sync", "TSC synchronisation")
}

fn one_that_never_takes_work_is_named_and_done_without() -> Result<()> {
    does_without("selftest=stop:2:online", "going online")
}

fn serially_one_that_stops_holds_up_the_others_for_a_while() -> Result<()> {
    does_without("smp=serial selftest=stop:2:initialisation", "initialisation")
}
