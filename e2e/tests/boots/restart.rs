// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warm restarts: the image is replaced by the one in the bundle, and guests start again.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use baton::config::{Guest, Image};
use baton::size::Size;
use e2e::host::{BOOT_LIMIT, Host};
use e2e::place::{Emulator, built};
use e2e::recipe::{Recipe, folder, tiny};
use e2e::tool::Operator;
use lab::Ending;
use wire::{EventKind, LogRecord, RefusalCode, ReplyBody, RequestBody, RestartReport, UploadKind, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("two_guests_start_again_on_four_cpus", || two_guests_start_again(Emulator::System)),
    ("many_restarts_in_a_row_lose_nothing", || restarts_in_a_row_lose_nothing(two_keepers()?, RESTARTS)),
    ("parked_cpus_can_be_woken_as_after_a_reset", parked_cpus_can_be_woken_as_after_a_reset),
    ("when_guests_are_done_the_host_restarts_as_often_as_wanted", when_guests_are_done_the_host_restarts),
    ("a_cpu_that_does_not_park_is_left_behind", a_cpu_that_does_not_park_is_left_behind),
    ("a_cpu_that_stays_in_its_mailbox_is_left_behind", a_cpu_that_stays_in_its_mailbox_is_left_behind),
    ("a_cpu_that_was_offlined_stays_offline", a_cpu_that_was_offlined_stays_offline),
    ("one_cpu_restarts_alone", one_cpu_restarts_alone),
    ("the_log_and_its_readers_survive", the_log_and_its_readers_survive),
    ("a_restart_without_an_image_is_refused", a_restart_without_an_image_is_refused),
    ("a_restart_with_a_bad_image_is_refused", a_restart_with_a_bad_image_is_refused),
    ("a_restart_without_memory_for_the_image_is_refused", a_restart_without_memory_is_refused),
    ("the_tool_restarts_a_host", the_tool_restarts_a_host),
];

/// For the long suite.
pub const LONG_RULES: &[Rule] = &[
    ("two_hundred_restarts_in_a_row_lose_nothing", || restarts_in_a_row_lose_nothing(two_keepers()?, LONG_RESTARTS)),
    ("two_hundred_restarts_of_concurrent_cpus_lose_nothing", || {
        restarts_in_a_row_lose_nothing(two_keepers()?.concurrent(), LONG_RESTARTS)
    }),
];

/// For the long suite, with QEMU 10.
pub const X2APIC_LONG_RULES: &[Rule] =
    &[("two_guests_start_again_on_four_cpus_in_x2apic_mode", || two_guests_start_again(Emulator::Ten))];

const A: &str = "a";
const B: &str = "b";

/// Restarts, and returns the new image's report.
fn restart(host: &mut Host) -> Result<RestartReport> {
    match host.client()?.request_within(BOOT_LIMIT, RequestBody::Restart) {
        Ok(ReplyBody::Restarted(report)) => Ok(report),
        Ok(other) => bail!("not the answer to a restart: {other:?}"),
        Err(error) => {
            host.listen(Duration::from_secs(1));
            Err(error).with_context(|| host.seen.to_string())
        }
    }
}

/// One of them is Linux, the other a guest of ours.
fn two_guests_start_again(emulator: Emulator) -> Result<()> {
    let mut host = Recipe::new().cpus(4).on(emulator).linux(A, "heartbeat:100")?.beating(B)?.start()?;
    for generation in 1..=3 {
        for guest in [A, B] {
            host.event(&EventKind::VmStarted { name: guest.to_owned() })?;
            host.greets(guest)?;
            host.beats(guest, 2)?;
        }
        let info = host.client()?.info()?;
        ensure!((info.generation, info.cpus) == (generation, 4), "{info:?}");
        if generation < 3 {
            let report = restart(&mut host)?;
            ensure!((report.generation, report.cpus, report.cpus_lost) == (generation + 1, 4, 0), "{report:?}");
            // In either order: one CPU may start a guest while another opens the control channel.
            ensure!(report.machine_blackout_ns > Some(0) && report.host_blackout_ns > 0, "{report:?}");
            host.event(&EventKind::HostRestarts { generation: generation + 1 })?;
        }
    }
    ensure!(host.seen.host_logged(&["generation 3, handed over by"]), "{}", host.seen);
    host.powers_off()
}

/// Number of restarts in a row, and in the long suite.
const RESTARTS: u64 = 8;
const LONG_RESTARTS: u64 = 200;

/// Clocks are not compared when the machine is powered on: on a crowded machine an emulator may lose a CPU over
/// that, which is not what is checked here.
const OPTIONS: &str = "tsc=skip";

