// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests side by side, and what an operator does to one of them without the other noticing.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::host::Host;
use e2e::recipe::{Recipe, folder, program};
use e2e::transcript::Transcript;
use e2e::{code, dmesg};
use lab::Ending;
use wire::{EventKind, RefusalCode, RequestBody, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("two_guests_run_side_by_side", two_guests_run_side_by_side),
    ("a_paused_guest_stands_still_and_goes_on_where_it_was", a_paused_guest_stands_still_and_goes_on_where_it_was),
    ("a_guest_is_reset_stopped_and_started_beside_another", a_guest_is_reset_stopped_and_started_beside_another),
    ("a_shell_answers_what_is_typed", a_shell_answers_what_is_typed),
    ("a_guest_that_reboots_comes_back", a_guest_that_reboots_comes_back),
    ("a_panic_that_is_reported_is_an_event_and_a_state", a_panic_that_is_reported_is_an_event_and_a_state),
];

const A: &str = "a";
const B: &str = "b";

/// Two guests with a heartbeat, both alive.
fn pair() -> Result<Host> {
    let mut host = Recipe::new().beating(A)?.beating(B)?.start()?;
    host.beats(A, 1)?;
    host.beats(B, 1)?;
    Ok(host)
}

/// Not one heartbeat is missing or comes twice: this guest has run without a break or a restart.
fn is_unbroken(seen: &Transcript, guest: &str) -> Result<()> {
    let beats = seen.heartbeats(guest);
    let expected: Vec<u64> = (0..beats.len() as u64).collect();
    ensure!(beats == expected, "the heartbeats of {guest} are broken: {beats:?}\n{seen}");
    let console = seen.console(guest);
    let complaints = dmesg::suspicious(&console);
    ensure!(complaints.is_empty(), "{guest} complains: {complaints:#?}");
    Ok(())
}

fn named(name: &str) -> String {
    name.to_owned()
}

fn two_guests_run_side_by_side() -> Result<()> {
    let mut host = pair()?;
    let (a, b) = (host.vm(A)?, host.vm(B)?);
    ensure!(a.state == VmState::Running && b.state == VmState::Running, "{a:?} {b:?}");
    ensure!(a.cpus != b.cpus, "both run on {:?}", a.cpus);
    for _ in 0..5 {
        host.beats(A, 4)?;
        host.beats(B, 4)?;
    }
    is_unbroken(&host.seen, A)?;
    is_unbroken(&host.seen, B)?;
    host.powers_off()
}

fn a_paused_guest_stands_still_and_goes_on_where_it_was() -> Result<()> {
    let mut host = pair()?;
    host.order(RequestBody::VmPause { name: named(A) })?;
    host.event(&EventKind::VmPaused { name: named(A) })?;
    host.state(A, VmState::Paused)?;
    // Its earlier output is still on its way.
    host.listen(Duration::from_millis(300));
    let before = host.seen.heartbeats(A).len();
    let exits = host.vm(A)?.exits_total;
    host.beats(B, 20)?;
    ensure!(host.seen.heartbeats(A).len() == before, "a paused guest goes on:\n{}", host.seen);
    ensure!(host.vm(A)?.exits_total == exits, "a paused guest leaves its CPU");
    let refusal = host.refusal(RequestBody::VmPause { name: named(A) })?;
    ensure!(refusal.code == RefusalCode::WrongState, "{refusal}");
    host.order(RequestBody::VmResume { name: named(A) })?;
    host.event(&EventKind::VmResumed { name: named(A) })?;
    host.state(A, VmState::Running)?;
    host.beats(A, 10)?;
    host.beats(B, 10)?;
    is_unbroken(&host.seen, A)?;
    is_unbroken(&host.seen, B)?;
    host.powers_off()
}

fn a_guest_is_reset_stopped_and_started_beside_another() -> Result<()> {
    let mut host = pair()?;
    host.greets(A)?;
    host.order(RequestBody::VmReset { name: named(A) })?;
    host.event(&EventKind::VmReset { name: named(A) })?;
    host.greets(A)?;
    host.order(RequestBody::VmStop { name: named(A) })?;
    let stopped = host.state(A, VmState::Stopped)?;
    ensure!(stopped.reason.as_deref() == Some("stopped by the operator"), "{stopped:?}");
    let free = host.client()?.info()?.memory_free_bytes;
    host.listen(Duration::from_millis(300));
    let beats = host.seen.heartbeats(A).len();
    host.beats(B, 20)?;
    ensure!(host.seen.heartbeats(A).len() == beats, "a stopped guest goes on");
    for order in [RequestBody::VmStop { name: named(A) }, RequestBody::VmReset { name: named(A) }] {
        let refusal = host.refusal(order)?;
        ensure!(refusal.code == RefusalCode::WrongState && !refusal.hint.is_empty(), "{refusal}");
    }
    host.order(RequestBody::VmStart { name: named(A) })?;
    host.greets(A)?;
    let used = free.saturating_sub(host.client()?.info()?.memory_free_bytes);
    ensure!(used >= 16 << 20, "a guest of 16 MiB takes {used} bytes, so its memory was not given back when it stopped");
    is_unbroken(&host.seen, B)?;
    host.powers_off()
}

fn a_shell_answers_what_is_typed() -> Result<()> {
    let mut host = Recipe::new().powers_off().linux(A, "shell,poweroff")?.start()?;
    host.greets(A)?;
    host.guest_prints(A, "# ")?;
    // The terminal's echo is not the shell's result.
    host.types(A, "echo the answer is $((6 * 7))\n")?;
    host.guest_prints(A, "the answer is 42")?;
    // Longer than the serial port's FIFO, and than what waits for a guest at once.
    let long = "x".repeat(900);
    host.types(A, &format!("echo {long} | wc -c\n"))?;
    host.guest_prints(A, "\n901")?;
    host.types(A, "exit\n")?;
    ensure!(host.ending()? == Ending::PoweredOff, "{}", host.seen);
    Ok(())
}

fn a_guest_that_reboots_comes_back() -> Result<()> {
    let mut host = Recipe::new().linux(A, "reboot")?.beating(B)?.start()?;
    host.greets(A)?;
    host.event(&EventKind::VmReset { name: named(A) })?;
    host.greets(A)?;
    host.order(RequestBody::VmStop { name: named(A) })?;
    host.state(A, VmState::Stopped)?;
    host.beats(B, 1)?;
    is_unbroken(&host.seen, B)?;
    host.powers_off()
}

/// A program of a few instructions does what a kernel's driver for the panic device would.
fn a_panic_that_is_reported_is_an_event_and_a_state() -> Result<()> {
    let folder = folder()?;
    let kernel = folder.path().join("panics");
    // mov dx, 0x505; mov al, 1; out dx, al; and then spin.
    std::fs::write(&kernel, code::multiboot(&[0x66, 0xba, 0x05, 0x05, 0xb0, 0x01, 0xee, 0xeb, 0xfe]))?;
    let mut host = Recipe::new().guest(program(A, kernel)).beating(B)?.start()?;
    host.event(&EventKind::VmPanicked { name: named(A) })?;
    let vm = host.state(A, VmState::Panicked)?;
    ensure!(vm.reason.is_some(), "{vm:?}");
    host.order(RequestBody::VmReset { name: named(A) })?;
    host.event(&EventKind::VmReset { name: named(A) })?;
    host.event(&EventKind::VmPanicked { name: named(A) })?;
    host.order(RequestBody::VmStop { name: named(A) })?;
    host.state(A, VmState::Stopped)?;
    host.beats(B, 5)?;
    is_unbroken(&host.seen, B)?;
    host.powers_off()
}
