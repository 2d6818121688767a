// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that leave a running host and come back, and what guests notice of it: a pause.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use e2e::dmesg;
use e2e::host::Host;
use e2e::place::{Emulator, Kernel};
use e2e::recipe::{Recipe, linux, tiny};
use wire::{CpuInfo, CpuState, EventKind, RefusalCode, RequestBody, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("a_computing_guest_notices_nothing_but_pauses", a_computing_guest_notices_nothing_but_pauses),
    ("guests_that_move_keep_their_registers", guests_that_move_keep_their_registers),
    ("a_paused_guest_and_one_at_its_prompt_move", a_paused_guest_and_one_at_its_prompt_move),
    ("guests_start_and_end_where_their_cpu_has_gone", guests_start_and_end_where_their_cpu_has_gone),
    ("what_cannot_leave_or_come_is_refused_with_the_reason", what_cannot_leave_or_come_is_refused),
    ("a_cpu_stays_where_the_others_have_no_room", a_cpu_stays_where_the_others_have_no_room),
    ("a_host_uses_the_cpus_it_is_given_and_others_later", a_host_uses_the_cpus_it_is_given),
    ("coming_and_going_a_hundred_times_takes_no_memory", coming_and_going_a_hundred_times_takes_no_memory),
];

/// Those that want QEMU 10.
pub const X2APIC_RULES: &[Rule] =
    &[("a_computing_guest_notices_nothing_in_x2apic_mode", a_computing_guest_notices_nothing_in_x2apic_mode)];

/// Times that CPUs leave and come back under a guest that computes.
const TURNS: u32 = 10;
/// The longest that one thread of a guest may stand still, in milliseconds: far from what its kernel complains of.
const LONGEST_PAUSE_MS: u64 = 5_000;

/// A host of so many CPUs. Comparing clocks is bring-up's business and wants an emulator with CPUs to
/// spare: where it has none, one that comes may be given up in that step.
fn host_of(cpus: u32) -> Recipe {
    Recipe::new().cpus(cpus).options("tsc=skip")
}

fn offline(host: &mut Host, index: u32) -> Result<()> {
    host.order(RequestBody::CpuOffline { index })?;
    let cpu = cpu(host, index)?;
    ensure!(cpu.state == CpuState::Offline && cpu.vcpus.is_empty() && cpu.busy_permille.is_none(), "{cpu:?}");
    Ok(())
}

fn online(host: &mut Host, index: u32) -> Result<()> {
    host.order(RequestBody::CpuOnline { index })?;
    let cpu = cpu(host, index)?;
    ensure!(cpu.state == CpuState::Online && cpu.busy_permille.is_some(), "{cpu:?}");
    Ok(())
}

fn cpu(host: &mut Host, index: u32) -> Result<CpuInfo> {
    let cpus = host.client()?.cpus()?;
    cpus.into_iter().find(|cpu| cpu.index == index).with_context(|| format!("CPU {index} is not in the list"))
}

fn states(host: &mut Host) -> Result<Vec<CpuState>> {
    Ok(host.client()?.cpus()?.into_iter().map(|cpu| cpu.state).collect())
}

/// Waits until a guest's vCPUs are on these CPUs.
fn is_on(host: &mut Host, guest: &str, cpus: &[u32]) -> Result<()> {
    loop {
        let at = host.vm(guest)?.cpus;
        if at == cpus {
            return Ok(());
        }
        host.wait_a_moment().with_context(|| format!("{guest} is on {at:?}, not on {cpus:?}"))?;
    }
}

/// A line of the agent's `churn`.
#[derive(Clone, Copy, Debug, Default)]
struct Churn {
    slowest: u64,
    wrong: u64,
    backwards: u64,
    longest_ms: u64,
}

