// SPDX-License-Identifier: MIT OR Apache-2.0
//! New images that fail, at every step: guests run on, the operator is shown why, and memory is back.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use boot::self_tests::SelfTest;
use e2e::host::{BOOT_LIMIT, Host};
use e2e::place::Emulator;
use e2e::tool::Operator;
use wire::{RequestBody, UpdateBy};

use super::{are_stained, both_go_on, report, two_keepers};
use crate::Rule;

pub const RULES: &[Rule] = &[
    ("an_image_that_fails_while_it_prepares_itself_is_dropped", || are_dropped(WHILE_PREPARING, &[false])),
    ("an_image_that_hangs_with_interrupts_masked_while_it_prepares_itself_is_dropped", || are_dropped(FROZEN, &[true])),
    ("an_image_that_would_go_on_with_a_wrong_vcpu_is_dropped", || are_dropped(WRONG, &[true, false])),
    ("an_image_that_fails_in_the_blackout_is_left_again", || are_left(&ONCE, IN_THE_BLACKOUT)),
    ("an_image_that_hangs_on_all_cpus_in_the_blackout_is_left_again", || are_left(&ONCE, ON_ALL)),
    ("one_cpu_alone_comes_back_from_an_image_that_fails", || are_left(&Plan { cpus: 1, ..ONCE }, ALONE)),
    ("nmis_at_every_point_of_the_way_there_and_back_are_survived", nmis_on_the_way_are_survived),
    ("the_operator_limits_a_blackout", the_operator_sets_the_limit),
    ("the_tool_reports_why_an_update_was_rolled_back", the_tool_reports_why),
];

/// For the long suite: each fault again and again, with the usual limit.
pub const LONG_RULES: &[Rule] = &[
    ("an_image_that_fails_while_it_prepares_itself_is_dropped_each_time", || {
        are_dropped(WHILE_PREPARING, &[true, false, true, false])
    }),
    ("an_image_that_hangs_with_interrupts_masked_is_dropped_each_time", || {
        are_dropped(FROZEN, &[true, false, true, false])
    }),
    ("an_image_that_fails_in_other_ways_while_it_prepares_itself_is_dropped", || {
        are_dropped(OTHERS_WHILE_PREPARING, &[true, false])
    }),
    ("an_image_that_fails_in_other_ways_in_the_blackout_is_left_again", || are_left(&ONCE, OTHERS_IN_THE_BLACKOUT)),
    ("an_image_that_fails_in_the_blackout_is_left_again_each_time", || are_left(&OFTEN, IN_THE_BLACKOUT)),
    ("an_image_that_hangs_on_all_cpus_in_the_blackout_is_left_again_each_time", || are_left(&OFTEN, ON_ALL)),
    ("one_cpu_alone_comes_back_each_time", || are_left(&Plan { cpus: 1, ..OFTEN }, ALONE)),
    ("concurrent_cpus_leave_an_image_that_fails_in_the_blackout_each_time", || {
        are_left(&Plan { is_concurrent: true, ..OFTEN }, IN_THE_BLACKOUT)
    }),
    ("concurrent_cpus_leave_an_image_that_hangs_on_all_of_them_each_time", || {
        are_left(&Plan { is_concurrent: true, ..OFTEN }, ON_ALL)
    }),
];

/// Those that want QEMU 10.
pub const X2APIC_RULES: &[Rule] = &[("one_cpu_alone_comes_back_in_x2apic_mode", || {
    are_left(&Plan { emulator: Emulator::Ten, cpus: 1, ..ONCE }, &[("freeze:restore", &["hangs"])])
})];

/// The machine, and how often a new image is to fail in the blackout.
struct Plan {
    emulator: Emulator,
    cpus: u32,
    is_concurrent: bool,
    failures: u32,
    options: &'static str,
}

/// With a limit that suffices two CPUs that take turns.
const ONCE: Plan =
    Plan { emulator: Emulator::System, cpus: 2, is_concurrent: false, failures: 1, options: "update-limit=700" };
