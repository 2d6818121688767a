// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performance counters in guests.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use baton::size::Size;
use bundle::{OnPanic, Pmu, PmuEvent};
use e2e::place::{Kernel, built};
use e2e::recipe::{Recipe, program, tiny};
use wire::{EventKind, ExitKind, PerfCounter, PerfEvent, PerfState, RefusalCode, RequestBody, VmState};

use super::Rule;

pub mod beside;

pub const RULES: &[Rule] = &[
    ("both_vendors_counters_answer_as_their_manuals_specify", || answer("")),
    ("and_so_they_do_where_each_change_makes_a_new_event", || answer("vpmu=reprogram")),
    ("a_guest_has_no_counters_unless_it_is_given_some", a_guest_has_no_counters_unless_it_is_given_some),
    ("what_a_guest_may_not_count_stands_still", what_a_guest_may_not_count_stands_still),
    ("a_guests_counters_are_seen_from_outside", a_guests_counters_are_seen_from_outside),
    ("an_emulators_counters_are_refused_and_the_guests_time_counts", || {
        refused("max,-cx16", "its counters' registers do not keep what is written")
    }),
    ("and_so_are_those_that_cpuid_promises", || {
        refused("max,-cx16,x-force-features=on,+perfctr-core", "its counters' registers do not keep what is written")
    }),
    ("and_another_makers_are_not_touched", || refused("max,-cx16,vendor=GenuineIntel", "it is not AMD's")),
];

/// Those that want Linux's own perf.
pub const PERF_RULES: &[Rule] = &[
    ("linux_perf_counts_and_records_by_intels_registers", || {
        perf_counts_and_records(Pmu::Intel, "generic architected")
    }),
    ("linux_perf_counts_and_records_by_amds_registers", || perf_counts_and_records(Pmu::Amd, "AMD")),
];

/// Those that want Linux's own perf, and take long.
pub const PERF_LONG_RULES: &[Rule] = &[
    ("linux_perf_watches_by_intels_registers", || perf_watches(Pmu::Intel)),
    ("linux_perf_watches_by_amds_registers", || perf_watches(Pmu::Amd)),
];

/// Longest time for Linux's perf: `perf top` reads its symbols by an emulated CPU, which others may want as well.
const PERF_LIMIT: Duration = Duration::from_secs(300);
/// Code that a test guest writes to its debug-exit port on success.
const RIGHT: u32 = 0x10;

fn counting(name: &str, pmu: Pmu, cmdline: &str) -> Result<Guest> {
    Ok(Guest { pmu, ..tiny(name, "counters", cmdline)? })
}

/// Intel's and AMD's registers at once, two guests of each kind on one CPU; then they end with a counter on.
fn answer(options: &str) -> Result<()> {
    let mut recipe = Recipe::new().options(options);
    let guests = [("intel", Pmu::Intel), ("amd", Pmu::Amd), ("intel-too", Pmu::Intel), ("amd-too", Pmu::Amd)];
    for (name, pmu) in guests {
        recipe = recipe.guest(counting(name, pmu, "do=all")?);
    }
    let mut host = recipe.start()?;
    for (name, _) in guests {
        host.guest_prints(name, "counters: writes: ")?;
        host.state(name, VmState::Stopped)?;
        let console = host.seen.console(name);
        let wrong: Vec<&str> = console.lines().filter(|line| line.contains("WRONG")).collect();
        ensure!(wrong.is_empty() && console.contains("counters: user: ok"), "{name}: {wrong:#?}\n{}", host.seen);
        host.event(&EventKind::VmDebugExit { name: name.to_owned(), code: RIGHT })?;
    }
    host.powers_off()
}

/// The CPU's counters are wanted, cannot be had for this reason, and done without.
fn refused(cpu: &'static str, reason: &str) -> Result<()> {
    let recipe = Recipe { cpu, ..Recipe::new() }.options("pmu=hardware");
    let mut host = recipe.guest(counting("counts", Pmu::Amd, "do=stopped")?).start()?;
    host.logs(&["pmu=hardware", &format!("cannot be used, {reason}; pmu=soft is")])?;
    host.guest_prints("counts", "counters: stopped: ok")?;
    let features = host.client()?.info()?.features;
    ensure!(!features.iter().any(|name| name.starts_with("perf")), "{features:?}");
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
    for (name, text) in [("may", "counters: stopped: ok"), ("may-not", "counters: stopped: WRONG: it has counted")] {
        host.guest_prints(name, text)?;
    }
    host.powers_off()
}

