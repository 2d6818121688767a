// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each step of the host's end fails or hangs: it costs that step. The steps after it still happen, the other CPUs
//! stop, and what `panic=` asks for is done.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use e2e::host::Host;
use e2e::recipe::{Recipe, folder};
use lab::{CpuTime, Ending, Lab, RunDir};
use wire::RequestBody;

use super::{END, GUESTS};
use crate::Rule;

pub const RULES: &[Rule] = &[
    ("a_host_that_fails_each_step_of_its_end_stops_its_guests_and_ends", every_step_fails),
    ("a_step_of_the_end_that_hangs_costs_that_step", || costs_one_step("hang", &STEPS[1], &HALTS)),
    ("a_host_that_cannot_rest_is_reset_all_the_same", || costs_one_step("exception", &STEPS[6], &REBOOTS)),
];

/// For the long suite: each step, in each way, before each action.
pub const LONG_RULES: &[Rule] = &[
    ("each_step_of_the_end_that_panics_costs_that_step", || each_costs_one_step("panic")),
    ("each_step_of_the_end_that_faults_costs_that_step", || each_costs_one_step("exception")),
    ("each_step_of_the_end_that_hangs_costs_that_step", || each_costs_one_step("hang")),
];

/// A step, by its word for `selftest=` and its name in the log, and what is lost with it.
struct Step {
    word: &'static str,
    name: &'static str,
    lost: &'static [Lost],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    Report,
    /// The way in which each other CPU was stopped.
    StopReport,
    Epitaph,
    /// Keys and requests.
    Service,
}

const STEPS: [Step; 7] = [
    Step { word: "stop", name: "stopping the other CPUs", lost: &[Lost::StopReport] },
    Step { word: "report", name: "the report", lost: &[Lost::Report, Lost::StopReport] },
    Step { word: "epitaph", name: "writing the epitaph", lost: &[Lost::Epitaph] },
    Step { word: "flush", name: "printing the rest of the log", lost: &[] },
    Step { word: "last-words", name: "the control channel's last words", lost: &[] },
    Step { word: "notify", name: "notifying pvpanic", lost: &[] },
    Step { word: "rest", name: "resting", lost: &[Lost::Service] },
];

/// The action that `panic=` asks for, and a check that it happens.
struct Action {
    option: &'static str,
    happens: fn(Host, &Step) -> Result<()>,
}

const HALTS: Action = Action { option: "halt", happens: halts };
const EXITS: Action = Action { option: "exit", happens: |host, _| exits(host) };
const REBOOTS: Action = Action { option: "reboot:1", happens: reboots };

fn each_costs_one_step(fault: &str) -> Result<()> {
    for step in &STEPS {
        for action in [&HALTS, &EXITS, &REBOOTS] {
            let case = || format!("{fault} in {}, panic={}", step.word, action.option);
            costs_one_step(fault, step, action).with_context(case)?;
        }
    }
    Ok(())
}

/// A host with guests on both CPUs that ends so, and is reset where others would end.
fn host_that_fails(self_tests: &str, action: &str) -> Result<Host> {
    let folder = folder()?;
    let recipe =
        Recipe::new().with_fault_points().options(&format!("selftest=panic-when-asked,{self_tests} panic={action}"));
    let recipe = GUESTS.iter().try_fold(recipe, |recipe, name| recipe.beating(name))?;
    let mut machine = recipe.machine(folder.path(), Some(&recipe.bundle()?))?;
    machine.extra.extend(["-action", "reboot=reset"].map(Into::into));
    let mut host = Host::new(Lab::start(&machine, RunDir::take_at(&folder.path().join("run"))?)?, folder);
    for name in GUESTS {
        host.beats(name, 2)?;
    }
    // There is no answer to this question.
    let events = RequestBody::Events { from_sequence: 0, limit: 1 };
    let _ = host.client()?.request_within(Duration::from_millis(100), events);
    Ok(host)
}

fn costs_one_step(fault: &str, step: &Step, action: &Action) -> Result<()> {
    let mut host = host_that_fails(&format!("end:{fault}:{}", step.word), action.option)?;
    let why = match fault {
        "panic" => "self-test, in a step of the end",
        "exception" => "exception 14 #PF page fault",
        _ => "it does not come to its end",
    };
    host.logs(&[&format!("{} failed: ", step.name), why, "; the end goes on"])?;
    if !step.lost.contains(&Lost::Report) {
        host.logs(&["panic on CPU 0: self-test, as asked"])?;
        host.logs(&[END])?;
    }
    let is_named = host.seen.host_logged(&["CPU 1: stopped"]);
    ensure!(is_named != step.lost.contains(&Lost::StopReport), "{}", host.seen);
    (action.happens)(host, step)
}

/// Every CPU sleeps, no guest goes on, and the log can be read.
fn halts(mut host: Host, step: &Step) -> Result<()> {
    // Output on its way may still come.
    host.listen(Duration::from_millis(500));
    let beats = |host: &Host| GUESTS.iter().map(|name| host.seen.heartbeats(name).len()).sum::<usize>();
    let (before, time) = (beats(&host), CpuTime::of(host.pid())?);
    host.listen(Duration::from_secs(1));
    ensure!(beats(&host) == before, "a guest goes on without its host:\n{}", host.seen);
    let spent = CpuTime::of(host.pid())?.since(&time);
    ensure!(spent <= Duration::from_millis(100), "a host that has ended takes {spent:?} of a second");
    if step.lost.contains(&Lost::Service) {
        return Ok(());
    }
    let (records, _) = host.client()?.log(0)?;
    ensure!(!records.is_empty(), "its log is not served");
    host.powers_off()
}

fn exits(mut host: Host) -> Result<()> {
    let ending = host.ending()?;
    ensure!(ending == Ending::Panicked, "{ending}:\n{}", host.seen);
    Ok(())
}

/// The next host is up, and knows of the end unless that was lost.
fn reboots(mut host: Host, step: &Step) -> Result<()> {
    host.wait("the next host", |seen| seen.host.iter().filter(|line| line.contains("CPUs: 2 online")).count() == 2)?;
    let knows = host.seen.host_logged(&["before this host: panic on CPU 0: self-test, as asked"]);
    ensure!(knows != step.lost.contains(&Lost::Epitaph), "{}", host.seen);
    Ok(())
}

/// Only the first failure is printed, since printing may be what fails.
fn every_step_fails() -> Result<()> {
    let all = STEPS.map(|step| format!("end:panic:{}", step.word)).join(",");
    let mut host = host_that_fails(&all, "exit")?;
    let ending = host.ending()?;
    ensure!(ending == Ending::Panicked, "{ending}:\n{}", host.seen);
    let lines: Vec<_> = host.seen.host.iter().filter(|line| line.contains("the end goes on")).collect();
    ensure!(matches!(lines[..], [line] if line.contains(STEPS[0].name)), "{lines:#?}");
    Ok(())
}