const OFTEN: Plan = Plan { failures: 10, options: "", ..ONCE };

/// A self-test, and parts of the reason that is given.
type Fault = (&'static str, &'static [&'static str]);

const WHILE_PREPARING: &[Fault] = &[
    ("panic:begin", &["self-test"]),
    ("exception:begin", &["#PF page fault", "0xdead0000"]),
    ("panic:prepare", &["self-test"]),
    ("exception:prepare", &["#PF page fault", "0xdead0000"]),
    ("stack-overflow:prepare", &["#PF page fault", "fault address 0xffffc000"]),
    ("hang:prepare", &["was not prepared after"]),
];
/// The remaining pairs of a step and a kind, so that each step is left in each way.
const OTHERS_WHILE_PREPARING: &[Fault] = &[
    ("hang:begin", &["was not prepared after"]),
    // The boot stack has no guard page: the image's own code is written over, or memory below it is missed, by where
    // the code lies.
    ("stack-overflow:begin", &["exception "]),
];
const OTHERS_IN_THE_BLACKOUT: &[Fault] = &[
    ("exception:arrive", &["#PF page fault", "0xdead0000"]),
    ("stack-overflow:arrive", &["#PF page fault", "fault address 0xffffc000"]),
    ("exception:meet", &["#PF page fault", "0xdead0000"]),
    ("stack-overflow:meet", &["#PF page fault", "fault address 0xffffc000"]),
    ("freeze:meet", &["hangs"]),
];
const FROZEN: &[Fault] =
    &[("freeze:begin", &["hangs with interrupts masked"]), ("freeze:prepare", &["hangs with interrupts masked"])];
const WRONG: &[Fault] = &[("wrong:prepare", &["vCPU", "it would go on with other registers"])];

const IN_THE_BLACKOUT: &[Fault] = &[
    ("panic:arrive", &["self-test"]),
    ("hang:arrive", &["waited too long"]),
    ("panic:restore", &["self-test"]),
    ("exception:restore", &["#PF page fault", "0xdead0000"]),
    ("stack-overflow:restore", &["#PF page fault", "fault address 0xffffc000"]),
    ("damage:restore", &["its sum is wrong"]),
    ("hang:restore", &["waited too long"]),
    ("panic:meet", &["self-test"]),
    ("hang:meet", &["waited too long"]),
];
/// No CPU is left to check the time; the watchdog is.
const ON_ALL: &[Fault] = &[("freeze:arrive", &["hangs"]), ("freeze:restore", &["hangs"])];
const ALONE: &[Fault] = &[
    ("freeze:arrive", &["hangs"]),
    ("freeze:restore", &["hangs"]),
    ("hang:meet", &["hangs"]),
    ("panic:restore", &["self-test"]),
    ("exception:meet", &["#PF page fault", "0xdead0000"]),
];

/// Two guests on a host with a next image that fails so, and the memory that is free. The host is the one that
/// operators run, but where its own CPUs are to wait on their way.
fn host_with(plan: &Plan, fault: &str) -> Result<(Host, u64)> {
    let options = format!("tsc=skip selftest=update:{fault} {}", plan.options);
    let recipe = two_keepers()?.on(plan.emulator).cpus(plan.cpus).options(&options).next_with_fault_points();
    let recipe = if fault.contains("wait") { recipe.with_fault_points() } else { recipe };
    let mut host = if plan.is_concurrent { recipe.concurrent() } else { recipe }.start()?;
    are_stained(&mut host)?;
    let free = host.client()?.info()?.memory_free_bytes;
    Ok((host, free))
}

/// Each of these updates, dry runs and others, is refused.
fn are_dropped(faults: &[Fault], are_dry_runs: &[bool]) -> Result<()> {
    for (fault, parts) in faults {
        let (mut host, free) = host_with(&OFTEN, fault)?;
        for &is_dry_run in are_dry_runs {
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

/// Whatever the new image does in the blackout, the old one has the guests back, and logs the reason.
fn are_left(plan: &Plan, faults: &[Fault]) -> Result<()> {
    for (fault, parts) in faults {
        let (mut host, free) = host_with(plan, fault)?;
        let (mut asked, mut failed_so) = (0, 0);
        while failed_so < plan.failures {
            asked += 1;
            ensure!(asked <= plan.failures + 2, "{fault}: again and again a CPU waited too long for a core");
            host.allow(BOOT_LIMIT);
            let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?;
            let is_so =
                refusal.reason.contains("rolled back") && parts.iter().all(|part| refusal.reason.contains(part));
            ensure!(is_so || refusal.reason.contains("waited too long"), "{fault}: {refusal:?}");
            match is_so {
                true => failed_so += 1,
                false => report::note_repeated(&refusal.reason),
            }
            let info = host.client()?.info()?;
            ensure!((info.generation, info.memory_free_bytes) == (1, free), "{fault}: {free} {info:?}");
            both_go_on(&mut host).with_context(|| *fault)?;
        }
        host.powers_off()?;
    }
    Ok(())
}

/// Most rounds through all fault points until an NMI has come at each of them: as a rule one.
const ROUNDS: usize = 5;

/// The last CPU comes back at once, and makes the others come back by an NMI each 500 us, while they wait at one point
/// of their way.
fn nmis_on_the_way_are_survived() -> Result<()> {
    let (mut host, free) = host_with(&Plan { cpus: 3, ..OFTEN }, "panic:arrive,update:wait:each")?;
    let mut missing: BTreeSet<&str> = SelfTest::UPDATE_POINTS.into();
    for point in (0..ROUNDS).flat_map(|_| SelfTest::UPDATE_POINTS) {
        if missing.is_empty() {
            break;
        }
        host.allow(BOOT_LIMIT);
        let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?;
        let nmis = refusal.reason.split_once(&format!("({point}: ")).and_then(|(_, rest)| rest.split_once(" waits, "));
        let nmis = nmis.and_then(|(_, rest)| rest.split_once(" NMIs)")?.0.parse::<u64>().ok());
        if nmis.with_context(|| format!("{point}: {refusal:?}"))? > 0 {
            missing.remove(point);
        }
    }
    ensure!(missing.is_empty(), "no NMI came at {missing:?}");
    let info = host.client()?.info()?;
    ensure!((info.generation, info.memory_free_bytes) == (1, free), "{free} {info:?}");
    both_go_on(&mut host)?;
    host.powers_off()
}

/// The time after which all were back is in the reason: no sooner than was reported.
fn the_operator_sets_the_limit() -> Result<()> {
    const LIMIT_MS: u64 = 600;
    let (mut host, _) = host_with(&Plan { options: "update-limit=600", ..ONCE }, "hang:meet")?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?;
    let us = refusal.reason.split_once("rolled back after ").and_then(|(_, rest)| rest.split_once(" us"));
    let us: u64 = us.and_then(|(us, _)| us.parse().ok()).with_context(|| refusal.reason.clone())?;
    // Without the option it would be two seconds; a core may be waited for as long again.
    ensure!((LIMIT_MS * 1000..2_000_000).contains(&us), "{refusal:?}");
    both_go_on(&mut host)?;
    host.powers_off()
}

fn the_tool_reports_why() -> Result<()> {
    let operator = Operator::new("heartbeat:100")?.with_fault_points();
    operator.run(&["up", "--detach", "--append", "selftest=update:panic:restore", "host.toml"])?.well()?;
    let output = operator.run(&["update"])?;
    ensure!(output.status.is_some_and(|status| status != 0) && output.err.contains("rolled back"), "{output:?}");
    let info = operator.run(&["info"])?.well()?;
    ensure!(info.contains("generation   1\n"), "{info}");
    operator.run(&["down", "--yes"])?.well()?;
    Ok(())
}
