// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unmodified Linux kernels to their userspace and to power-off, without a complaint.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use e2e::dmesg;
use e2e::place::{Emulator, Kernel};
use e2e::recipe::{Recipe, linux};
use lab::Ending;
use libtest_mimic::Trial;
use wire::ApicMode;

/// Greatest difference in seconds of a guest's clock from ours while it is watched: it is read when its line arrives.
const CLOCK_TOLERANCE_SECONDS: f64 = 0.5;

/// Every kernel on every emulator and kind of host APIC that this machine has, and what one of them is enough for.
pub fn trials() -> Vec<Trial> {
    let hosts = [
        (Emulator::System, "", None),
        (Emulator::Ten, "", Some(ApicMode::X2Apic)),
        (Emulator::Ten, "apic=xapic", Some(ApicMode::XApic)),
    ];
    let kernels: Vec<Kernel> =
        [Kernel::V6_1, Kernel::V6_12].into_iter().filter(|kernel| kernel.file().is_ok()).collect();
    let kernels = if kernels.is_empty() { vec![Kernel::Default] } else { kernels };
    let mut trials = Vec::new();
    for (emulator, options, apic) in hosts.into_iter().filter(|(emulator, _, _)| emulator.is_here()) {
        for &kernel in &kernels {
            let host = [emulator.name(), options].join(" ");
            let name = format!("{} reaches userspace and powers off on {}", kernel.name(), host.trim());
            trials.push(super::trial("linux", &name, move || reaches_userspace(kernel, emulator, options, apic)));
        }
    }
    trials.push(super::trial("linux", "a_guests_memory_keeps_what_is_written", a_guests_memory_keeps_what_is_written));
    trials.push(super::trial("linux", "a_guests_clock_runs_as_ours", a_guests_clock_runs_as_ours));
    trials.push(super::trial("linux", "a_guest_of_two_cpus_uses_both", a_guest_of_two_cpus_uses_both));
    trials
}

fn reaches_userspace(kernel: Kernel, emulator: Emulator, options: &str, apic: Option<ApicMode>) -> Result<()> {
    // All that the kernel has to report.
    let guest = Guest { cmdline: "console=ttyS0 agent=poweroff".into(), ..linux("debian", kernel, "poweroff")? };
    let mut host = Recipe::new().on(emulator).options(options).powers_off().guest(guest).start()?;
    let info = host.client()?.info()?;
    ensure!(apic.is_none_or(|apic| apic == info.apic_mode), "the host drives its APIC as {:?}", info.apic_mode);
    host.greets("debian")?;
    host.guest_prints("debian", "baton-agent: powering off")?;
    let ending = host.ending()?;
    ensure!(ending == Ending::PoweredOff, "{ending}:\n{}", host.seen);
    let console = host.seen.console("debian");
    let complaints = dmesg::suspicious(&console);
    ensure!(complaints.is_empty(), "the guest complains: {complaints:#?}");
    let clock = dmesg::clock_source(&console);
    ensure!(matches!(clock, Some("kvm-clock" | "tsc")), "the guest's clock is {clock:?}");
    let expected = match kernel {
        Kernel::Default => "Linux version ".to_owned(),
        kernel => format!("Linux version {}.", kernel.name()),
    };
    ensure!(console.contains(&expected), "this is not Linux {}:\n{}", kernel.name(), host.seen);
    Ok(())
}

fn a_guests_memory_keeps_what_is_written() -> Result<()> {
    let mut host = Recipe::new().powers_off().linux("debian", "memtest,poweroff")?.start()?;
    host.guest_prints("debian", "memtest: ")?;
    host.guest_prints("debian", " MiB written and read back")?;
    ensure!(host.ending()? == Ending::PoweredOff, "{}", host.seen);
    Ok(())
}

fn a_guest_of_two_cpus_uses_both() -> Result<()> {
    let guest = Guest { vcpus: 2, ..linux("debian", Kernel::Default, "poweroff")? };
    let mut host = Recipe::new().powers_off().guest(guest).start()?;
    host.greets("debian")?;
    host.guest_prints("debian", "CPUs        2 (")?;
    ensure!(host.ending()? == Ending::PoweredOff, "{}", host.seen);
    let console = host.seen.console("debian");
    let complaints = dmesg::suspicious_of_several_cpus(&console);
    ensure!(complaints.is_empty(), "the guest complains: {complaints:#?}");
    Ok(())
}

/// Some seconds of heartbeats: the guest's uptime against the time that passes here.
fn a_guests_clock_runs_as_ours() -> Result<()> {
    let mut host = Recipe::new().linux("debian", "heartbeat:100")?.start()?;
    host.beats("debian", 1)?;
    let (uptime, now) = (uptime(&host.seen.console("debian"))?, Instant::now());
    host.listen(Duration::from_secs(5));
    host.beats("debian", 1)?;
    let (passed_there, passed_here) =
        (self::uptime(&host.seen.console("debian"))? - uptime, now.elapsed().as_secs_f64());
    let difference = (passed_there - passed_here).abs();
    ensure!(difference < CLOCK_TOLERANCE_SECONDS, "{passed_there} s passed there, {passed_here} s here");
    host.powers_off()
}

/// The guest's uptime by its last heartbeat, in seconds.
fn uptime(console: &str) -> Result<f64> {
    let complete = console.rsplit_once('\n').map_or("", |(lines, _)| lines);
    let line = complete.lines().rev().find(|line| line.starts_with("heartbeat ")).context("no heartbeat")?;
    let (_, rest) = line.split_once("uptime=").context("no uptime")?;
    Ok(rest.split(' ').next().unwrap_or_default().parse()?)
}
