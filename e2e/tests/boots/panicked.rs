// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests with kernels that have panicked or hang: noticed, kept from their neighbours' time, and what becomes of them.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use bundle::OnPanic;
use e2e::host::Host;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder, linux, program, tiny};
use e2e::{code, gdb};
use libtest_mimic::Trial;
use wire::{EventKind, ReplyBody, RequestBody, VmState};

use super::Rule;

pub mod paused;

pub const RULES: &[Rule] = &[
    ("a_guest_that_hangs_is_noticed_and_throttled", a_guest_that_hangs_is_noticed_and_throttled),
    ("a_wrong_guess_is_corrected", a_wrong_guess_is_corrected),
    ("a_panicked_guest_is_stopped_where_that_is_wanted", a_panicked_guest_is_stopped_where_that_is_wanted),
    ("a_panicked_guest_is_reset_where_that_is_wanted", a_panicked_guest_is_reset_where_that_is_wanted),
    ("a_panicked_guest_is_held_until_it_is_resumed", a_panicked_guest_is_held_until_it_is_resumed),
    ("busy_guests_are_left_alone", || busy_guests_are_left_alone(BUSY_TIME)),
];

/// For the long suite.
pub const LONG_RULES: &[Rule] =
    &[("busy_guests_are_left_alone_for_long", || busy_guests_are_left_alone(LONG_BUSY_TIME))];

/// For machines with gdb.
pub const GDB_RULES: &[Rule] = &[
    ("gdb_finds_a_guests_registers_and_memory_in_its_core", gdb_finds_a_guests_registers_and_memory_in_its_core),
    ("gdb_finds_what_a_held_guest_maps", gdb_finds_what_a_held_guest_maps),
];

const A: &str = "a";
const B: &str = "b";
/// Time for which busy guests are watched; `bench guest-panic --minutes 60` watches them for an hour.
const BUSY_TIME: Duration = Duration::from_secs(10);
const LONG_BUSY_TIME: Duration = Duration::from_secs(60);

/// Linux panics with one CPU or four, reports it by a driver or not, and reboots or stays.
type Panics = (u32, bool, bool);

/// Each of these at least once.
const USUAL: [Panics; 2] = [(1, false, true), (4, true, false)];
/// The other combinations, for the long suite.
const OTHERS: [Panics; 6] =
    [(1, false, false), (1, true, false), (1, true, true), (4, false, false), (4, false, true), (4, true, true)];

pub fn trials() -> Vec<Trial> {
    USUAL.into_iter().map(|it| super::trial("panicked", &name(it), move || panics_so(it))).collect()
}

pub fn long_tests() -> Vec<Trial> {
    OTHERS.into_iter().map(|it| super::long_test("panicked", &name(it), move || panics_so(it))).collect()
}

fn name((vcpus, reports, reboots): Panics) -> String {
    let driver = if reports { "with the driver" } else { "without the driver" };
    let then = if reboots { "reboots itself all the same" } else { "is noticed and throttled" };
    format!("a kernel of {vcpus} that panicked {driver} {then}")
}

fn panics_so((vcpus, reports, reboots): Panics) -> Result<()> {
    if reboots { self::reboots(vcpus, reports) } else { stays(vcpus, reports) }
}

fn named(name: &str) -> String {
    name.to_owned()
}

fn panics(vcpus: u32, reports: bool, seconds: u32) -> Result<Guest> {
    let tasks = if reports { "pvpanic,panic" } else { "panic" };
    let mut guest = Guest { vcpus, ..linux(A, Kernel::Default, tasks)? };
    guest.cmdline.push_str(&format!(" panic={seconds}"));
    Ok(guest)
}

/// A guest that panics beside one that is well.
fn beside_another(guest: Guest) -> Result<Host> {
    Recipe::new().guest(guest).beating(B)?.start()
}