/// Two guests that find their memory and registers fresh, spoil them, and then wait or compute for ever.
fn two_keepers() -> Result<Recipe> {
    let idle = tiny(A, "keeper", "seed=1 do=fresh,stain,wait")?;
    let busy = tiny(B, "keeper", "seed=2 rounds=2000000000 do=fresh,stain,registers")?;
    Ok(Recipe::new().cpus(4).options(OPTIONS).guest(idle).guest(busy))
}

/// Both have started, and found no trace of the guests that were there before.
fn are_fresh(host: &mut Host) -> Result<()> {
    for guest in [A, B] {
        host.event(&EventKind::VmStarted { name: guest.to_owned() })?;
        host.guest_prints(guest, "keeper: fresh: ok")?;
        host.guest_prints(guest, "keeper: stain: ok")?;
    }
    Ok(())
}

fn restarts_in_a_row_lose_nothing(recipe: Recipe, restarts: u64) -> Result<()> {
    let mut host = recipe.start()?;
    host.allow(BOOT_LIMIT + Duration::from_secs(10 * restarts));
    are_fresh(&mut host)?;
    let mut free = None;
    for generation in 2..2 + restarts {
        let report = restart(&mut host)?;
        ensure!((report.generation, report.cpus, report.cpus_lost) == (generation, 4, 0), "{report:?}\n{}", host.seen);
        are_fresh(&mut host)?;
        let first = match free {
            Some(first) => first,
            // CPUs without a guest may still be on their way to where they need their last frame.
            None => {
                host.listen(Duration::from_secs(2));
                *free.insert(host.client()?.info()?.memory_free_bytes)
            }
        };
        has_free(&mut host, first).with_context(|| format!("generation {generation}"))?;
    }
    host.powers_off()
}

/// So much memory is free, at the latest after some seconds.
fn has_free(host: &mut Host, wanted: u64) -> Result<()> {
    let mut free = host.client()?.info()?.memory_free_bytes;
    for _ in 0..100 {
        if free == wanted {
            return Ok(());
        }
        host.listen(Duration::from_millis(50));
        free = host.client()?.info()?.memory_free_bytes;
    }
    bail!("{free} bytes are free, the second generation had {wanted}")
}

fn parked_cpus_can_be_woken_as_after_a_reset() -> Result<()> {
    for policy in ["serial", "parallel"] {
        let mut host = two_keepers()?.options(&format!("{OPTIONS} log=debug smp={policy}")).start()?;
        are_fresh(&mut host)?;
        let report = restart(&mut host)?;
        ensure!((report.cpus, report.cpus_lost) == (4, 0), "{report:?}");
        are_fresh(&mut host)?;
        host.powers_off()?;
    }
    Ok(())
}

fn when_guests_are_done_the_host_restarts() -> Result<()> {
    let recipe = Recipe::new().cpus(4).powers_off().options("restart-after-guests=3 log=debug");
    let mut host = recipe.guest(tiny(A, "keeper", "do=fresh,stain")?).start()?;
    for _ in 0..3 {
        host.guest_prints(A, "keeper: fresh: ok")?;
    }
    ensure!(host.ending()? == Ending::PoweredOff, "{}", host.seen);
    ensure!(host.seen.host_logged(&["generation 3, handed over"]), "{}", host.seen);
    ensure!(!host.seen.host_logged(&["generation 4"]), "{}", host.seen);
    ensure!(host.seen.host_logged(&["bring-up policy: Parallel"]) && host.seen.host_logged(&["bring-up policy: Park"]));
    Ok(())
}

/// One of four CPUs is lost in the restart: it is named, and the host goes on with three, as it does after the
/// next one.
fn loses_one(selftest: &str, complaint: &[&str]) -> Result<()> {
    let mut host = two_keepers()?.with_fault_points().options(&format!("{OPTIONS} selftest={selftest}")).start()?;
    are_fresh(&mut host)?;
    let report = restart(&mut host)?;
    ensure!((report.cpus, report.cpus_lost) == (3, 1), "{report:?}\n{}", host.seen);
    host.logs(complaint)?;
    are_fresh(&mut host)?;
    let report = restart(&mut host)?;
    ensure!((report.cpus, report.cpus_lost) == (3, 0), "{report:?}\n{}", host.seen);
    are_fresh(&mut host)?;
    host.powers_off()
}

fn a_cpu_that_does_not_park_is_left_behind() -> Result<()> {
    loses_one("unresponsive-at-parking", &["CPU 3 (APIC id 3) did not park in time"])
}

fn a_cpu_that_stays_in_its_mailbox_is_left_behind() -> Result<()> {
    loses_one("stuck-in-mailbox", &["CPU 3 (APIC id 3) did not come further than first sign of life"])
}

