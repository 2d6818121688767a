// SPDX-License-Identifier: MIT OR Apache-2.0
//! Live updates: the image is replaced while guests run.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use baton::config::Guest;
use baton::size::Size;
use bundle::{OnPanic, Pmu};
use e2e::host::{BOOT_LIMIT, Host};
use e2e::place::{Build, Emulator, built};
use e2e::recipe::{Recipe, tiny};
use e2e::tool::Operator;
use e2e::transcript::Transcript;
use wire::{EventKind, RefusalCode, ReplyBody, RequestBody, UpdateBy, UpdateReport, UpdateSteps, UploadKind, VmState};

use super::{Rule, report};

pub mod amid;
pub mod beside;
pub mod confirmed;
pub mod confirmed_bundle;
pub mod faults;
pub mod images;
pub mod linux;
pub mod versions;

pub const RULES: &[Rule] = &[
    ("a_dry_run_changes_nothing", a_dry_run_changes_nothing),
    ("guests_go_on_when_the_image_is_replaced", || guests_go_on(Emulator::System)),
    ("many_updates_in_a_row_lose_nothing", || updates_in_a_row_lose_nothing(Recipe::new(), UPDATES)),
    ("counters_go_on_to_the_last_tick", counters_go_on_to_the_last_tick),
    ("one_cpu_switches_alone", one_cpu_switches_alone),
    ("a_paused_guest_stays_paused_and_one_that_is_held_goes_on_without_its_reader", a_paused_guest_stays_paused),
    ("a_cpu_that_was_offlined_can_come_back_after_an_update", a_cpu_that_was_offlined_comes_back),
    ("an_update_that_finds_no_memory_is_refused", an_update_that_finds_no_memory_is_refused),
    ("the_image_before_can_be_gone_back_to", the_image_before_can_be_gone_back_to),
    ("the_image_and_the_test_image_replace_each_other", the_image_and_the_test_image_replace_each_other),
    ("a_restart_after_an_update_restarts_guests_and_events_are_kept", a_restart_after_an_update_restarts_guests),
    ("the_tool_tries_an_update_and_makes_it", the_tool_updates),
];

/// For the long suite.
pub const LONG_RULES: &[Rule] = &[
    ("a_thousand_updates_in_a_row_lose_nothing", || updates_in_a_row_lose_nothing(Recipe::new(), LONG_UPDATES)),
    ("a_thousand_updates_of_concurrent_cpus_lose_nothing", || {
        updates_in_a_row_lose_nothing(Recipe::new().concurrent(), LONG_UPDATES)
    }),
];

/// Those that want QEMU 10.
pub const X2APIC_RULES: &[Rule] =
    &[("guests_go_on_when_the_image_is_replaced_in_x2apic_mode", || guests_go_on(Emulator::Ten))];

const A: &str = "a";
const B: &str = "b";

/// A guest that halts and one that computes, both on all CPUs.
pub fn two_keepers() -> Result<Recipe> {
    let idle = tiny(A, "keeper", "seed=1 do=fresh,stain,wait")?;
    let busy = tiny(B, "keeper", "seed=2 rounds=2000000000 do=fresh,stain,registers")?;
    Ok(Recipe::new().options("tsc=skip").guest(idle).guest(busy))
}

pub fn are_stained(host: &mut Host) -> Result<()> {
    [A, B].iter().try_for_each(|guest| host.guest_prints(guest, "keeper: stain: ok"))
}

fn tries(host: &mut Host) -> Result<UpdateReport> {
    tries_by(host, UpdateBy::Bundle)
}

fn tries_by(host: &mut Host, by: UpdateBy) -> Result<UpdateReport> {
    match host.client()?.request_within(BOOT_LIMIT, RequestBody::Update { is_dry_run: true, by })? {
        ReplyBody::Updated(report) => Ok(report),
        other => bail!("not the answer to an update: {other:?}"),
    }
}

/// All dry runs leave what they found: memory, generation, guests that go on.
fn a_dry_run_changes_nothing() -> Result<()> {
    let mut host = two_keepers()?.beating("beats")?.start()?;
    are_stained(&mut host)?;
    host.greets("beats")?;
    let before = host.client()?.info()?;
    for _ in 0..3 {
        let report = tries(&mut host)?;
        ensure!(report.is_dry_run && report.generation == 2 && report.slices > 0, "{report:?}");
        ensure!(report.preparation_ns > report.preparation_busy_ns, "{report:?}");
        host.beats("beats", 5)?;
        both_go_on(&mut host)?;
        let info = host.client()?.info()?;
        ensure!((info.generation, info.memory_free_bytes) == (1, before.memory_free_bytes), "{before:?} {info:?}");
    }
    host.powers_off()
}