fn churns(host: &Host, guest: &str) -> Vec<Churn> {
    let console = host.seen.console(guest);
    let complete = console.rsplit_once('\n').map_or("", |(lines, _)| lines);
    let lines = complete.lines().filter(|line| line.starts_with("churn "));
    let parsed = lines.map(|line| {
        let field = |name: &str| {
            let value = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            value.and_then(|value| value.parse().ok()).unwrap_or(u64::MAX)
        };
        let [slowest, wrong, backwards, longest_ms] = ["slowest", "wrong", "backwards", "longest_ms"].map(field);
        Churn { slowest, wrong, backwards, longest_ms }
    });
    parsed.collect()
}

/// Waits until each thread of the guest has done more than when this was called.
fn goes_on(host: &mut Host, guest: &str) -> Result<()> {
    let before = churns(host, guest).last().copied().unwrap_or_default().slowest;
    while churns(host, guest).last().is_none_or(|churn| churn.slowest <= before) {
        host.wait_a_moment().with_context(|| format!("not every CPU of {guest} goes on:\n{}", host.seen))?;
    }
    Ok(())
}

fn is_well(host: &Host, guest: &str) -> Result<()> {
    for churn in churns(host, guest) {
        let is_right = churn.wrong == 0 && churn.backwards == 0 && churn.longest_ms < LONGEST_PAUSE_MS;
        ensure!(is_right, "{churn:?}:\n{}", host.seen);
    }
    let console = host.seen.console(guest);
    // An emulated CPU has no invariant time stamp counter, and Linux distinguishes it from others by this alone.
    let is_expected = |line: &&str| line.ends_with("tsc: Marking TSC unstable due to TSCs unsynchronized");
    let complaints: Vec<_> = dmesg::suspicious(&console).into_iter().filter(|line| !is_expected(line)).collect();
    ensure!(complaints.is_empty(), "{guest} complains: {complaints:#?}");
    Ok(())
}

fn computes_through(recipe: Recipe, turns: u32) -> Result<()> {
    let guest = Guest { vcpus: 4, ..linux("debian", Kernel::Default, "churn:100")? };
    let mut host = recipe.guest(guest).start()?;
    host.greets("debian")?;
    goes_on(&mut host, "debian")?;
    for turn in 0..turns {
        // One, then two at a time, in another order each time.
        let first = 1 + turn % 3;
        let second = (turn % 2 == 1).then_some(1 + (turn + 1) % 3);
        for index in [Some(first), second].into_iter().flatten() {
            offline(&mut host, index)?;
            host.event(&EventKind::CpuOffline { index })?;
        }
        let cpus = host.vm("debian")?.cpus;
        ensure!(!cpus.contains(&first), "turn {turn}: {cpus:?}");
        goes_on(&mut host, "debian")?;
        for index in [Some(first), second].into_iter().flatten() {
            online(&mut host, index)?;
            host.event(&EventKind::CpuOnline { index })?;
        }
        is_on(&mut host, "debian", &[0, 1, 2, 3])?;
        goes_on(&mut host, "debian")?;
    }
    is_well(&host, "debian")?;
    host.powers_off()
}

fn a_computing_guest_notices_nothing_but_pauses() -> Result<()> {
    computes_through(host_of(4), TURNS)
}

fn a_computing_guest_notices_nothing_in_x2apic_mode() -> Result<()> {
    computes_through(Recipe::new().cpus(4).on(Emulator::Ten), 2)
}

fn guests_that_move_keep_their_registers() -> Result<()> {
    let names = ["a", "b", "c"];
    let keeper = |name: &str, seed: u32| tiny(name, "keeper", &format!("seed={seed} do=registers"));
    let recipe = host_of(3);
    let recipe =
        names.iter().zip(1..).try_fold(recipe, |recipe, (name, seed)| anyhow::Ok(recipe.guest(keeper(name, seed)?)))?;
    let mut host = recipe.start()?;
    let mut moves = 0;
    let is_over = |host: &mut Host| {
        let vms = host.client()?.vms()?;
        anyhow::Ok(vms.iter().all(|vm| vm.state == VmState::Stopped))
    };
    while !is_over(&mut host)? {
        for index in [1, 2] {
            offline(&mut host, index)?;
        }
        host.wait_a_moment()?;
        for index in [2, 1] {
            online(&mut host, index)?;
        }
        moves += 1;
    }
    ensure!(moves > 1, "they were done after {moves} moves");
    for name in names {
        host.event(&EventKind::VmDebugExit { name: name.to_owned(), code: 0x10 })?;
        ensure!(!host.seen.console(name).contains("WRONG"), "{name}:\n{}", host.seen);
    }
    host.powers_off()
}

