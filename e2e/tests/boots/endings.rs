// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of the host, wherever it comes from: one whole report, every CPU stopped, and what is still served.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use e2e::host::Host;
use e2e::keyboard::TypedHost;
use e2e::place::built;
use e2e::recipe::{Recipe, folder, tiny};
use lab::{Ending, Lab, Machine, RunDir};
use wire::{HostInfo, RefusalCode, RequestBody, VmState};

use super::Rule;

pub mod steps;

pub const RULES: &[Rule] = &[
    ("a_panic_in_an_interrupt_handler_is_reported_whole", a_panic_in_an_interrupt_handler_is_reported_whole),
    ("what_no_one_claims_is_counted_and_named_and_ends_nothing", what_no_one_claims_ends_nothing),
    ("a_panic_inside_the_log_is_reported_whole", a_panic_inside_the_log_is_reported_whole),
    ("a_panic_inside_the_heap_is_reported_whole", a_panic_inside_the_heap_is_reported_whole),
    ("a_reason_that_cannot_be_shown_costs_the_reason_and_no_more", a_reason_that_cannot_be_shown_costs_the_reason),
    ("of_two_that_panic_at_once_one_reports_and_names_the_other", of_two_that_panic_at_once_one_reports),
    ("a_cpu_with_interrupts_masked_is_stopped_by_an_nmi", a_masked_cpu_is_stopped_by_an_nmi),
    ("a_cpu_that_answers_nothing_is_named", a_cpu_that_answers_nothing_is_named),
    ("guests_end_with_their_host_and_its_log_can_still_be_read", guests_end_with_their_host),
    ("a_host_that_has_ended_sleeps_and_answers_keys", a_host_that_has_ended_sleeps_and_answers_keys),
    ("a_host_that_spins_answers_keys_too", a_host_that_spins_answers_keys_too),
    ("the_next_host_reports_the_end_of_the_one_before", the_next_host_reports_the_end_of_the_one_before),
    ("a_hypervisor_below_is_notified_through_pvpanic", a_hypervisor_below_is_notified_through_pvpanic),
    ("a_machine_that_resets_itself_has_not_powered_off", a_reset_is_no_power_off),
];

const GUESTS: [&str; 3] = ["a", "b", "c"];
const END: &str = "end of report";

/// Ends a host by this self-test; its lines.
fn lines(self_test: &str) -> Result<Vec<String>> {
    let mut host = Recipe::new().with_fault_points().options(&format!("selftest={self_test}")).start_with(None)?;
    let ending = host.ending()?;
    ensure!(ending == Ending::Panicked, "{ending}:\n{}", host.seen);
    Ok(host.seen.host.clone())
}

/// One report, whole and in order: why, registers, a way there, what became of the others, its end.
fn is_whole(lines: &[String], why: &str) -> Result<()> {
    let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    for once in [why, "rip ffffffff8", "rsp ffff", "rax ", "rsi ", "r9  ", "r13 ", END] {
        ensure!(count(once) == 1, "{once:?} is there {} times: {lines:#?}", count(once));
    }
    let mut rest = lines.iter();
    for part in [why, "rip ", "rsp ", "rax ", "rsi ", "r9  ", "r13 ", " #1 0xffffffff8", " #2 0xffffffff8", END] {
        ensure!(rest.any(|line| line.contains(part)), "{part:?} is not there, or not in its place: {lines:#?}");
    }
    ensure!(lines.last().is_some_and(|line| line.contains(END)), "something follows: {lines:#?}");
    Ok(())
}

fn a_panic_in_an_interrupt_handler_is_reported_whole() -> Result<()> {
    is_whole(&lines("panic-in-interrupt")?, "panic on CPU 0: self-test, in an interrupt handler")
}

/// An NMI and an interrupt of the host's own making, then an NMI from the machine, as a chipset sends it.
fn what_no_one_claims_ends_nothing() -> Result<()> {
    let folder = folder()?;
    let socket = folder.path().join("monitor");
    let monitor = format!("unix:{},server=on,wait=off", socket.display());
    let guest = tiny("a", "keeper", "seed=1 do=fresh,wait")?;
    let recipe = Recipe::new().with_fault_points().options("selftest=nmi,unexpected-interrupt").guest(guest);
    let mut host = recipe.with(["-monitor".into(), monitor.into()]).start()?;
    host.logs(&["cpu0: unclaimed NMI, source not reported by the chipset"])?;
    host.logs(&["cpu0: unexpected interrupt, vector 0x77"])?;
    host.guest_prints("a", "keeper: wait: going")?;
    let counts = |info: HostInfo| (info.unclaimed_nmis, info.unexpected_interrupts, info.last_unexpected_vector);
    let before = counts(host.client()?.info()?);
    ensure!(before == (1, 1, Some(0x77)), "{before:?}");
    let mut monitor = UnixStream::connect(&socket)?;
    monitor.write_all(b"nmi\n")?;
    while counts(host.client()?.info()?) != (2, 1, Some(0x77)) {
        host.wait_a_moment()?;
    }
    host.state("a", VmState::Running)?;
    host.powers_off()
}