/// A crowded machine may leave one of the emulator's CPUs without a core for longer than an update waits.
const ATTEMPTS: u32 = 3;

/// Sends an image while the guest that computes is paused: on CPUs that take turns it would take three times as
/// long.
fn send_image(host: &mut Host, file: &[u8]) -> Result<()> {
    send_file(host, UploadKind::Image, file)
}

fn send_file(host: &mut Host, kind: UploadKind, file: &[u8]) -> Result<()> {
    host.order(RequestBody::VmPause { name: B.to_owned() })?;
    host.state(B, VmState::Paused)?;
    host.upload(kind, file)?;
    host.order(RequestBody::VmResume { name: B.to_owned() })?;
    host.state(B, VmState::Running).map(drop)
}

/// Returns whether an update was refused because the emulator's CPUs waited for cores.
fn is_starved(error: &anyhow::Error) -> bool {
    let reason = format!("{error:#}");
    ["waited too long", "was not prepared after"].iter().any(|why| reason.contains(why))
}

/// Updates while guests compare their counters.
const COUNTED_UPDATES: u32 = 5;

/// Updates, and returns the new image's report.
pub(super) fn update(host: &mut Host) -> Result<UpdateReport> {
    update_by(host, UpdateBy::Bundle)
}

pub(super) fn update_by(host: &mut Host, by: UpdateBy) -> Result<UpdateReport> {
    for _ in 0..ATTEMPTS {
        match host.client()?.request_within(BOOT_LIMIT, RequestBody::Update { is_dry_run: false, by }) {
            Ok(ReplyBody::Updated(report)) => return Ok(report),
            Ok(other) => bail!("not the answer to an update: {other:?}"),
            Err(error) if is_starved(&error) => report::note_repeated(&format!("{error:#}")),
            Err(error) => {
                host.listen(Duration::from_secs(1));
                return Err(error).with_context(|| host.seen.to_string());
            }
        }
    }
    bail!("{ATTEMPTS} updates in a row waited too long for a CPU: {}", host.seen)
}

/// Two guests on one CPU and one beside them compare their counters for ever, and state this line by line: nothing is
/// lost of a count, nothing invented, no overflow reported twice or not at all.
fn counters_go_on_to_the_last_tick() -> Result<()> {
    // They resemble a kernel that spins.
    let on_panic = OnPanic::Ignore;
    let watching = |name, pmu| anyhow::Ok(Guest { pmu, on_panic, ..tiny(name, "counters", "do=watch")? });
    let guests = [(A, Pmu::Intel), (B, Pmu::Amd), ("c", Pmu::Intel)];
    // Each image searches for the CPU's counters again, and finds an emulator's.
    let mut recipe = Recipe::new().options("tsc=skip pmu=hardware");
    for (name, pmu) in guests {
        recipe = recipe.guest(watching(name, pmu)?);
    }
    let mut host = recipe.start()?;
    for round in 0..=COUNTED_UPDATES {
        host.allow(BOOT_LIMIT);
        if round > 0 {
            update(&mut host)?;
        }
        guests.iter().try_for_each(|(name, _)| overflows(&mut host, name))?;
        let wrong = guests.iter().find(|(name, _)| host.seen.console(name).contains("WRONG"));
        ensure!(wrong.is_none(), "{wrong:?} differ: {}", host.seen);
    }
    guests.iter().try_for_each(|(name, _)| host.guest_prints(name, "overflows, all agree"))?;
    host.powers_off()
}

/// Waits until the guest's first counter has overflowed some times under the image that runs now.
fn overflows(host: &mut Host, guest: &str) -> Result<()> {
    while host.client()?.figures(guest, 0)?.counters.first().is_none_or(|counter| counter.overflows < 5) {
        host.wait_a_moment().with_context(|| format!("the counter of {guest} does not overflow any more"))?;
    }
    Ok(())
}