fn stays(vcpus: u32, reports: bool) -> Result<()> {
    let mut host = beside_another(panics(vcpus, reports, 0)?)?;
    host.event(&EventKind::VmPanicked { name: named(A) })?;
    // Which of its CPUs panicked is the guest's choice.
    host.wait("a throttled CPU", |seen| {
        seen.events.iter().any(|event| matches!(event, EventKind::VmThrottled { name, .. } if name == A))
    })?;
    host.guest_prints(A, "end Kernel panic")?;
    let vm = host.state(A, VmState::Panicked)?;
    ensure!(vm.throttled_since_ns.is_some_and(|since| since >= vm.since_ns), "{vm:?}");
    let reason = vm.reason.clone().unwrap_or_default();
    // Only the driver reports. Its loader's own line on the console may be torn by one of the kernel's.
    ensure!(reason.contains(if reports { "reported" } else { "only waits" }), "{reason}");
    host.beats(B, 40)?;
    ensure!(!has_recovered(&host, A), "it was let go:\n{}", host.seen);
    host.order(RequestBody::VmReset { name: named(A) })?;
    host.event(&EventKind::VmReset { name: named(A) })?;
    host.event(&EventKind::VmPanicked { name: named(A) })?;
    host.order(RequestBody::VmStop { name: named(A) })?;
    host.state(A, VmState::Stopped)?;
    ensure!(!is_accused(&host, B), "{}", host.seen);
    host.powers_off()
}

fn reboots(vcpus: u32, reports: bool) -> Result<()> {
    let mut host = beside_another(panics(vcpus, reports, 10)?)?;
    host.event(&EventKind::VmPanicked { name: named(A) })?;
    host.guest_prints(A, "Rebooting in 10 seconds")?;
    host.event(&EventKind::VmReset { name: named(A) })?;
    host.greets(A)?;
    ensure!(is_accused(&host, A) && !is_accused(&host, B), "{}", host.seen);
    host.powers_off()
}

/// Returns whether a guest was reported to be throttled.
fn is_accused(host: &Host, guest: &str) -> bool {
    host.seen.events.iter().any(|event| match event {
        EventKind::VmThrottled { name, .. } | EventKind::VmHung { name, .. } => name == guest,
        _ => false,
    })
}

fn has_recovered(host: &Host, guest: &str) -> bool {
    host.seen.events.iter().any(|event| matches!(event, EventKind::VmRecovered { name, .. } if name == guest))
}

fn a_guest_that_hangs_is_noticed_and_throttled() -> Result<()> {
    let hangs = Guest { hung_s: 1, ..tiny(A, "hostile", "do=hang-cli")? };
    let mut host = beside_another(hangs)?;
    host.event(&EventKind::VmHung { name: named(A), vcpu: 0 })?;
    host.event(&EventKind::VmThrottled { name: named(A), vcpu: 0 })?;
    let vm = host.state(A, VmState::Hung)?;
    ensure!(vm.throttled_since_ns.is_some() && vm.reason.is_some(), "{vm:?}");
    host.beats(B, 10)?;
    host.order(RequestBody::VmStop { name: named(A) })?;
    let vm = host.state(A, VmState::Stopped)?;
    ensure!(vm.throttled_since_ns.is_none(), "{vm:?}");
    host.seen.no_heartbeat_is_missing(B)?;
    host.powers_off()
}

/// It waits for seconds on end in a loop that reads the clock, and then prints: a driver does no worse.
fn a_wrong_guess_is_corrected() -> Result<()> {
    const WAITS_AND_PRINTS: [u8; 22] = [
        0x0f, 0x31, 0x89, 0xd3, 0x83, 0xc3, 0x02, // rdtsc; mov ebx, edx; add ebx, 2
        0x0f, 0x31, 0x39, 0xda, 0x72, 0xfa, // rdtsc; cmp edx, ebx; jb back
        0x66, 0xba, 0xf8, 0x03, 0xb0, b'x', 0xee, // mov dx, 0x3f8; mov al, 'x'; out dx, al
        0xeb, 0xea, // jmp to the beginning
    ];
    let folder = folder()?;
    let kernel = folder.path().join("waits");
    std::fs::write(&kernel, code::multiboot(&WAITS_AND_PRINTS))?;
    let mut host = beside_another(program(A, kernel))?;
    host.event(&EventKind::VmPanicked { name: named(A) })?;
    host.event(&EventKind::VmThrottled { name: named(A), vcpu: 0 })?;
    host.event(&EventKind::VmRecovered { name: named(A), vcpu: 0 })?;
    host.guest_prints(A, "x")?;
    let vm = host.state(A, VmState::Running)?;
    ensure!(vm.throttled_since_ns.is_none(), "{vm:?}");
    host.seen.no_heartbeat_is_missing(B)?;
    host.powers_off()
}

