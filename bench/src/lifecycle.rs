// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lifecycle`: a guest that is added to a running host, and gone again.
//!
//! - The addition: all instructions of a machine of one CPU for the request (`-icount shift=0`, asked for with QMP's
//!   `query-replay`).
//!   An equal guest has come and gone before.
//! - The start, by the host's timeline, on which a nanosecond is an instruction here: from the beginning of the guest's
//!   loading to its first instruction, without zeroing its memory and the checksums of its files.
//! - A guest comes and goes a thousand times, each time started; the host's free memory is compared before and after.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use ::timeline::Name;
use anyhow::{Context as _, Result, bail};
use baton::client::Client;
use baton::config::Guest;
use baton::size::Size;
use baton::timeline::{self, Run};
use bundle::{GuestConfig, HostConfig, Manifest};
use lab::{What, qmp};
use wire::{RequestBody, VmState};

use super::report::{Figure, Goal, Report};
use super::setup::{HostSetup, Started, keeper, temporary_folder};
use super::{Bench, Context};

pub(super) static BENCH: Bench = Bench {
    name: "lifecycle",
    about: "guests that are added to a running host, started, and deleted",
    goals: &[
        Goal::at_most("vm_create_instructions", 1_000_000.0, INSTRUCTIONS),
        Goal::at_most("memory_lost_in_1000_guests", 0.0, "bytes"),
        Goal::at_most("save_restore_blackout_ms", 100.0, "ms"),
        Goal::at_most("migrate_blackout_excess_ms", 100.0, "ms"),
        Goal::at_most("dirty_tracking_overhead", 0.1, "ratio"),
    ],
    run,
};

/// Goals of saving and moving guests that run meanwhile, which does not exist.
const NOT_BUILT: [&str; 3] = ["save_restore_blackout_ms", "migrate_blackout_excess_ms", "dirty_tracking_overhead"];
const INSTRUCTIONS: &str = "instructions";
const MEMORY: Size = Size::mebibytes(256);
const GUEST_MEMORY: Size = Size::mebibytes(16);
const TEMPLATE: &str = "keeper";
const ADDED: &str = "added";
/// The guest's line when it has begun.
const BEGUN: &str = "keeper: wait: going";
/// By then the idle CPU has zeroed the memory of a guest that is gone.
const UNTIL_SCRUBBED: Duration = Duration::from_secs(2);
const TIMES: u32 = 1000;
const QUICK_TIMES: u32 = 50;
/// Longest time for a thousand guests.
const TIMEOUT: Duration = Duration::from_secs(600);

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut costs = Vec::new();
    for run in 1..=context.runs {
        context.step(&format!("lifecycle: a guest comes, run {run} of {}", context.runs));
        costs.push(measure(context)?);
    }
    let value = report_costs(&costs, report)?;
    report.goal("vm_create_instructions", value)?;
    let times = if context.sizes.quick { QUICK_TIMES } else { TIMES };
    context.step(&format!("lifecycle: {times} guests come and go"));
    let lost =
        report.figure(Figure::measured("host clock", "memory_lost", "bytes", vec![come_and_go(context, times)?]))?;
    if times == TIMES {
        report.goal("memory_lost_in_1000_guests", lost)?;
    } else {
        report.leave_out("memory_lost_in_1000_guests")?;
    }
    NOT_BUILT.into_iter().try_for_each(|goal| report.leave_out(goal))
}

/// Instructions of a guest's way to its first one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Costs {
    creating: f64,
    /// From the beginning of its loading on; the others are parts of it.
    starting: f64,
    checksums: f64,
    memory: f64,
    kernel: f64,
    machine: f64,
}

fn report_costs(costs: &[Costs], report: &mut Report<'_>) -> Result<f64> {
    let values = |value: fn(&Costs) -> f64| costs.iter().map(value).collect::<Vec<f64>>();
    let figure = |metric, values| Figure::measured("icount", metric, INSTRUCTIONS, values);
    report.figure(figure("create", values(|costs| costs.creating)))?;
    report.figure(figure("checksums", values(|costs| costs.checksums)))?;
    report.figure(figure("memory, zeroed", values(|costs| costs.memory)))?;
    report.figure(figure("kernel, placed", values(|costs| costs.kernel)))?;
    report.figure(figure("machine", values(|costs| costs.machine)))?;
    report.figure(figure(
        "start, all but checksums and memory",
        values(|costs| costs.starting - costs.checksums - costs.memory),
    ))?;
    let all = values(|costs| costs.creating + costs.starting - costs.checksums - costs.memory);
    report.figure(figure("create and start", all))
}

