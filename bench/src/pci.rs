// SPDX-License-Identifier: MIT OR Apache-2.0
//! `pci`: the cost of discovering a machine's 57 PCI functions, before the first guest starts and in all.
//!
//! The three policies of `pci=` alternate on the machine of [`crowd`], each with instructions (`-icount shift=0`) and
//! with the cycles of the emulator's machine. The host counts by itself: configuration registers read or written, ticks
//! of the time stamp counter from each function's first access to its last.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use baton::config::Guest;
use baton::size::Size;
use lab::{What, crowd};
use wire::{PciCost, PciSurvey};

use super::exits::Clock;
use super::report::{Figure, Goal, Report};
use super::setup::{HostSetup, keeper};
use super::statistics::ratios;
use super::{Bench, Context};

pub(super) static BENCH: Bench = Bench {
    name: "pci",
    about: "accesses and cycles to find out 57 PCI functions: all at boot, a few at boot, all once guests run",
    goals: &[Goal::at_most("lazy_accesses_before_guest", 0.05, "ratio")],
    run,
};

const MEMORY: Size = Size::mebibytes(512);
const GUEST_MEMORY: Size = Size::mebibytes(16);
/// The interval between two requests to a host that is not done yet.
const ASK_AGAIN: Duration = Duration::from_millis(50);
const CLOCKS: [Clock; 2] = [Clock::Instructions, Clock::Cycles];

/// A policy, and the reports of hosts with it: with instructions as their clock's ticks, and with cycles.
struct Variant {
    name: &'static str,
    option: String,
    functions: u32,
    surveys: [Vec<PciSurvey>; CLOCKS.len()],
}

impl Variant {
    fn new(name: &'static str, option: String, functions: u32) -> Self {
        Self { name, option, functions, surveys: [Vec::new(), Vec::new()] }
    }

    fn accesses_before_guest(&self) -> Vec<f64> {
        self.surveys[0].iter().map(|survey| f64::from(before(survey).accesses)).collect()
    }

    fn ticks_before_guest(&self, clock: usize) -> Vec<f64> {
        self.surveys[clock].iter().map(|survey| before(survey).ticks as f64).collect()
    }
}

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut variants = [
        Variant::new("all", "pci=all".to_owned(), crowd::FUNCTIONS),
        Variant::new("allow", crowd::needed_option(), crowd::NEEDED),
        Variant::new("lazy", "pci=lazy".to_owned(), crowd::FUNCTIONS),
    ];
    for run in 1..=context.runs {
        for (index, clock) in CLOCKS.into_iter().enumerate() {
            for variant in &mut variants {
                context.step(&format!("pci: run {run} of {}, {}, {}", context.runs, variant.name, clock.unit()));
                variant.surveys[index].push(measure(context, variant, clock)?);
            }
        }
    }
    variants.iter().try_for_each(|variant| report_variant(report, variant))?;
    let [all, allow, lazy] = &variants;
    for variant in [allow, lazy] {
        let quotients = ratios(&variant.ticks_before_guest(1), &all.ticks_before_guest(1));
        let name = format!("{}/all", variant.name);
        report.figure(Figure::measured(name, "cycles_before_guest", "ratio", quotients))?;
    }
    let quotients = ratios(&lazy.accesses_before_guest(), &all.accesses_before_guest());
    let quotient = report.figure(Figure::measured("lazy/all", "accesses_before_guest", "ratio", quotients))?;
    report.goal("lazy_accesses_before_guest", quotient)
}

fn report_variant(report: &mut Report<'_>, variant: &Variant) -> Result<()> {
    let mut figure =
        |metric: &str, unit, values| report.figure(Figure::measured(variant.name, metric, unit, values)).map(drop);
    figure("accesses_before_guest", "accesses", variant.accesses_before_guest())?;
    let accesses = variant.surveys[0].iter().map(|survey| f64::from(survey.total.accesses));
    figure("accesses", "accesses", accesses.collect::<Vec<f64>>())?;
    for (index, clock) in CLOCKS.into_iter().enumerate() {
        let unit = clock.unit();
        figure(&format!("{unit}_before_guest"), unit, variant.ticks_before_guest(index))?;
        let ticks = variant.surveys[index].iter().map(|survey| survey.total.ticks as f64);
        figure(unit, unit, ticks.collect())?;
    }
    Ok(())
}

/// Once a guest has started; before that, nothing.
fn before(survey: &PciSurvey) -> PciCost {
    survey.before_guests.unwrap_or_default()
}

/// Boots a host with a guest that starts with it, and asks once both the guest runs and the host is done with its
/// functions.
fn measure(context: &Context, variant: &Variant, clock: Clock) -> Result<PciSurvey> {
    let guest = Guest { debug_exit: false, ..keeper(context, "do=wait", GUEST_MEMORY)? };
    let setup = HostSetup {
        guests: vec![guest],
        options: variant.option.clone(),
        extra: clock.arguments().into_iter().chain(crowd::arguments()).collect(),
        ..HostSetup::new(MEMORY)
    };
    let mut host = setup.start(context)?;
    host.wait(context.timeout, "the host's first answer", |what| matches!(what, What::Ready).then_some(()))?;
    let mut client = host.lab.client()?;
    loop {
        let (survey, _) = client.pci()?;
        if survey.is_complete && survey.before_guests.is_some() {
            let (found, wanted) = (survey.functions, variant.functions);
            ensure!(found == wanted, "with {} the host found {found} functions, not {wanted}", variant.option);
            return Ok(survey);
        }
        if host.lab.elapsed() > context.timeout {
            bail!("the host did not get done with its PCI functions: {survey:?}; raise --timeout on a slow machine");
        }
        while host.lab.next(ASK_AGAIN).is_some() {}
    }
}