fn a_panic_inside_the_log_is_reported_whole() -> Result<()> {
    is_whole(&lines("panic-in-log")?, "panic on CPU 0: self-test, while a record is formatted")
}

fn a_panic_inside_the_heap_is_reported_whole() -> Result<()> {
    is_whole(&lines("panic-in-heap")?, "panic on CPU 0: self-test, while the heap is locked")
}

fn a_reason_that_cannot_be_shown_costs_the_reason() -> Result<()> {
    let lines = lines("panic-in-report")?;
    let why = "panic on CPU 0: self-test, while a record is formatted";
    let at = lines.iter().position(|line| line.contains("noting the reason failed")).context("nothing failed")?;
    ensure!([why, "the end goes on"].iter().all(|part| lines[at].contains(part)), "{lines:#?}");
    is_whole(&lines[at + 1..], why)
}

fn of_two_that_panic_at_once_one_reports() -> Result<()> {
    let lines = lines("panic-on-two")?;
    is_whole(&lines, "self-test, on two CPUs at once")?;
    let owner = if lines.iter().any(|line| line.contains("panic on CPU 0")) { 0 } else { 1 };
    let other = format!("CPU {}: failed too, and stopped", 1 - owner);
    ensure!(lines.iter().any(|line| line.contains(&other)), "no {other:?} in {lines:#?}");
    Ok(())
}

fn a_masked_cpu_is_stopped_by_an_nmi() -> Result<()> {
    let lines = lines("panic-beside-masked")?;
    is_whole(&lines, "panic on CPU 0: self-test, beside one that does not listen")?;
    let is_stopped = |line: &String| line.contains("CPU 1: stopped by an NMI");
    ensure!(lines.iter().any(is_stopped), "{lines:#?}");
    Ok(())
}

fn a_cpu_that_answers_nothing_is_named() -> Result<()> {
    let lines = lines("panic-beside-unresponsive")?;
    is_whole(&lines, "panic on CPU 0: self-test, beside one that does not listen")?;
    ensure!(lines.iter().any(|line| line.contains("CPU 1: NOT ANSWERING")), "{lines:#?}");
    Ok(())
}

/// Makes a host panic that was started with `selftest=panic-when-asked`.
fn panics_now(host: &mut Host) -> Result<()> {
    // There is no answer to this question.
    let _ =
        host.client()?.request_within(Duration::from_millis(100), RequestBody::Events { from_sequence: 0, limit: 1 });
    host.logs(&["panic on CPU 0: self-test, as asked"])?;
    host.logs(&[END])
}

fn guests_end_with_their_host() -> Result<()> {
    let recipe = Recipe::new().with_fault_points().options("selftest=panic-when-asked panic=halt");
    let recipe = GUESTS.iter().try_fold(recipe, |recipe, name| recipe.beating(name))?;
    let mut host = recipe.start()?;
    for name in GUESTS {
        host.beats(name, 2)?;
    }
    panics_now(&mut host)?;
    host.logs(&["CPU 1: stopped"])?;
    // Output on its way may still come.
    host.listen(Duration::from_millis(500));
    let beats = |host: &Host| GUESTS.iter().map(|name| host.seen.heartbeats(name).len()).sum::<usize>();
    let (before, time) = (beats(&host), lab::CpuTime::of(host.pid())?);
    host.listen(Duration::from_secs(2));
    ensure!(beats(&host) == before, "a guest goes on without its host:\n{}", host.seen);
    let spent = lab::CpuTime::of(host.pid())?.since(&time);
    ensure!(spent <= Duration::from_millis(100), "a host that has ended takes {spent:?} of two seconds");
    serves_its_log(&mut host)?;
    host.powers_off()
}

/// The control channel of a host that has ended.
fn serves_its_log(host: &mut Host) -> Result<()> {
    let info = host.client()?.info()?;
    ensure!(info.version.contains("this host has ended") && info.cpus == 2, "{info:?}");
    let (mut texts, mut next) = (Vec::new(), 0);
    let mut client = host.client()?;
    loop {
        let (records, after) = client.log(next)?;
        texts.extend(records.iter().map(|record| record.text.to_string()));
        if records.is_empty() {
            break;
        }
        next = after;
    }
    ensure!(texts.len() as u64 == next, "{texts:#?}");
    for part in ["starts", "self-test, as asked", END] {
        ensure!(texts.iter().any(|text| text.contains(part)), "no {part:?} in {texts:#?}");
    }
    let refusal = host.refusal(RequestBody::VmStart { name: GUESTS[0].to_owned() })?;
    ensure!(refusal.code == RefusalCode::Failed && refusal.reason.contains("has ended"), "{refusal:?}");
    Ok(())
}