fn a_paused_guest_and_one_at_its_prompt_move() -> Result<()> {
    let recipe = host_of(3).guest(tiny("first", "keeper", "do=wait")?);
    let mut host = recipe.beating("beats")?.linux("types", "shell")?.start()?;
    host.beats("beats", 1)?;
    host.guest_prints("types", "# ")?;
    host.order(RequestBody::VmPause { name: "beats".into() })?;
    host.state("beats", VmState::Paused)?;
    offline(&mut host, 1)?;
    offline(&mut host, 2)?;
    host.listen(Duration::from_millis(300));
    let before = host.seen.heartbeats("beats").len();
    host.types("types", "echo the answer is $((6 * 7))\n")?;
    host.guest_prints("types", "the answer is 42")?;
    ensure!(host.seen.heartbeats("beats").len() == before, "a paused guest goes on once it has moved");
    host.order(RequestBody::VmResume { name: "beats".into() })?;
    host.beats("beats", 3)?;
    for index in [2, 1] {
        online(&mut host, index)?;
    }
    is_on(&mut host, "beats", &[1])?;
    is_on(&mut host, "types", &[2])?;
    host.types("types", "echo $((40 + 3)) is another\n")?;
    host.guest_prints("types", "43 is another")?;
    host.beats("beats", 3)?;
    host.powers_off()
}

fn guests_start_and_end_where_their_cpu_has_gone() -> Result<()> {
    let keeper = |name: &str| tiny(name, "keeper", "do=wait");
    let late = Guest { autostart: false, vcpus: 2, ..linux("late", Kernel::Default, "wait")? };
    let recipe = host_of(3).guest(keeper("first")?).guest(keeper("again")?).guest(late);
    let mut host = recipe.start()?;
    host.guest_prints("again", "keeper: wait: going")?;
    // The second CPU of this one waits for its start-up interrupt when the first one's, its home, goes.
    host.order(RequestBody::VmStart { name: "late".into() })?;
    offline(&mut host, 2)?;
    host.guest_prints("late", "CPUs        2 (")?;
    ensure!(!host.vm("late")?.cpus.contains(&2), "{:?}", host.vm("late")?);
    offline(&mut host, 1)?;
    for _ in 0..3 {
        host.order(RequestBody::VmReset { name: "again".into() })?;
        host.event(&EventKind::VmReset { name: "again".into() })?;
        host.guest_prints("again", "keeper: wait: going")?;
    }
    is_on(&mut host, "again", &[0])?;
    host.order(RequestBody::VmStop { name: "again".into() })?;
    host.state("again", VmState::Stopped)?;
    online(&mut host, 1)?;
    host.order(RequestBody::VmStart { name: "again".into() })?;
    host.guest_prints("again", "keeper: wait: going")?;
    is_on(&mut host, "again", &[1])?;
    online(&mut host, 2)?;
    is_on(&mut host, "late", &[2, 0])?;
    host.powers_off()
}

fn what_cannot_leave_or_come_is_refused() -> Result<()> {
    let mut host = Recipe::new().cpus(2).beating("debian")?.start()?;
    let cases = [
        (RequestBody::CpuOffline { index: 0 }, RefusalCode::WrongState, "serves the control channel"),
        (RequestBody::CpuOnline { index: 0 }, RefusalCode::WrongState, "CPU 0 is online"),
        (RequestBody::CpuOnline { index: 1 }, RefusalCode::WrongState, "CPU 1 is online"),
        (RequestBody::CpuOffline { index: 2 }, RefusalCode::Invalid, "no CPU 2; this host has 0 to 1"),
        (RequestBody::CpuOnline { index: u32::MAX }, RefusalCode::Invalid, "there is no CPU 4294967295"),
    ];
    for (body, code, reason) in cases {
        let refusal = host.refusal(body)?;
        ensure!(refusal.code == code && refusal.to_string().contains(reason), "{refusal}");
    }
    offline(&mut host, 1)?;
    let refusal = host.refusal(RequestBody::CpuOffline { index: 1 })?;
    ensure!(refusal.code == RefusalCode::WrongState && refusal.reason == "CPU 1 is offline", "{refusal}");
    ensure!(host.client()?.info()?.cpus == 1);
    host.beats("debian", 3)?;
    host.powers_off()
}