/// Both guests are there, and the one that computes has run since; what it finds wrong it reports.
pub fn both_go_on(host: &mut Host) -> Result<()> {
    let before = host.vm(B)?.exits_total;
    for _ in 0..200 {
        host.listen(Duration::from_millis(50));
        let vms = host.client()?.vms()?;
        ensure!(vms.iter().all(|vm| vm.state == VmState::Running), "{vms:?}: {}", host.seen);
        if vms.iter().any(|vm| vm.name == B && vm.exits_total > before) {
            return Ok(());
        }
    }
    bail!("guest {B} makes no progress after the update: {}", host.seen)
}

fn guests_go_on(emulator: Emulator) -> Result<()> {
    let recipe = Recipe::new().on(emulator).options("tsc=skip").linux(A, "heartbeat:50")?.linux(B, "heartbeat:50")?;
    let mut host = Recipe { memory: Size::mebibytes(1024), ..recipe }.start()?;
    for guest in [A, B] {
        host.event(&EventKind::VmStarted { name: guest.to_owned() })?;
        host.greets(guest)?;
        host.beats(guest, 2)?;
    }
    for generation in 2..=4 {
        let report = update(&mut host)?;
        ensure!((report.generation, report.is_dry_run) == (generation, false), "{report:?}");
        ensure!(report.cpus.len() == 2 && report.blackout_ns > 0, "{report:?}");
        let in_order = |steps: &UpdateSteps| {
            let times = [steps.left_ns, steps.saved_ns, steps.gone_ns, steps.arrived_ns, steps.restored_ns];
            times.is_sorted() && steps.restored_ns <= steps.committed_ns && steps.committed_ns <= steps.entered_ns
        };
        ensure!(report.cpus.iter().all(in_order), "{report:?}");
        host.event(&EventKind::HostUpdated { generation })?;
        for guest in [A, B] {
            host.beats(guest, 5)?;
        }
        ensure!(host.client()?.info()?.generation == generation, "{}", host.seen);
    }
    for guest in [A, B] {
        let starts = host.seen.events.iter().filter(|event| **event == EventKind::VmStarted { name: guest.to_owned() });
        ensure!(starts.count() == 1, "{guest} was started again: {}", host.seen);
    }
    host.powers_off()
}

/// Number of updates in a row, and in the long suite.
const UPDATES: u64 = 10;
const LONG_UPDATES: u64 = 1000;

/// A guest checks its memory, its clock and its timers on all its CPUs all the while.
fn updates_in_a_row_lose_nothing(recipe: Recipe, updates: u64) -> Result<()> {
    let idle = tiny(A, "keeper", "seed=1 do=fresh,stain,wait")?;
    let watcher = Guest { vcpus: 2, ..tiny(B, "keeper", "seed=2 cpus=2 do=fresh,watch")? };
    let mut host = recipe.options("tsc=skip").guest(idle).guest(watcher).start()?;
    host.allow(BOOT_LIMIT + Duration::from_secs(5 * updates));
    host.guest_prints(A, "keeper: stain: ok")?;
    host.guest_prints(B, "keeper: watch: 3:")?;
    let mut free = None;
    for generation in 2..2 + updates {
        let report = update(&mut host)?;
        ensure!((report.generation, report.cpus.len()) == (generation, 2), "{report:?}");
        watches_on(&mut host).with_context(|| format!("generation {generation}"))?;
        let now = host.client()?.info()?.memory_free_bytes;
        // The first image has two more things of its own: where CPUs start, and what a loader put somewhere.
        let first = *free.get_or_insert(now);
        ensure!(now == first, "generation {generation}: {now} bytes are free, the second had {first}: {}", host.seen);
    }
    host.powers_off()
}

/// The watcher has found nothing wrong, and has reported so twice since.
fn watches_on(host: &mut Host) -> Result<()> {
    let before = host.seen.console_bytes(B, 0).len();
    let wrong = |seen: &Transcript| String::from_utf8_lossy(seen.console_bytes(B, 0)).contains("WRONG");
    host.wait("two lines of the watcher's", |seen| {
        wrong(seen) || seen.console_bytes(B, before).iter().filter(|byte| **byte == b'\n').count() >= 2
    })?;
    ensure!(!wrong(&host.seen), "{}", host.seen);
    Ok(())
}

fn one_cpu_switches_alone() -> Result<()> {
    let mut host = two_keepers()?.cpus(1).start()?;
    are_stained(&mut host)?;
    for generation in 2..=3 {
        let report = update(&mut host)?;
        ensure!((report.generation, report.cpus.len()) == (generation, 1), "{report:?}");
        both_go_on(&mut host)?;
    }
    host.powers_off()
}