fn a_cpu_that_was_offlined_stays_offline() -> Result<()> {
    let mut host = two_keepers()?.start()?;
    are_fresh(&mut host)?;
    host.order(RequestBody::CpuOffline { index: 1 })?;
    let report = restart(&mut host)?;
    ensure!((report.cpus, report.cpus_lost) == (3, 0), "{report:?}");
    are_fresh(&mut host)?;
    host.order(RequestBody::CpuOnline { index: 1 })?;
    let report = restart(&mut host)?;
    ensure!((report.cpus, report.cpus_lost) == (4, 0), "{report:?}");
    are_fresh(&mut host)?;
    host.powers_off()
}

fn one_cpu_restarts_alone() -> Result<()> {
    let mut host = two_keepers()?.cpus(1).start()?;
    are_fresh(&mut host)?;
    let report = restart(&mut host)?;
    ensure!((report.cpus, report.cpus_lost) == (1, 0), "{report:?}");
    are_fresh(&mut host)?;
    host.powers_off()
}

fn the_log_and_its_readers_survive() -> Result<()> {
    let mut host = two_keepers()?.start()?;
    are_fresh(&mut host)?;
    let before = host.client()?.log(0)?.0;
    let events_before = host.client()?.events(0)?.0;
    restart(&mut host)?;
    are_fresh(&mut host)?;
    let after = host.client()?.log(0)?.0;
    // The clock's rate is better known by then, so times may be others in their last digits.
    let texts = |records: &[LogRecord<'_>]| -> Vec<_> {
        let texts = records.iter().map(|one| (one.cpu, one.sequence, one.text.to_string()));
        texts.collect()
    };
    ensure!(texts(&after).starts_with(&texts(&before)), "the log has changed:\n{before:#?}\n{after:#?}");
    ensure!(after.is_sorted_by_key(|record| record.time_ns), "{after:#?}");
    for cpu in 0..4 {
        let numbers: Vec<u64> = after.iter().filter(|one| one.cpu == cpu).map(|one| one.sequence).collect();
        ensure!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "CPU {cpu}: {numbers:?}");
    }
    let mut printed = host.seen.host.clone();
    printed.sort();
    // Times make every line another one.
    ensure!(printed.windows(2).all(|pair| pair[0] != pair[1]), "a line was printed twice: {printed:#?}");
    ensure!(!host.seen.host_logged(&["records lost"]), "{}", host.seen);
    let (events, _) = host.client()?.events(0)?;
    ensure!(events.starts_with(&events_before) && events.len() > events_before.len(), "{events_before:?}\n{events:?}");
    let is_next = |pair: &[wire::Event]| pair[0].sequence + 1 == pair[1].sequence;
    ensure!(events.windows(2).all(is_next), "events are counted on: {events:?}");
    host.powers_off()
}

/// The restart is refused with a reason that has all of `parts`; guests run on, and no memory is gone.
fn is_refused(mut host: Host, code: RefusalCode, parts: &[&str]) -> Result<()> {
    are_fresh(&mut host)?;
    let free = host.client()?.info()?.memory_free_bytes;
    for _ in 0..3 {
        let refusal = host.refusal(RequestBody::Restart)?;
        let text = refusal.to_string();
        ensure!(refusal.code == code && parts.iter().all(|part| text.contains(part)), "{refusal:?} lacks {parts:?}");
    }
    let info = host.client()?.info()?;
    ensure!(info.memory_free_bytes == free, "{free} bytes were free, now {}", info.memory_free_bytes);
    ensure!((info.generation, info.cpus) == (1, 4), "{info:?}");
    let exits = host.vm(B)?.exits_total;
    while host.vm(B)?.exits_total == exits {
        host.wait_a_moment().context("the guest that computes makes no progress")?;
    }
    ensure!([host.vm(A)?.state, host.vm(B)?.state] == [VmState::Running; 2], "{}", host.seen);
    host.powers_off()
}

fn a_restart_without_an_image_is_refused() -> Result<()> {
    let recipe = Recipe { image: Image::None, ..two_keepers()? };
    is_refused(recipe.start()?, RefusalCode::Invalid, &["the bundle holds no image", "host.toml"])
}

/// An image with these bytes changed: a place and what is written there.
fn spoilt(spoil: impl FnOnce(&mut Vec<u8>)) -> Result<Host> {
    let folder = folder()?;
    let path = folder.path().join("spoilt.elf");
    let mut bytes = fs::read(built("baton.elf")?)?;
    spoil(&mut bytes);
    fs::write(&path, bytes)?;
    Recipe { image: Image::File(path), ..two_keepers()? }.start()
}

