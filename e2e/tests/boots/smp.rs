// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts of one, two and more CPUs.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::timeline::host::{Known, runs};
use e2e::host::Host;
use e2e::place::Emulator;
use e2e::recipe::Recipe;

use wire::{CpuState, MAX_UPDATE_STEPS};

use super::Rule;
use super::update::update;

pub const RULES: &[Rule] = &[
    ("one_cpu_is_enough", one_cpu_is_enough),
    ("four_cpus_run_four_guests", four_cpus_run_four_guests),
    ("fewer_cpus_are_used_where_that_is_wanted", fewer_cpus_are_used_where_that_is_wanted),
    ("one_cpu_runs_three_guests_in_turn", one_cpu_runs_three_guests_in_turn),
    ("serial_bring_up_finds_every_cpu", serial_bring_up_finds_every_cpu),
    ("a_late_kick_finds_every_cpu", a_late_kick_finds_every_cpu),
    ("a_hundred_and_twenty_eight_cpus_come_up", a_hundred_and_twenty_eight_cpus_come_up),
    ("one_that_gives_no_sign_is_named_and_done_without", one_that_gives_no_sign_is_named_and_done_without),
    (
        "one_that_never_prepares_itself_is_named_and_done_without",
        one_that_never_prepares_itself_is_named_and_done_without,
    ),
    ("one_with_an_unknown_clock_is_named_and_left_out", one_with_an_unknown_clock_is_named_and_left_out),
    ("one_that_never_takes_work_is_named_and_done_without", one_that_never_takes_work_is_named_and_done_without),
    (
        "serially_one_that_stops_holds_up_the_others_for_a_while",
        serially_one_that_stops_holds_up_the_others_for_a_while,
    ),
];

/// Those that want QEMU 10.
pub const X2APIC_RULES: &[Rule] = &[("four_cpus_start_in_x2apic_mode", four_cpus_start_in_x2apic_mode)];

/// Those that want QEMU 10, and take long.
pub const X2APIC_LONG_RULES: &[Rule] = &[
    ("a_hundred_and_twenty_eight_come_up_in_x2apic_mode", a_hundred_and_twenty_eight_come_up_in_x2apic_mode),
    ("as_many_as_there_can_be_come_up_and_go_to_a_new_image", as_many_as_there_can_be),
    ("x2apic_mode_that_firmware_has_left_on_is_kept", x2apic_mode_that_firmware_has_left_on_is_kept),
];

/// CPUs that a host uses at most. The last one's APIC id is 255, which as a destination means all CPUs in xAPIC mode.
const MOST: u32 = 256;
/// An emulator's thread that is 256 CPUs takes its time.
const MOST_LIMIT: Duration = Duration::from_secs(600);

/// Boots with these CPUs, of which so many are to be used, with as many guests.
fn uses(recipe: Recipe, cpus: u32) -> Result<()> {
    uses_all(recipe, cpus)?.powers_off()
}

/// The same, and the host goes on.
fn uses_all(recipe: Recipe, cpus: u32) -> Result<Host> {
    let names = ["a", "b", "c", "d"];
    let names = &names[..cpus as usize];
    let recipe = names.iter().try_fold(recipe, |recipe, name| recipe.beating(name))?;
    let mut host = recipe.start()?;
    for name in names {
        host.greets(name)?;
    }
    for name in names {
        host.beats(name, 3)?;
    }
    let online = host.client()?.info()?.cpus;
    ensure!(online == cpus, "{online} CPUs are online:\n{}", host.seen);
    let mut used: Vec<u32> = host.client()?.vms()?.into_iter().flat_map(|vm| vm.cpus).collect();
    used.sort_unstable();
    ensure!(used == (0..cpus).collect::<Vec<_>>(), "{used:?}");
    Ok(host)
}

fn one_cpu_is_enough() -> Result<()> {
    uses(Recipe::new().cpus(1), 1)
}

fn four_cpus_run_four_guests() -> Result<()> {
    uses(Recipe::new().cpus(4), 4)
}

fn four_cpus_start_in_x2apic_mode() -> Result<()> {
    uses(Recipe::new().cpus(4).on(Emulator::Ten), 4)
}

fn fewer_cpus_are_used_where_that_is_wanted() -> Result<()> {
    uses(Recipe::new().cpus(4).options("cpus=1"), 1)
}

fn one_cpu_runs_three_guests_in_turn() -> Result<()> {
    uses_in_turn(Recipe::new().cpus(1), ["a", "b", "c"])
}

fn uses_in_turn(recipe: Recipe, names: [&str; 3]) -> Result<()> {
    let recipe = names.iter().try_fold(recipe, |recipe, name| recipe.beating(name))?;
    let mut host = recipe.start()?;
    for name in names {
        host.greets(name)?;
    }
    for name in names {
        host.beats(name, 3)?;
    }
    host.powers_off()
}

fn serial_bring_up_finds_every_cpu() -> Result<()> {
    brings_up("smp=serial", "Serial", false)
}

fn a_late_kick_finds_every_cpu() -> Result<()> {
    brings_up("kick=late", "Parallel", true)
}

