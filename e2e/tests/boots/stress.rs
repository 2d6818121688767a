// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux guests of one to eight CPUs under stress: all of them compute, interrupt and wake each other, and are
//! taken offline and online from inside (`guests/README.md`, the agent's tasks).

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use baton::size::Size;
use e2e::dmesg;
use e2e::host::Host;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, linux};
use libtest_mimic::Trial;
use wire::{EventKind, VmState};

use super::Rule;

/// A guest's tasks under stress; it ends by powering off.
const TASKS: &str = "stress:1000,replug:1,stress:300,steal,poweroff";
/// The same for guests of one CPU.
const TASKS_OF_ONE: &str = "stress:1000,steal,poweroff";

pub const RULES: &[Rule] = &[("two_guests_of_four_share_two", two_guests_of_four_share_two)];

pub const LONG_RULES: &[Rule] =
    &[("an_nmi_reaches_every_cpu_and_stops_the_others_in_a_panic", an_nmi_reaches_every_cpu)];

fn two_guests_of_four_share_two() -> Result<()> {
    bear_stress(Recipe::new(), &[("first", 4, Kernel::Default), ("second", 4, Kernel::Default)])
}

/// Every kernel with eight CPUs, and both beside each other with fewer: on CPUs that take turns, and on
/// concurrent ones.
pub fn long_tests() -> Vec<Trial> {
    let kernels: Vec<Kernel> = [Kernel::V6_1, Kernel::V6_12].into_iter().filter(|it| it.file().is_ok()).collect();
    let kernels = if kernels.is_empty() { vec![Kernel::Default] } else { kernels };
    let (first, last) = (kernels[0], kernels[kernels.len() - 1]);
    let machines = [("CPUs that take turns", Recipe::new()), ("concurrent CPUs", Recipe::new().concurrent())];
    let mut trials = Vec::new();
    for (machine, recipe) in machines {
        for &kernel in &kernels {
            let name = format!("{} of eight CPUs on two {machine} bears stress and replugging", kernel.name());
            let recipe = recipe.clone();
            trials.push(super::long_test("stress", &name, move || bear_stress(recipe, &[("eight", 8, kernel)])));
        }
        let (one, other) = (recipe.clone(), recipe);
        let three = [("one", 1, last), ("two", 2, first), ("four", 4, last)];
        let name = format!("guests of one, two and four on two {machine} bear it beside each other");
        trials.push(super::long_test("stress", &name, move || bear_stress(one, &three)));
        let fours = [("first", 4, first), ("second", 4, last)];
        let name = format!("two guests of four share two {machine}");
        trials.push(super::long_test("stress", &name, move || bear_stress(other, &fours)));
    }
    trials
}

/// Guests, by name, CPUs and kernel, that share the two CPUs of a host.
fn bear_stress(recipe: Recipe, guests: &[(&str, u32, Kernel)]) -> Result<()> {
    let mut recipe = Recipe { memory: Size::mebibytes(2048), ..recipe.cpus(2) };
    for &(name, vcpus, kernel) in guests {
        let tasks = if vcpus == 1 { TASKS_OF_ONE } else { TASKS };
        recipe = recipe.guest(Guest { vcpus, ..linux(name, kernel, tasks)? });
    }
    let mut host = recipe.start()?;
    host.limit(Duration::from_secs(240));
    for &(name, vcpus, _) in guests {
        host.guest_prints(name, &format!("CPUs        {vcpus} ("))?;
        let vm = host.vm(name)?;
        let is_placed = vm.cpus.len() == vcpus as usize && vm.cpus.iter().all(|&at| at < 2);
        ensure!(is_placed || vm.state != VmState::Running, "{vm:?}");
    }
    for &(name, vcpus, _) in guests {
        host.event(&EventKind::VmStopped { name: name.to_owned(), reason: "powered off".into() })?;
        bore_it(&host, name, vcpus)?;
    }
    let shared = guests.iter().map(|(_, vcpus, _)| vcpus).sum::<u32>() > 2;
    ensure!(!shared || guests.iter().any(|(name, ..)| stolen_ms(&host, name).is_ok_and(|ms| ms > 0)), "nothing stolen");
    host.powers_off()
}

/// The guest has done all its tasks, and nothing was wrong.
fn bore_it(host: &Host, name: &str, vcpus: u32) -> Result<()> {
    let console = host.seen.console(name);
    let stresses = console.matches(&format!("stress: {vcpus} CPUs, ")).count();
    let replugs = console.matches(&format!("replug: {} CPUs off and on ", vcpus - 1)).count();
    let wanted = if vcpus == 1 { (1, 0) } else { (2, 1) };
    ensure!((stresses, replugs) == wanted, "{name} did {stresses} stresses, {replugs} replugs:\n{console}");
    ensure!(!console.contains("WRONG"), "{name}:\n{console}");
    stolen_ms(host, name)?;
    // An emulated CPU has no invariant time stamp counter, and Linux distinguishes it from others by this alone.
    let is_expected = |line: &&str| line.ends_with("tsc: Marking TSC unstable due to TSCs unsynchronized");
    let complaints: Vec<_> = dmesg::suspicious(&console).into_iter().filter(|line| !is_expected(line)).collect();
    ensure!(complaints.is_empty(), "{name} complains: {complaints:#?}\n{console}");
    Ok(())
}

fn stolen_ms(host: &Host, name: &str) -> Result<u64> {
    let console = host.seen.console(name);
    let line = console.lines().find_map(|line| line.trim().strip_prefix("steal: ")?.strip_suffix(" ms"));
    line.and_then(|ms| ms.parse().ok()).with_context(|| format!("{name} did not print what was stolen:\n{console}"))
}

/// The kernel asks each CPU for a backtrace by NMI. Then it panics as it would with a crash kernel, which stops
/// all other CPUs by NMI, and reboots.
fn an_nmi_reaches_every_cpu() -> Result<()> {
    const CPUS: u32 = 4;
    let guest = linux("debian", Kernel::Default, "backtrace,panic")?;
    let cmdline = format!("{} crash_kexec_post_notifiers panic=1", guest.cmdline);
    let guest = Guest { vcpus: CPUS, cmdline, ..guest };
    let mut host = Recipe::new().guest(guest).start()?;
    host.guest_prints("debian", "baton-agent: backtraces shown")?;
    // A kernel defers the printing of what it reports in an NMI's handler.
    for cpu in 0..CPUS {
        host.guest_prints("debian", &format!("NMI backtrace for cpu {cpu}"))?;
    }
    host.event(&EventKind::VmPanicked { name: "debian".into() })?;
    host.event(&EventKind::VmReset { name: "debian".into() })?;
    ensure!(host.vm("debian")?.state != VmState::Failed, "{}", host.seen);
    host.powers_off()
}