fn measure(context: &Context) -> Result<Costs> {
    let folder = temporary_folder()?;
    let monitor = folder.path().join("qmp.sock");
    let mut host = start(context, &monitor, &["-icount", "shift=0", "-cpu", "max,-x2apic"])?;
    let mut monitor = qmp::Monitor::connect(&monitor)?;
    let mut client = host.lab.client()?;
    let request = addition(&mut client)?;
    // The first guest has the host make what serves all that follow.
    once(&mut client, &request)?;
    sleep(UNTIL_SCRUBBED);
    let before = monitor.instructions()?;
    client.order(request)?;
    let creating = (monitor.instructions()? - before) as f64;
    client.order(RequestBody::VmStart { name: ADDED.to_owned() })?;
    let mut console = String::new();
    host.wait(context.timeout, "the guest's first line", |what| {
        if let What::Console { bytes, .. } = what {
            console += &String::from_utf8_lossy(bytes);
        }
        console.contains(BEGUN).then_some(())
    })?;
    let runs = timeline::host::runs(&client.timeline()?, &timeline::host::Known::default());
    let start = starting(runs.first().context("the host has no timeline")?);
    Ok(Costs { creating, ..start.context("the guest's start is not on the host's timeline")? })
}

/// Returns the parts of the last start.
fn starting(run: &Run) -> Option<Costs> {
    let spans = || run.tracks.iter().flat_map(|track| track.spans.iter().rev());
    let find = |name: Name| spans().find(|span| span.name.starts_with(name.text()));
    let (load, first) = (find(Name::GuestLoad)?, find(Name::FirstGuestInstruction)?);
    Some(Costs {
        creating: 0.0,
        starting: (first.start_us - load.start_us) * 1e3,
        checksums: find(Name::GuestFiles)?.length_us * 1e3,
        memory: find(Name::GuestMemory)?.length_us * 1e3,
        kernel: find(Name::GuestKernel)?.length_us * 1e3,
        machine: find(Name::GuestTables)?.length_us * 1e3,
    })
}

/// Returns by how many bytes the host's free memory differs then.
fn come_and_go(context: &Context, times: u32) -> Result<f64> {
    let folder = temporary_folder()?;
    let host = start(context, &folder.path().join("qmp.sock"), &[])?;
    let mut client = host.lab.client()?;
    let request = addition(&mut client)?;
    // The first one has the host make what serves all that follow.
    once(&mut client, &request)?;
    let before = client.info()?.memory_free_bytes;
    for _ in 0..times {
        once(&mut client, &request)?;
        if host.lab.elapsed() > TIMEOUT.max(context.timeout) {
            bail!("{times} guests did not come and go within {TIMEOUT:?}");
        }
    }
    Ok(before.abs_diff(client.info()?.memory_free_bytes) as f64)
}

fn once(client: &mut Client, request: &RequestBody) -> Result<()> {
    let name = || ADDED.to_owned();
    client.order(request.clone())?;
    client.order(RequestBody::VmStart { name: name() })?;
    client.order(RequestBody::VmStop { name: name() })?;
    while client.vms()?.iter().any(|guest| guest.name == ADDED && guest.state == VmState::Running) {}
    client.order(RequestBody::VmDelete { name: name() })
}

/// Starts a host with the files of a guest that does not run.
fn start(context: &Context, monitor: &Path, extra: &[&str]) -> Result<Started> {
    let template = Guest { autostart: false, ..keeper(context, "do=wait", GUEST_MEMORY)? };
    let mut setup = HostSetup { guests: vec![template], ..HostSetup::new(MEMORY) };
    setup.extra.extend(extra.iter().map(Into::into));
    setup.extra.extend(qmp::arguments(monitor));
    let mut host = setup.start(context)?;
    host.wait(context.timeout, "the host's first answer", |what| matches!(what, What::Ready).then_some(()))?;
    Ok(host)
}

/// The request for another guest like the one that the host has.
fn addition(client: &mut Client) -> Result<RequestBody> {
    let guests = client.config()?.guests;
    let template = guests.into_iter().find(|guest| guest.name == TEMPLATE).context("there is no template")?;
    let guest = GuestConfig { name: ADDED.to_owned(), ..template };
    let manifest = Manifest { host: HostConfig::default(), guests: vec![guest], files: Vec::new() };
    Ok(RequestBody::VmCreate { manifest: manifest.to_content() })
}

#[cfg(test)]
mod tests {
    use baton::timeline::{Span, Track};

    use super::*;

    #[test]
    fn a_start_is_read_from_the_timeline() {
        let span =
            |name: Name, start_us, length_us| Span { name: name.text().to_owned(), start_us, length_us, note: None };
        let spans = vec![
            span(Name::GuestLoad, 10.0, 20.0),
            span(Name::GuestLoad, 100.0, 50.0),
            span(Name::GuestFiles, 101.0, 2.0),
            span(Name::GuestMemory, 104.0, 30.0),
            span(Name::GuestKernel, 134.0, 5.0),
            span(Name::GuestTables, 139.0, 11.0),
            span(Name::FirstGuestInstruction, 160.0, 0.0),
        ];
        let run = |spans| Run { name: "host".to_owned(), tracks: vec![Track { name: "CPU 0".to_owned(), spans }] };
        let expected = Costs {
            creating: 0.0,
            starting: 60_000.0,
            checksums: 2000.0,
            memory: 30_000.0,
            kernel: 5000.0,
            machine: 11_000.0,
        };
        assert_eq!(starting(&run(spans.clone())), Some(expected));
        assert_eq!(starting(&run(spans[..6].to_vec())), None);
    }
}