/// All four come by this policy, and are kicked before or after the bundle is opened.
fn brings_up(options: &str, policy: &str, is_kicked_late: bool) -> Result<()> {
    let mut host = uses_all(Recipe::new().cpus(4).options(&format!("log=debug {options}")), 4)?;
    ensure!(host.seen.host_logged(&[&format!("bring-up policy: {policy}")]), "{}", host.seen);
    let runs = runs(&host.client()?.timeline()?, &Known { guests: Vec::new() });
    let spans = runs.iter().flat_map(|run| &run.tracks).find(|track| track.name == "CPU 0").map(|it| &it.spans);
    let start = |name: &str| spans?.iter().find(|span| span.name == name).map(|span| span.start_us);
    let (kick, bundle) = start("kick (3)").zip(start("bundle")).with_context(|| format!("{runs:#?}"))?;
    ensure!((kick > bundle) == is_kicked_late, "kicked at {kick} us, the bundle was opened at {bundle} us");
    host.powers_off()
}

/// All are online, none was given up, and a guest runs.
fn many(emulator: Emulator) -> Result<()> {
    const MANY: u32 = 128;
    let recipe = Recipe::new().on(emulator).cpus(MANY).beating("guest")?;
    let mut host = recipe.start()?;
    host.logs(&[&format!("CPUs: {MANY} online")])?;
    host.greets("guest")?;
    host.beats("guest", 3)?;
    let online = host.client()?.info()?.cpus;
    ensure!(online == MANY, "{online} CPUs are online:\n{}", host.seen);
    host.powers_off()
}

fn a_hundred_and_twenty_eight_cpus_come_up() -> Result<()> {
    many(Emulator::System)
}

fn a_hundred_and_twenty_eight_come_up_in_x2apic_mode() -> Result<()> {
    many(Emulator::Ten)
}

/// The machine has as many CPUs as a host uses at most. All are online, a guest runs, and goes on when all of them have
/// gone to a new image.
fn as_many_as_there_can_be() -> Result<()> {
    let recipe = Recipe::new().on(Emulator::Ten).cpus(MOST).memory_mib(2048).options("tsc=skip");
    let mut host = recipe.beating("guest")?.start()?;
    host.limit(MOST_LIMIT);
    host.logs(&[&format!("CPUs: {MOST} online")])?;
    host.beats("guest", 3)?;
    let report = update(&mut host)?;
    ensure!(report.cpus.len() == MAX_UPDATE_STEPS, "{} switched over", report.cpus.len());
    let cpus = host.client()?.cpus()?;
    let online = cpus.iter().filter(|cpu| cpu.state == CpuState::Online).count();
    ensure!(online == MOST as usize, "{online} of {} are listed as online", cpus.len());
    host.beats("guest", 3)?;
    let info = host.client()?.info()?;
    ensure!((info.cpus, info.generation) == (MOST, 2), "{info:?}");
    host.powers_off()
}

/// Firmware turns x2APIC mode on where there are CPUs that need it. An xAPIC's registers are not in memory then: an
/// interrupt that was sent there reset the sender.
fn x2apic_mode_that_firmware_has_left_on_is_kept() -> Result<()> {
    let recipe = Recipe::new().on(Emulator::Ten).cpus(MOST).memory_mib(2048).options("tsc=skip apic=xapic");
    let mut host = recipe.beating("guest")?.start()?;
    host.limit(MOST_LIMIT);
    host.logs(&["option apic=xapic", "left x2APIC mode on"])?;
    host.logs(&[&format!("CPUs: {MOST} online")])?;
    host.beats("guest", 3)?;
    host.powers_off()
}

/// CPU 2 of four stops where it is waited for `phase`: the other three run three guests.
fn does_without(options: &str, phase: &str) -> Result<()> {
    let names = ["a", "b", "c"];
    let recipe = Recipe::new().with_fault_points().cpus(4).options(options);
    let recipe = names.iter().try_fold(recipe, |recipe, name| recipe.beating(name))?;
    let mut host = recipe.start()?;
    host.logs(&["CPU 2 (APIC id 2) did not come further than", phase, "the host goes on without it"])?;
    for name in names {
        host.greets(name)?;
    }
    let mut used: Vec<u32> = host.client()?.vms()?.into_iter().flat_map(|vm| vm.cpus).collect();
    used.sort_unstable();
    ensure!(used == [0, 1, 3], "{used:?}");
    let online = host.client()?.info()?.cpus;
    ensure!(online == 3, "{online} CPUs are online:\n{}", host.seen);
    host.powers_off()
}

fn one_that_gives_no_sign_is_named_and_done_without() -> Result<()> {
    does_without("selftest=stop:2:first-sign", "first sign of life")
}

fn one_that_never_prepares_itself_is_named_and_done_without() -> Result<()> {
    does_without("selftest=stop:2:initialisation", "initialisation")
}

fn one_with_an_unknown_clock_is_named_and_left_out() -> Result<()> {
    does_without("selftest=stop:2:tsc-sync", "TSC synchronisation")
}

fn one_that_never_takes_work_is_named_and_done_without() -> Result<()> {
    does_without("selftest=stop:2:online", "going online")
}

fn serially_one_that_stops_holds_up_the_others_for_a_while() -> Result<()> {
    does_without("smp=serial selftest=stop:2:initialisation", "initialisation")
}
