// SPDX-License-Identifier: MIT OR Apache-2.0
//! New images that fail, at every step: guests run on, the operator is told why, and memory is back.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use e2e::host::{BOOT_LIMIT, Host};
use e2e::place::Emulator;
use e2e::tool::Operator;
use wire::{RequestBody, UpdateBy};

use super::{are_stained, both_go_on, two_keepers};
use crate::Rule;

pub const RULES: &[Rule] = &[
    ("an_image_that_fails_while_it_prepares_itself_is_dropped", || are_dropped(WHILE_PREPARING)),
    ("an_image_that_hangs_with_interrupts_masked_while_it_prepares_itself_is_dropped", || are_dropped(FROZEN)),
    ("an_image_that_would_go_on_with_a_wrong_virtual_processor_is_dropped", || are_dropped(WRONG)),
    ("an_image_that_fails_in_the_gap_is_left_again", || are_left(2, IN_THE_GAP)),
    ("an_image_that_hangs_on_all_processors_in_the_gap_is_left_again", || are_left(2, ON_ALL)),
    ("one_processor_alone_comes_back_from_an_image_that_fails", || are_left(1, ALONE)),
    ("the_operator_says_how_long_a_gap_may_last", the_operator_says_how_long),
    ("the_tool_says_why_an_update_was_rolled_back", the_tool_says_why),
];

/// Those that want QEMU 10.
pub const X2APIC_RULES: &[Rule] = &[("one_processor_alone_comes_back_in_x2apic_mode", || {
    are_left_on(Emulator::Ten, 1, &[("freeze:restore", &["hangs"])])
})];

/// A self-test, and parts of the reason that is given.
type Fault = (&'static str, &'static [&'static str]);

const WHILE_PREPARING: &[Fault] = &[
    ("panic:begin", &["self-test"]),
    ("exception:begin", &["#PF page fault", "0xdead0000"]),
    ("panic:prepare", &["self-test"]),
    ("exception:prepare", &["#PF page fault", "0xdead0000"]),
    ("stack-overflow:prepare", &["#DF double fault"]),
    ("hang:prepare", &["was not prepared after"]),
];
const FROZEN: &[Fault] =
    &[("freeze:begin", &["hangs with interrupts masked"]), ("freeze:prepare", &["hangs with interrupts masked"])];
const WRONG: &[Fault] = &[("wrong:prepare", &["virtual processor", "it would go on with other registers"])];

const IN_THE_GAP: &[Fault] = &[
    ("panic:arrive", &["self-test"]),
    ("hang:arrive", &["waited too long"]),
    ("panic:restore", &["self-test"]),
    ("exception:restore", &["#PF page fault", "0xdead0000"]),
    ("stack-overflow:restore", &["#DF double fault"]),
    ("damage:restore", &["its sum is wrong"]),
    ("hang:restore", &["waited too long"]),
    ("panic:meet", &["self-test"]),
    ("hang:meet", &["waited too long"]),
];
/// Nobody is left to look at the time: the watchdog is.
const ON_ALL: &[Fault] = &[("freeze:arrive", &["hangs"]), ("freeze:restore", &["hangs"])];
const ALONE: &[Fault] = &[
    ("freeze:arrive", &["hangs"]),
    ("freeze:restore", &["hangs"]),
    ("hang:meet", &["hangs"]),
    ("panic:restore", &["self-test"]),
    ("exception:meet", &["#PF page fault", "0xdead0000"]),
];

/// Two guests on a host whose next image fails so, and the memory that is free.
fn host_with(emulator: Emulator, cpus: u32, fault: &str, options: &str) -> Result<(Host, u64)> {
    let options = format!("tsc=skip selftest=update:{fault} {options}");
    let mut host = two_keepers()?.on(emulator).cpus(cpus).options(&options).start()?;
    are_stained(&mut host)?;
    // Before that, idle processors look at PCI, which takes a table.
    host.says(&["functions probed"])?;
    let free = host.client()?.info()?.memory_free_bytes;
    Ok((host, free))
}

fn are_dropped(faults: &[Fault]) -> Result<()> {
    for (fault, parts) in faults {
        let (mut host, free) = host_with(Emulator::System, 2, fault, "")?;
        for is_dry_run in [true, false] {
            host.allow(BOOT_LIMIT + Duration::from_secs(60));
            let refusal = host.refusal(RequestBody::Update { is_dry_run, by: UpdateBy::Bundle })?;
            ensure!(parts.iter().all(|part| refusal.reason.contains(part)), "{fault}: {refusal:?}");
            let info = host.client()?.info()?;
            ensure!((info.generation, info.memory_free_bytes) == (1, free), "{fault}: {free} {info:?}");
            both_go_on(&mut host).with_context(|| *fault)?;
        }
        host.powers_off()?;
    }
    Ok(())
}

/// Whatever the new image does in the gap, the old one has the guests back, and says why.
fn are_left(cpus: u32, faults: &[Fault]) -> Result<()> {
    are_left_on(Emulator::System, cpus, faults)
}

fn are_left_on(emulator: Emulator, cpus: u32, faults: &[Fault]) -> Result<()> {
    for (fault, parts) in faults {
        let (mut host, free) = host_with(emulator, cpus, fault, "")?;
        let mut has_failed_so = false;
        for _ in 0..3 {
            let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?;
            let is_so =
                refusal.reason.contains("rolled back") && parts.iter().all(|part| refusal.reason.contains(part));
            ensure!(is_so || refusal.reason.contains("waited too long"), "{fault}: {refusal:?}");
            has_failed_so |= is_so;
            let info = host.client()?.info()?;
            ensure!((info.generation, info.memory_free_bytes) == (1, free), "{fault}: {free} {info:?}");
            both_go_on(&mut host).with_context(|| *fault)?;
        }
        ensure!(has_failed_so, "{fault}: each time a processor waited too long for a core");
        host.powers_off()?;
    }
    Ok(())
}

/// The time after which all were back is in the reason: no sooner than was said.
fn the_operator_says_how_long() -> Result<()> {
    const LIMIT_MS: u64 = 600;
    let (mut host, _) = host_with(Emulator::System, 2, "hang:meet", &format!("update-limit={LIMIT_MS}"))?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?;
    let us = refusal.reason.split_once("rolled back after ").and_then(|(_, rest)| rest.split_once(" us"));
    let us: u64 = us.and_then(|(us, _)| us.parse().ok()).with_context(|| refusal.reason.clone())?;
    // Without the option it would be two seconds; a core may be waited for as long again.
    ensure!((LIMIT_MS * 1000..2_000_000).contains(&us), "{refusal:?}");
    both_go_on(&mut host)?;
    host.powers_off()
}

fn the_tool_says_why() -> Result<()> {
    let operator = Operator::new("heartbeat:100")?;
    operator.says(&["up", "--detach", "--append", "selftest=update:panic:restore", "host.toml"])?.well()?;
    let said = operator.says(&["update"])?;
    ensure!(said.status.is_some_and(|status| status != 0) && said.err.contains("rolled back"), "{said:?}");
    let info = operator.says(&["info"])?.well()?;
    ensure!(info.contains("generation   1\n"), "{info}");
    operator.says(&["down"])?.well()?;
    Ok(())
}
