// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's own instructions for a guest's counters at a switch: a debugger stops the machine where
//! each of its hooks begins, and steps until it is left. Nothing is built into the host for that.
//!
//! ```text
//! switch out: close_counters        switch in: open_counters (where it is called), raise_overflows
//! ```

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use baton::config::Guest;
use baton::size::Size;
use bundle::Pmu;
use object::{Object as _, ObjectSymbol as _};

use super::super::debugger::{self, Debugger};
use super::super::exits::Clock;
use super::super::report::{Figure, Report};
use super::super::sched::hosted::turns;
use super::super::setup::{HostSetup, temporary_folder};
use super::{COUNTERS, Context, INSTRUCTIONS, POLICIES};

/// The image with its symbols.
const SYMBOLS: &str = "target/baton.debug.elf";
const SOCKET: &str = "debugger.sock";
const MEMORY: Size = Size::mebibytes(512);
/// Switches before those that are measured: by then both vCPUs count.
const BEFORE: usize = 20;
/// Switches that are measured.
const SWITCHES: usize = 5;
/// More instructions than any hook takes.
const MOST_STEPS: usize = 20_000;
const TIMEOUT: Duration = Duration::from_secs(120);

/// Addresses of the hooks.
struct Hooks {
    close: u64,
    open: u64,
    raise: u64,
}

/// Instructions of some switches.
struct Steps {
    out: Vec<f64>,
    back: Vec<f64>,
}

/// Both directions of a switch by both policies, and the ratio of the two.
pub(super) fn switches(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let hooks = Hooks::of_file(&context.made(SYMBOLS)?)?;
    let steps_of = |policy: &str| {
        context.step(&format!("vpmu: a switch in the host's own eyes, {policy}"));
        steps_of(context, policy, &hooks)
    };
    let (slow, quick) = (steps_of(POLICIES[0])?, steps_of(POLICIES[1])?);
    for (metric, slow, quick) in [("switch_out", slow.out, quick.out), ("switch_in", slow.back, quick.back)] {
        let figure =
            |policy: &str, steps| Figure::measured(format!("host, {policy} icount"), metric, INSTRUCTIONS, steps);
        let (slow, quick) = (figure(POLICIES[0], slow), figure(POLICIES[1], quick));
        report.compared(slow, quick, "host, reprogram/direct icount", metric)?;
    }
    Ok(())
}

fn steps_of(context: &Context, policy: &str, hooks: &Hooks) -> Result<Steps> {
    let folder = temporary_folder()?;
    let socket = folder.path().join(SOCKET);
    let setup = HostSetup {
        guests: vec![guest(context)?],
        options: format!("vpmu={policy}"),
        extra: [Clock::Instructions.arguments(), debugger::arguments(&socket)].concat(),
        ..HostSetup::new(MEMORY)
    };
    let mut lab = setup.start_in(context, folder.path())?;
    let mut debugger = Debugger::connect(&socket)?;
    let (mut out, mut back) = (Vec::new(), Vec::new());
    for switch in 0..BEFORE + SWITCHES {
        debugger.stop_at(hooks.close, TIMEOUT)?;
        if switch < BEFORE {
            continue;
        }
        out.push(debugger.steps_to_return(MOST_STEPS)? as f64);
        // Direct leaves them open where they go with their vCPU: there the hook is passed by.
        let opened = match policy {
            "reprogram" => stop_and_step(&mut debugger, hooks.open)?,
            _ => 0,
        };
        back.push((opened + stop_and_step(&mut debugger, hooks.raise)?) as f64);
    }
    lab.kill();
    Ok(Steps { out, back })
}

fn stop_and_step(debugger: &mut Debugger, hook: u64) -> Result<usize> {
    debugger.stop_at(hook, TIMEOUT)?;
    debugger.steps_to_return(MOST_STEPS)
}

/// A guest with two vCPUs on one CPU, four counters on each.
fn guest(context: &Context) -> Result<Guest> {
    let cmdline = format!("do=switch n=4000 counters={COUNTERS}");
    Ok(Guest { vcpus: 2, pmu: Pmu::Amd, autostart: true, ..turns(context, "turns", &cmdline)? })
}

impl Hooks {
    fn of_file(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let file = object::File::parse(&*bytes).with_context(|| format!("{} is no ELF file", path.display()))?;
        let names: Vec<(&str, u64)> =
            file.symbols().filter_map(|symbol| Some((symbol.name().ok()?, symbol.address()))).collect();
        let of = |name: &str| {
            address_of(&names, name).with_context(|| format!("{SYMBOLS} has no function {name}: build it again"))
        };
        Ok(Self { close: of("close_counters")?, open: of("open_counters")?, raise: of("raise_overflows")? })
    }
}

/// The only function of a CPU of this name, by its mangled name: length and name.
fn address_of(symbols: &[(&str, u64)], name: &str) -> Option<u64> {
    let mangled = format!("{}{name}17h", name.len());
    let mut found = symbols.iter().filter(|(symbol, _)| symbol.contains(&mangled) && symbol.contains("Cpu"));
    let (_, address) = found.next()?;
    found.next().is_none().then_some(*address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_found_by_its_whole_name_or_not_at_all() {
        let symbols = [
            ("_ZN2vm7machine8counting..Cpu$GT$14close_counters17h0123E", 16),
            ("_ZN2vm7machine8counting..Cpu$GT$20mostly_close_counters17h0123E", 32),
            ("_ZN2vm7machine8counting..Machine$GT$13open_counters17h0123E", 48),
        ];
        assert_eq!(address_of(&symbols, "close_counters"), Some(16));
        assert_eq!(address_of(&symbols, "open_counters"), None);
    }
}