/// Compares the guest's own line about its counters with the view from outside.
fn a_guests_counters_are_seen_from_outside() -> Result<()> {
    const ALL_AGREE: &str = "overflows, all agree";
    let idle = tiny("idle", "keeper", "seed=1 do=fresh,stain,wait")?;
    // It resembles a kernel that spins.
    let watch = Guest { on_panic: OnPanic::Ignore, ..counting("watch", Pmu::Intel, "do=watch")? };
    let mut host = Recipe::new().guest(watch).guest(idle).start()?;
    host.guest_prints("watch", ALL_AGREE)?;
    let before = host.client()?.figures("watch", 0)?;
    host.guest_prints("watch", ALL_AGREE)?;
    let after = host.client()?.figures("watch", 0)?;
    let is_plausible = |number: usize, counter: &PerfCounter| {
        let is_this = usize::from(counter.number) == number && !counter.is_fixed;
        is_this && counter.event == PerfEvent::Cycles && counter.user && counter.kernel
    };
    for (number, (before, after)) in before.counters.iter().zip(&after.counters).enumerate() {
        ensure!(is_plausible(number, before) && is_plausible(number, after), "{before:?} {after:?}");
        ensure!((after.overflows > before.overflows) == (number == 0), "{before:?} {after:?}");
    }
    ensure!((before.counters.len(), after.counters.len()) == (4, 4), "{before:?} {after:?}");
    ensure!(before.counters[0].overflows >= 10, "{before:?}");
    ensure!(after.counters.iter().all(|counter| counter.state != PerfState::NotCounted), "{after:?}");
    let grew = |of: fn(&wire::VcpuPerf) -> u64| of(&after) > of(&before);
    ensure!(grew(|perf| perf.at_ns) && grew(|perf| perf.ran_ns) && grew(|perf| perf.counted_ticks), "{after:?}");
    ensure!(after.exits.iter().any(|exit| exit.kind == ExitKind::MsrWrite && exit.count > 100), "{after:?}");
    host.guest_prints("idle", "keeper: wait: going")?;
    let idle = host.client()?.figures("idle", 0)?;
    ensure!(idle.counters.is_empty() && idle.counted_ticks == 0 && !idle.exits.is_empty(), "{idle:?}");
    let refusal = host.refusal(RequestBody::VmPerf { name: "watch".to_owned(), vcpu: 1 })?;
    ensure!(refusal.code == RefusalCode::WrongState && !refusal.hint.is_empty(), "{refusal}");
    ensure!(!host.seen.console("watch").contains("WRONG"), "{}", host.seen);
    host.powers_off()
}

/// The guest of guests/perf counts and profiles a program; its functions have shares of one half, 3 tenths, one fifth.
fn perf_counts_and_records(pmu: Pmu, driver: &str) -> Result<()> {
    let (lines, tsc_hz) = perf(pmu, "stat,record")?;
    line_with(&lines, &["perf: counters:", driver])?;
    let count = |event: &str| {
        let line = line_with(&lines, &["perf: stat:", event])?;
        let digits: String =
            line.split(event).next().unwrap_or_default().chars().filter(char::is_ascii_digit).collect();
        digits.parse::<u64>().with_context(|| format!("no count: {line}"))
    };
    // The program computes for a second: a cycle is a tick of the time stamp counter.
    let cycles = count(" cycles")?;
    ensure!((tsc_hz / 2..tsc_hz * 2).contains(&cycles), "{cycles} cycles in a second of {tsc_hz} ticks: {lines:#?}");
    if pmu == Pmu::Intel {
        // They are opened one after the other, and stopped together. Linux knows no such event of this AMD CPU's.
        let reference = count(" ref-cycles")?;
        ensure!(cycles.abs_diff(reference) < cycles / 10, "{cycles} cycles, {reference} reference cycles");
    }
    let met = line_with(&lines, &["perf: record: period", "samples"])?;
    let met = |name: &str| {
        let digits = met.split(' ').skip_while(|word| *word != name).nth(1);
        digits.and_then(|digits| digits.parse::<u64>().ok()).with_context(|| format!("no {name}: {met}"))
    };
    let (samples, half, third, fifth) = (met("samples")?, met("half")?, met("third")?, met("fifth")?);
    let program = half + third + fifth;
    // The rest is the guest's kernel. Its timer ticks by the wall clock: where the emulator gets a fifth of a core,
    // they take a quarter of what it executes. Samples at wrong places would be spread over the kernel.
    ensure!(program <= samples && program * 2 > samples && program > 50, "{lines:#?}");
    // A share of N samples is off by its standard deviation, at most 1/(2 sqrt N); four of these, and what the clock of
    // the program itself allows.
    let tolerance = 2.0 / (program as f64).sqrt() + 0.02;
    for (met, share) in [(half, 0.5), (third, 0.3), (fifth, 0.2)] {
        let found = met as f64 / program as f64;
        ensure!((found - share).abs() < tolerance, "{found} is not {share} within {tolerance}: {lines:#?}");
    }
    Ok(())
}

/// It watches the program until one of its functions is met.
fn perf_watches(pmu: Pmu) -> Result<()> {
    line_with(&perf(pmu, "top")?.0, &["perf: top:", "%", "shares::"]).map(drop)
}

/// Returns what the guest reports of these tasks, until it is done; and the ticks of the time stamp counter in a
/// second.
fn perf(pmu: Pmu, tasks: &str) -> Result<(Vec<String>, u64)> {
    let guest = Guest {
        initrd: Some(built("guests/perf.cpio")?),
        cmdline: format!("console=ttyS0 quiet nmi_watchdog=0 perf={tasks} ms=1000 period=5000000"),
        memory: Size::mebibytes(384),
        pmu,
        ..program("perf", Kernel::Default.file()?)
    };
    let mut host = Recipe::new().guest(guest).start()?;
    host.limit(PERF_LIMIT);
    host.guest_prints("perf", "perf: done")?;
    let console = host.seen.console("perf");
    let lines = console.lines().map(str::trim).filter(|line| line.starts_with("perf: ")).map(str::to_owned).collect();
    host.state("perf", VmState::Stopped)?;
    let tsc_hz = host.client()?.info()?.tsc_hz;
    host.powers_off()?;
    Ok((lines, tsc_hz))
}

/// The line that has all these parts.
fn line_with<'l>(lines: &'l [String], parts: &[&str]) -> Result<&'l str> {
    let line = lines.iter().find(|line| parts.iter().all(|part| line.contains(part)));
    line.map(String::as_str).with_context(|| format!("no line with {parts:?}: {lines:#?}"))
}