/// Returns where the note's content lies: behind its type and its owner's name, which are there once.
fn note(bytes: &[u8]) -> usize {
    const NAME: &[u8] = b"\x01\0\0\0Baton\0\0\0";
    bytes.windows(NAME.len()).position(|window| window == NAME).map_or(0, |at| at + NAME.len())
}

fn a_restart_with_a_bad_image_is_refused() -> Result<()> {
    const MACHINE: usize = 18;
    const OLDEST: usize = 8;
    type Spoil = fn(&mut Vec<u8>);
    let cases: [(Spoil, &[&str]); 5] = [
        (|bytes| bytes.truncate(100_000), &["cut off"]),
        (|bytes| bytes[MACHINE] = 183, &["for another machine", "183"]),
        (
            |bytes| {
                let at = note(bytes);
                bytes[at - 8] = b'b';
            },
            &["no note"],
        ),
        (
            |bytes| {
                let at = note(bytes) + OLDEST;
                bytes[at] = 200;
                bytes[at + 4] = 201;
            },
            &["hand-over versions 200 to 201"],
        ),
        (|bytes| *bytes = b"#!/bin/sh\n".to_vec(), &["no usable ELF file"]),
    ];
    for (spoil, parts) in cases {
        is_refused(spoilt(spoil)?, RefusalCode::Invalid, parts)?;
    }
    Ok(())
}

/// Guests of 2 MiB take all memory but what they leave to the host, and a file that is sent all that it may. Lazy
/// probing would take a table for PCI's memory meanwhile.
fn a_restart_without_memory_is_refused() -> Result<()> {
    let small = |number| {
        let guest = tiny(&format!("small-{number}"), "keeper", "do=wait")?;
        Ok::<_, anyhow::Error>(Guest { memory: Size::mebibytes(2), ..guest })
    };
    let recipe = (0..28).try_fold(Recipe::new().cpus(2).options("pci=all"), |recipe, number| {
        anyhow::Ok(recipe.guest(small(number)?))
    })?;
    let mut host = Recipe { memory: Size::mebibytes(48), ..recipe }.start()?;
    host.logs(&["host has", "in one piece"])?;
    while host.client()?.vms()?.iter().any(|vm| matches!(vm.state, VmState::Loading)) {
        host.wait_a_moment()?;
    }
    let free = host.client()?.info()?.memory_free_bytes;
    // 2 MiB are left to the host.
    let bytes = free - (2 << 20);
    let upload = |bytes| RequestBody::UploadBegin { kind: UploadKind::File, bytes, sha256: [1; 32] };
    let refusal = host.refusal(upload(bytes + 4096))?;
    ensure!(refusal.code == RefusalCode::Exhausted, "{refusal:?}");
    ensure!(matches!(host.client()?.request(upload(bytes))?, ReplyBody::Received { .. }), "the file is refused");
    let refusal = host.refusal(RequestBody::Restart)?;
    ensure!(refusal.code == RefusalCode::Exhausted && refusal.reason.contains("the new image"), "{refusal:?}");
    // The restart has dropped the file.
    let after = host.client()?.info()?.memory_free_bytes;
    ensure!(after == free, "{free} bytes were free, now {after} are:\n{}", host.seen);
    host.powers_off()
}

fn the_tool_restarts_a_host() -> Result<()> {
    let operator = Operator::new("heartbeat:100")?;
    operator.run(&["up", "--detach", "host.toml"])?.well()?;
    let out = operator.run(&["restart", "--yes"])?.well()?;
    ensure!(out.contains("generation   2 (") && out.contains("(0 lost)"), "{out}");
    let report = operator.run(&["restart", "--yes", "--json"])?.well()?;
    ensure!(report.contains("\"generation\":3"), "{report}");
    let info = operator.run(&["info"])?.well()?;
    ensure!(info.contains("generation   3\n"), "{info}");
    shows_the_previous_log(&operator)?;
    operator.run(&["down", "--yes"])?.well()?;
    Ok(())
}

/// `log --previous` shows the first lines of the log, up to the last restart, and nothing from behind it.
fn shows_the_previous_log(operator: &Operator) -> Result<()> {
    let all = operator.run(&["log"])?.well()?;
    let previous = operator.run(&["log", "--previous"])?.well()?;
    ensure!(all.starts_with(&previous), "of\n{all}\nthis is shown as previous:\n{previous}");
    let away = |text: &str| text.lines().filter(|line| line.contains("the host was away for")).count();
    ensure!(previous.contains("Baton ") && (away(&previous), away(&all)) == (1, 2), "{previous}\n-- all:\n{all}");
    let errors = operator.run(&["log", "--previous", "--level", "error"])?.well()?;
    ensure!(!errors.contains(" info "), "{errors}");
    Ok(())
}