fn a_host_that_has_ended_sleeps_and_answers_keys() -> Result<()> {
    let mut host = answers_keys("halt")?;
    let seconds = host.cpu_seconds(Duration::from_secs(2))?;
    ensure!(seconds <= 0.1, "a host that has ended takes {seconds} s of two seconds");
    resets_by_key(&mut host)
}

fn a_host_that_spins_answers_keys_too() -> Result<()> {
    let mut host = answers_keys("spin")?;
    let seconds = host.cpu_seconds(Duration::from_secs(2))?;
    ensure!(seconds >= 0.5, "the baseline takes {seconds} s of two seconds: it does not spin");
    resets_by_key(&mut host)
}

/// A host of two CPUs that has ended, after its keys h, r and l.
fn answers_keys(action: &str) -> Result<TypedHost> {
    let recipe = Recipe::new().with_fault_points().options(&format!("selftest=panic-on-two panic={action}"));
    let mut host =
        TypedHost::start(&recipe, |machine| machine.extra.extend(["-action", "reboot=reset"].map(Into::into)))?;
    let report = host.logs(END)?;
    let rip = report.iter().find_map(|line| line.split_once("rip ")).context("no registers")?.1.to_owned();
    host.types("?")?;
    host.logs("b reboot now, l print the log again, r registers, h help")?;
    host.types("xyr")?;
    ensure!(host.logs("stopped at rip ")?.iter().any(|line| line.contains(&rip)), "{:#?}", host.seen);
    host.types("l")?;
    let log = host.logs(END)?;
    ensure!(log.iter().any(|line| line.contains("Baton 0.1.0 starts")), "{log:#?}");
    // The rest of the log again: help and registers, as they were printed.
    host.logs("stopped at rip ")?;
    Ok(host)
}

fn resets_by_key(host: &mut TypedHost) -> Result<()> {
    host.types("b")?;
    host.logs("Baton 0.1.0 starts")?;
    host.logs("before this host: panic on CPU").map(drop)
}

/// Starts a machine without guests that is reset where others would end.
fn resettable(options: &str) -> Result<Host> {
    let folder = folder()?;
    let recipe = Recipe::new().with_fault_points().options(options);
    let mut machine = recipe.machine(folder.path(), None)?;
    machine.extra.extend(["-action", "reboot=reset"].map(Into::into));
    let dir = RunDir::take_at(&folder.path().join("run"))?;
    Ok(Host::new(Lab::start(&machine, dir)?, folder))
}

fn the_next_host_reports_the_end_of_the_one_before() -> Result<()> {
    let mut host = resettable("selftest=panic-when-asked panic=reboot:1")?;
    ensure!(host.client()?.previous()?.lines.is_empty(), "the first host has no predecessor");
    panics_now(&mut host)?;
    host.logs(&["the machine is reset in 1 s"])?;
    host.logs(&["before this host: panic on CPU 0: self-test, as asked"])?;
    let is_up = |seen: &e2e::transcript::Transcript| {
        seen.host.iter().filter(|line| line.contains("CPUs: 2 online")).count() == 2
    };
    host.wait("the second host", is_up)?;
    host.wait_a_moment()?;
    let lines = host.client()?.previous()?.lines;
    let has = |part: &str| lines.iter().any(|line| line.contains(part));
    for part in [
        "ended on CPU 0",
        "self-test, as asked at hypervisor/src/",
        "rip ",
        " #1 0xffffffff8",
        "Baton 0.1.0 starts",
        END,
    ] {
        ensure!(has(part), "no {part:?} in {lines:#?}");
    }
    host.powers_off()
}

fn a_hypervisor_below_is_notified_through_pvpanic() -> Result<()> {
    let folder = folder()?;
    let recipe = Recipe::new().with_fault_points().options("selftest=panic panic=halt");
    let mut machine = recipe.machine(folder.path(), None)?;
    machine.extra.extend(["-device", "pvpanic", "-action", "panic=exit-failure"].map(Into::into));
    let dir = RunDir::take_at(&folder.path().join("run"))?;
    let mut host = Host::new(Lab::start(&machine, dir)?, folder);
    let ending = host.ending()?;
    ensure!(matches!(ending, Ending::Emulator { status: 1, .. }), "{ending}:\n{}", host.seen);
    is_whole(&host.seen.host, "panic on CPU 0: self-test")
}

/// The emulator's exit status is that of a power-off.
fn a_reset_is_no_power_off() -> Result<()> {
    let folder = folder()?;
    let machine = Recipe::new().machine(folder.path(), None)?;
    let machine = Machine { image: built("guests/hostile.elf")?, cmdline: "do=triple-fault".to_owned(), ..machine };
    let dir = RunDir::take_at(&folder.path().join("run"))?;
    let mut host = Host::new(Lab::start(&machine, dir)?, folder);
    let ending = host.ending()?;
    ensure!(ending == Ending::Reset, "{ending}: {}", host.seen);
    Ok(())
}