/// It stands still for as long as it is read, across an update too, and goes on by itself when it is not.
fn a_held_guest_goes_on_without_its_reader(host: &mut Host) -> Result<()> {
    let hold = |ms| RequestBody::VmHold { name: B.to_owned(), ms };
    let resumed = EventKind::VmResumed { name: B.to_owned() };
    host.event(&resumed)?;
    host.order(hold(2_000))?;
    host.state(B, VmState::Paused)?;
    for _ in 0..6 {
        host.listen(Duration::from_millis(500));
        host.client()?.request(RequestBody::VmLayout { name: B.to_owned() })?;
    }
    host.event(&resumed)?;
    host.state(B, VmState::Running)?;
    host.order(hold(wire::MAX_HOLD_MS))?;
    host.state(B, VmState::Paused)?;
    update(host)?;
    ensure!(host.vm(B)?.state == VmState::Paused, "the update lets it go on: {}", host.seen);
    host.event(&resumed)?;
    host.state(B, VmState::Running)?;
    both_go_on(host)
}

fn a_paused_guest_stays_paused() -> Result<()> {
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    host.order(RequestBody::VmPause { name: B.to_owned() })?;
    host.state(B, VmState::Paused)?;
    update(&mut host)?;
    let paused = host.vm(B)?;
    ensure!(paused.state == VmState::Paused, "{paused:?}");
    host.listen(Duration::from_millis(500));
    ensure!(host.vm(B)?.exits_total == paused.exits_total, "it runs: {paused:?}");
    host.order(RequestBody::VmResume { name: B.to_owned() })?;
    host.state(B, VmState::Running)?;
    both_go_on(&mut host)?;
    a_held_guest_goes_on_without_its_reader(&mut host)?;
    host.powers_off()
}

fn an_update_that_finds_no_memory_is_refused() -> Result<()> {
    let guest = Guest { memory: Size::mebibytes(96), ..tiny(B, "keeper", "rounds=2000000000 do=registers")? };
    let idle = tiny(A, "keeper", "do=wait")?;
    let recipe = Recipe::new().options("tsc=skip").guest(idle).guest(guest);
    let mut host = Recipe { memory: Size::mebibytes(125), ..recipe }.start()?;
    for guest in [A, B] {
        host.event(&EventKind::VmStarted { name: guest.to_owned() })?;
    }
    let free = host.client()?.info()?.memory_free_bytes;
    for _ in 0..2 {
        let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?;
        ensure!(refusal.code == RefusalCode::Exhausted && refusal.hint.contains("memory"), "{refusal:?}");
        let info = host.client()?.info()?;
        ensure!((info.generation, info.memory_free_bytes) == (1, free), "{free} {info:?}");
    }
    both_go_on(&mut host)?;
    host.powers_off()
}

fn a_cpu_that_was_offlined_comes_back() -> Result<()> {
    let mut host = two_keepers()?.cpus(3).start()?;
    are_stained(&mut host)?;
    host.order(RequestBody::CpuOffline { index: 1 })?;
    let report = update(&mut host)?;
    ensure!(report.cpus.iter().map(|steps| steps.index).eq([0, 2]), "{report:?}");
    both_go_on(&mut host)?;
    host.order(RequestBody::CpuOnline { index: 1 })?;
    let report = update(&mut host)?;
    ensure!(report.cpus.len() == 3, "{report:?}");
    both_go_on(&mut host)?;
    host.powers_off()
}

/// By a copy of its file, however it came: the first image's is in the bundle, the second one's was sent and calls
/// itself another version. A dry run names the one that would be gone back to.
fn the_image_before_can_be_gone_back_to() -> Result<()> {
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Previous })?;
    ensure!(refusal.reason.contains("no image to go back to"), "{refusal:?}");
    let file = baton::image::sealed(of_version(std::fs::read(built("baton.elf")?)?, OTHER_VERSION)?);
    send_image(&mut host, &file)?;
    update_by(&mut host, UpdateBy::Upload)?;
    let mut free = Vec::new();
    for before in [env!("CARGO_PKG_VERSION"), OTHER_VERSION, env!("CARGO_PKG_VERSION")] {
        let trial = tries_by(&mut host, UpdateBy::Previous)?;
        ensure!(trial.new_version == before, "{trial:?}");
        update_by(&mut host, UpdateBy::Previous)?;
        both_go_on(&mut host)?;
        free.push(host.client()?.info()?.memory_free_bytes);
    }
    ensure!(free[0] == free[2], "memory is gone: {free:?}");
    host.powers_off()
}