/// A program of a few instructions that reports a panic and spins.
fn reports_and_spins(folder: &std::path::Path, on_panic: OnPanic) -> Result<Guest> {
    let kernel = folder.join("panics");
    // mov dx, 0x505; mov al, 1; out dx, al; and then spin.
    std::fs::write(&kernel, code::multiboot(&[0x66, 0xba, 0x05, 0x05, 0xb0, 0x01, 0xee, 0xeb, 0xfe]))?;
    Ok(Guest { on_panic, ..program(A, kernel) })
}

fn a_panicked_guest_is_stopped_where_that_is_wanted() -> Result<()> {
    let folder = folder()?;
    let mut host = beside_another(reports_and_spins(folder.path(), OnPanic::Stop)?)?;
    host.event(&EventKind::VmPanicked { name: named(A) })?;
    let reason = host.state(A, VmState::Stopped)?.reason.unwrap_or_default();
    ensure!(reason == "stopped by on_panic: its kernel has reported a panic", "{reason}");
    host.beats(B, 5)?;
    host.powers_off()
}

fn a_panicked_guest_is_reset_where_that_is_wanted() -> Result<()> {
    let folder = folder()?;
    let mut host = beside_another(reports_and_spins(folder.path(), OnPanic::Reset)?)?;
    for _ in 0..3 {
        host.event(&EventKind::VmPanicked { name: named(A) })?;
        host.event(&EventKind::VmReset { name: named(A) })?;
    }
    host.beats(B, 5)?;
    host.powers_off()
}

fn a_panicked_guest_is_held_until_it_is_resumed() -> Result<()> {
    let folder = folder()?;
    let mut host = beside_another(reports_and_spins(folder.path(), OnPanic::Dump)?)?;
    host.event(&EventKind::VmPanicked { name: named(A) })?;
    host.event(&EventKind::VmHeld { name: named(A) })?;
    let held = host.state(A, VmState::Panicked)?;
    ensure!(held.reason.as_deref().is_some_and(|reason| reason.contains("baton vm dump a")), "{held:?}");
    host.beats(B, 5)?;
    ensure!(host.vm(A)?.exits_total == held.exits_total, "a held guest runs");
    host.order(RequestBody::VmResume { name: named(A) })?;
    host.event(&EventKind::VmResumed { name: named(A) })?;
    while host.vm(A)?.exits_total == held.exits_total {
        host.wait_a_moment()?;
    }
    host.order(RequestBody::VmReset { name: named(A) })?;
    host.event(&EventKind::VmPanicked { name: named(A) })?;
    host.event(&EventKind::VmHeld { name: named(A) })?;
    // Its end gives back what was kept for a core file.
    host.order(RequestBody::VmStop { name: named(A) })?;
    host.state(A, VmState::Stopped)?;
    host.powers_off()
}

/// Spin loops, user space that polls, a kernel that idles by polling, and a mix of everything.
fn busy_guests_are_left_alone(time: Duration) -> Result<()> {
    let busy = |name: &str, vcpus, tasks: &str, option: &str| -> Result<Guest> {
        let mut guest = Guest { vcpus, ..linux(name, Kernel::Default, tasks)? };
        guest.cmdline.push_str(option);
        Ok(guest)
    };
    let for_ever = "86400000";
    let mut host = Recipe::new()
        .memory_mib(2048)
        .guest(busy("spin", 1, &format!("compute:{for_ever}"), "")?)
        .guest(busy("poll", 1, &format!("poll:{for_ever}"), "")?)
        .guest(busy("mix", 2, &format!("mix:{for_ever}"), "")?)
        .guest(busy("idle", 1, "wait", " idle=poll")?)
        .start()?;
    host.allow(time + Duration::from_secs(120));
    for name in ["spin", "poll", "mix", "idle"] {
        host.greets(name)?;
    }
    host.listen(time);
    for name in ["spin", "poll", "mix", "idle"] {
        ensure!(!is_accused(&host, name), "{name} is well:\n{}", host.seen);
        let vm = host.vm(name).with_context(|| host.seen.to_string())?;
        ensure!(vm.state == VmState::Running, "{vm:?}: {}", host.seen);
    }
    host.powers_off()
}