fn a_cpu_stays_where_the_others_have_no_room() -> Result<()> {
    // More than one CPU takes; but for the first they wait for a start-up interrupt that never comes.
    let crowd = Guest { vcpus: 40, ..tiny("crowd", "keeper", "do=wait")? };
    let mut host = host_of(4).guest(crowd).start()?;
    host.guest_prints("crowd", "keeper: wait: going")?;
    let mut refused = None;
    for index in 1..4 {
        let result = host.client()?.request(RequestBody::CpuOffline { index });
        if let Err(error) = result {
            refused = Some((index, error.downcast::<wire::Refusal>()?));
            break;
        }
    }
    let (index, refusal) = refused.context("one CPU held all of them")?;
    ensure!(refusal.code == RefusalCode::Exhausted && refusal.reason.contains("can hold another vCPU"), "{refusal}");
    let cpu = cpu(&mut host, index)?;
    ensure!(cpu.state == CpuState::Online && !cpu.vcpus.is_empty(), "{cpu:?}");
    let held: usize = host.client()?.cpus()?.iter().map(|cpu| cpu.vcpus.len()).sum();
    ensure!(held == 40, "{held} of 40 are left");
    host.order(RequestBody::VmStop { name: "crowd".into() })?;
    host.state("crowd", VmState::Stopped)?;
    offline(&mut host, index)?;
    host.powers_off()
}

fn a_host_uses_the_cpus_it_is_given() -> Result<()> {
    use CpuState::{Offline, Online};
    let recipe = Recipe::new().cpus(4).options("cpu=2,9");
    let mut host = recipe.beating("a")?.beating("b")?.start()?;
    host.logs(&["option cpu: there is no CPU 9; this machine has 0 to 3"])?;
    host.logs(&["option cpu: CPU 0 boots the host and is used too"])?;
    host.beats("a", 1)?;
    host.beats("b", 1)?;
    ensure!(states(&mut host)? == [Online, Offline, Online, Offline], "{:?}", host.client()?.cpus()?);
    ensure!(host.vm("a")?.cpus == [0] && host.vm("b")?.cpus == [2]);
    for index in [3, 1] {
        online(&mut host, index)?;
    }
    offline(&mut host, 2)?;
    is_on(&mut host, "b", &[1])?;
    host.beats("b", 2)?;
    offline(&mut host, 1)?;
    is_on(&mut host, "b", &[3])?;
    online(&mut host, 2)?;
    is_on(&mut host, "b", &[2])?;
    host.beats("b", 2)?;
    ensure!(states(&mut host)? == [Online, Offline, Online, Online]);
    host.powers_off()
}

fn coming_and_going_a_hundred_times_takes_no_memory() -> Result<()> {
    let mut host = host_of(3).beating("debian")?.beating("other")?.start()?;
    host.greets("debian")?;
    host.greets("other")?;
    let mut free = 0;
    for turn in 0..100 {
        let index = 1 + turn % 2;
        host.order(RequestBody::CpuOffline { index })?;
        host.order(RequestBody::CpuOnline { index })?;
        if turn == 3 {
            free = host.client()?.info()?.memory_free_bytes;
        }
    }
    let left = host.client()?.info()?.memory_free_bytes;
    ensure!(left == free, "{free} bytes were free, then {left}");
    is_on(&mut host, "other", &[1])?;
    host.beats("other", 2)?;
    host.powers_off()
}
