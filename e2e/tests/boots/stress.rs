// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux guests of one to eight processors under stress: all of them compute, interrupt and wake each other, and are
//! switched off and on from inside (`guests/README.md`, the agent's tasks).

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

/// A guest's tasks under stress; it ends by powering off.
const TASKS: &str = "stress:1000,replug:1,stress:300,steal,poweroff";
/// The same for guests of one processor.
const TASKS_OF_ONE: &str = "stress:1000,steal,poweroff";

/// Every kernel with eight processors, and both beside each other with fewer.
pub fn trials() -> Vec<Trial> {
    let kernels: Vec<Kernel> = [Kernel::V6_1, Kernel::V6_12].into_iter().filter(|it| it.file().is_ok()).collect();
    let kernels = if kernels.is_empty() { vec![Kernel::Default] } else { kernels };
    let (first, last) = (kernels[0], kernels[kernels.len() - 1]);
    let mut trials = Vec::new();
    for kernel in kernels {
        let name = kernel.name();
        let eight = format!("{name} of eight processors on two bears stress and replugging");
        trials.push(super::trial("stress", &eight, move || bear_stress(&[("eight", 8, kernel)])));
    }
    let three = [("one", 1, last), ("two", 2, first), ("four", 4, last)];
    let rule = "guests_of_one_two_and_four_bear_it_beside_each_other";
    trials.push(super::trial("stress", rule, move || bear_stress(&three)));
    let fours = [("first", 4, first), ("second", 4, last)];
    trials.push(super::trial("stress", "two_guests_of_four_share_two", move || bear_stress(&fours)));
    let rule = "an_nmi_reaches_every_processor_and_stops_the_others_in_a_panic";
    trials.push(super::trial("stress", rule, an_nmi_reaches_every_processor));
    trials
}

/// Guests, by name, processors and kernel, that share the two processors of a host.
fn bear_stress(guests: &[(&str, u32, Kernel)]) -> Result<()> {
    let mut recipe = Recipe { memory: Size::mebibytes(2048), ..Recipe::new().cpus(2) };
    for &(name, vcpus, kernel) in guests {
        let tasks = if vcpus == 1 { TASKS_OF_ONE } else { TASKS };
        recipe = recipe.guest(Guest { vcpus, ..linux(name, kernel, tasks)? });
    }
    let mut host = recipe.start()?;
    host.limit(Duration::from_secs(240));
    for &(name, vcpus, _) in guests {
        host.guest_says(name, &format!("processors  {vcpus} ("))?;
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
    let stresses = console.matches(&format!("stress: {vcpus} processors, ")).count();
    let replugs = console.matches(&format!("replug: {} processors off and on ", vcpus - 1)).count();
    let wanted = if vcpus == 1 { (1, 0) } else { (2, 1) };
    ensure!((stresses, replugs) == wanted, "{name} did {stresses} stresses, {replugs} replugs:\n{console}");
    ensure!(!console.contains("WRONG"), "{name}:\n{console}");
    stolen_ms(host, name)?;
    // An emulated processor has no invariant time stamp counter, and Linux tells it from others by this alone.
    let is_expected = |line: &&str| line.ends_with("tsc: Marking TSC unstable due to TSCs unsynchronized");
    let complaints: Vec<_> = dmesg::suspicious(&console).into_iter().filter(|line| !is_expected(line)).collect();
    ensure!(complaints.is_empty(), "{name} complains: {complaints:#?}\n{console}");
    Ok(())
}

fn stolen_ms(host: &Host, name: &str) -> Result<u64> {
    let console = host.seen.console(name);
    let line = console.lines().find_map(|line| line.trim().strip_prefix("steal: ")?.strip_suffix(" ms"));
    line.and_then(|ms| ms.parse().ok()).with_context(|| format!("{name} did not say what was stolen:\n{console}"))
}

/// The kernel asks each processor for a backtrace by NMI. Then it panics as it would with a crash kernel, which stops all
/// other processors by NMI, and reboots.
fn an_nmi_reaches_every_processor() -> Result<()> {
    const PROCESSORS: u32 = 4;
    let guest = linux("debian", Kernel::Default, "backtrace,panic")?;
    let cmdline = format!("{} crash_kexec_post_notifiers panic=1", guest.cmdline);
    let guest = Guest { vcpus: PROCESSORS, cmdline, ..guest };
    let mut host = Recipe::new().guest(guest).start()?;
    host.guest_says("debian", "baton-agent: backtraces shown")?;
    // What a kernel says in an NMI's handler it prints when it suits it.
    for processor in 0..PROCESSORS {
        host.guest_says("debian", &format!("NMI backtrace for cpu {processor}"))?;
    }
    host.event(&EventKind::VmPanicked { name: "debian".into() })?;
    host.event(&EventKind::VmReset { name: "debian".into() })?;
    host.greets("debian")?;
    ensure!(host.vm("debian")?.state != VmState::Failed, "{}", host.seen);
    host.powers_off()
}