/// To the test image and back. Their notes distinguish them.
fn the_image_and_the_test_image_replace_each_other() -> Result<()> {
    let mut host = two_keepers()?.next_with_fault_points().start()?;
    are_stained(&mut host)?;
    let there = update(&mut host)?;
    both_go_on(&mut host)?;
    send_image(&mut host, &baton::image::sealed(std::fs::read(Build::Shipped.file()?)?))?;
    let back = update_by(&mut host, UpdateBy::Upload)?;
    both_go_on(&mut host)?;
    ensure!(there.new_build == back.old_build && back.new_build != back.old_build, "{there:?} {back:?}");
    ensure!(back.old_build.ends_with("+test") && !back.new_build.ends_with("+test"), "{back:?}");
    host.powers_off()
}

/// Version that another image gives itself.
const OTHER_VERSION: &str = "9.9.9";

/// The image, which states in its note that it is of this version.
fn of_version(mut image: Vec<u8>, version: &str) -> Result<Vec<u8>> {
    let owner = b"Baton\0\0\0";
    let old = env!("CARGO_PKG_VERSION").as_bytes();
    // Behind the owner: the entry, and the oldest and the newest hand-over version.
    let notes = image.windows(owner.len()).enumerate().filter(|(_, bytes)| bytes == owner).map(|(at, _)| at + 24);
    let at = notes.rev().find(|at| image[*at..].starts_with(old)).context("the image has no note")?;
    ensure!(old.len() == version.len(), "{version} is longer or shorter");
    image[at..at + version.len()].copy_from_slice(version.as_bytes());
    Ok(image)
}

fn a_restart_after_an_update_restarts_guests() -> Result<()> {
    let mut host = two_keepers()?.start()?;
    are_stained(&mut host)?;
    update(&mut host)?;
    match host.client()?.request_within(BOOT_LIMIT, RequestBody::Restart)? {
        ReplyBody::Restarted(report) => ensure!((report.generation, report.cpus) == (3, 2), "{report:?}"),
        other => bail!("not the answer to a restart: {other:?}"),
    }
    are_stained(&mut host)?;
    let report = update(&mut host)?;
    ensure!(report.generation == 4, "{report:?}");
    both_go_on(&mut host)?;
    all_events_are_kept(&mut host)?;
    host.powers_off()
}

/// The image that runs now reports what has happened since the first one, once and in order.
fn all_events_are_kept(host: &mut Host) -> Result<()> {
    let (events, _) = host.client()?.events(0)?;
    ensure!((0..).zip(&events).all(|(number, event)| event.sequence == number), "events are missing: {events:#?}");
    let of_the_host = events.iter().map(|event| event.kind.clone()).filter(|kind| {
        matches!(kind, EventKind::HostReady | EventKind::HostUpdated { .. } | EventKind::HostRestarts { .. })
    });
    let expected = [
        EventKind::HostReady,
        EventKind::HostUpdated { generation: 2 },
        EventKind::HostRestarts { generation: 3 },
        EventKind::HostReady,
        EventKind::HostUpdated { generation: 4 },
    ];
    ensure!(of_the_host.eq(expected), "{events:#?}");
    let kinds: Vec<EventKind> = events.into_iter().map(|event| event.kind).collect();
    ensure!(kinds == host.seen.events, "sent unasked: {:?}", host.seen.events);
    Ok(())
}

fn the_tool_updates() -> Result<()> {
    let operator = Operator::new("heartbeat:100")?;
    operator.run(&["up", "--detach", "host.toml"])?.well()?;
    let out = operator.run(&["update", "--dry-run"])?.well()?;
    ensure!(out.contains("generation   2 (") && out.contains("nothing was replaced"), "{out}");
    let report = operator.run(&["update", "--dry-run", "--json"])?.well()?;
    ensure!(report.contains("\"is_dry_run\":true"), "{report}");
    let out = operator.run(&["update"])?.well()?;
    ensure!(out.contains("generation   2 (") && out.contains("committed") && out.contains("blackout "), "{out}");
    let info = operator.run(&["info"])?.well()?;
    ensure!(info.contains("generation   2\n"), "{info}");
    operator.run(&["down", "--yes"])?.well()?;
    Ok(())
}