fn gdb_finds_a_guests_registers_and_memory_in_its_core() -> Result<()> {
    const SETS_AND_SPINS: [u8; 28] = [
        0xb8, 0x11, 0x11, 0x22, 0x22, // mov eax, 0x22221111
        0xbb, 0x33, 0x33, 0x44, 0x44, // mov ebx, 0x44443333
        0xb9, 0x55, 0x55, 0x66, 0x66, // mov ecx, 0x66665555
        0xbd, 0x77, 0x77, 0x88, 0x08, // mov ebp, 0x08887777
        0x89, 0x1d, 0x00, 0x00, 0x50, 0x00, // mov [0x500000], ebx
        0xeb, 0xfe, // jmp to itself
    ];
    let folder = folder()?;
    let kernel = folder.path().join("sets");
    std::fs::write(&kernel, code::multiboot(&SETS_AND_SPINS))?;
    let mut host = beside_another(Guest { on_panic: OnPanic::Ignore, ..program(A, kernel) })?;
    host.event(&EventKind::VmStarted { name: named(A) })?;
    host.beats(B, 3)?;
    let core = folder.path().join("a.core");
    let dumped = baton::dump::dump(&mut host.client()?, A, 1, &core, |_, _| (), &|| false)?;
    ensure!(dumped.memory_bytes >= 16 << 20 && dumped.fetched_bytes < 1 << 20, "{dumped:?}");
    let output = gdb::ask(&core, &["info registers rax rbx rcx rbp", "x/1xw 0x500000", "x/2xb $rip"])?;
    for expected in ["0x22221111", "0x44443333", "0x66665555", "0x8887777", "0x500000:\t0x44443333", "0xeb\t0xfe"] {
        ensure!(output.contains(expected), "no {expected:?} in the output of gdb:\n{output}");
    }
    // It ran before, and runs on.
    host.state(A, VmState::Running)?;
    host.powers_off()
}

/// A whole Linux takes too long for this line; a 64-bit program with page tables of its own is as good.
fn gdb_finds_what_a_held_guest_maps() -> Result<()> {
    let hangs = Guest { hung_s: 1, on_panic: OnPanic::Dump, ..tiny(A, "hostile", "do=hang-cli")? };
    let mut host = beside_another(hangs)?;
    host.event(&EventKind::VmHung { name: named(A), vcpu: 0 })?;
    host.event(&EventKind::VmHeld { name: named(A) })?;
    let folder = folder()?;
    let core = folder.path().join("a.core");
    let mut client = host.client()?;
    let dumped = baton::dump::dump(&mut client, A, 1, &core, |_, _| (), &|| false)?;
    ensure!(dumped.mappings > 0, "{dumped:?}");
    let ReplyBody::Registers(registers) = client.request(RequestBody::VmRegisters { name: named(A), vcpu: 0 })? else {
        anyhow::bail!("the host has no registers of a held guest");
    };
    let output = gdb::ask(&core, &["info registers rip rsp", "x/4i $rip", "x/1xg $rsp"])?;
    for value in [registers.rip, registers.gprs[4]] {
        ensure!(output.contains(&format!("{value:#x}")), "no {value:#x} in the output of gdb:\n{output}");
    }
    // Its loop is a PAUSE and a jump back to it.
    let is_loop = ["pause", "jmp"].iter().any(|instruction| output.contains(instruction));
    ensure!(is_loop && !output.contains("Cannot access"), "gdb does not find its loop:\n{output}");
    // A guest that is held stays held until a client orders how it goes on.
    host.state(A, VmState::Hung)?;
    host.beats(B, 3)?;
    host.seen.no_heartbeat_is_missing(B)?;
    host.powers_off()
}
