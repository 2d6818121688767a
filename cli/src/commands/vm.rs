// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton vm`: the virtual machines of a running host.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use comfy_table::{Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use wire::{VmInfo, VmState};

use super::orders::{self, Order, check_name};
use super::{DONE, configuring, connect, console, perf, saving, seconds, shutdown};
use crate::args::{Format, Target, VmCommand, VmEnd, VmOrder};
use crate::client::Client;
use crate::consent::Ending;
use crate::dump::{self, Interrupted};
use crate::size::Size;

/// Status of a command that the operator has interrupted.
pub(super) const INTERRUPTED: u8 = 130;

pub(super) fn run(target: &Target, command: &VmCommand) -> Result<u8> {
    let mut client = connect(target)?;
    match command {
        VmCommand::List(format) => list(&mut client, *format),
        VmCommand::Start(vms) => order(&mut client, vms, &orders::START),
        VmCommand::Stop(vms) => end(&mut client, vms, &orders::STOP),
        VmCommand::Shutdown(order) => {
            let names = orders::named(&mut client, &order.vms, VmState::CAN_SHUT_DOWN)?;
            shutdown::shutdown(&mut client, names, order)
        }
        VmCommand::Wait(order) => {
            let names = orders::named(&mut client, &order.vms, VmState::ALIVE)?;
            shutdown::wait(&mut client, names, order)
        }
        VmCommand::Pause(vms) => order(&mut client, vms, &orders::PAUSE),
        VmCommand::Resume(vms) => order(&mut client, vms, &orders::RESUME),
        VmCommand::Create(order) => configuring::create(&mut client, order),
        VmCommand::Delete(vms) => order(&mut client, vms, &orders::DELETE),
        VmCommand::Set(order) => configuring::set(&mut client, order),
        VmCommand::Reset(vms) => end(&mut client, vms, &orders::RESET),
        VmCommand::Dump { vm, output } => dump(&mut client, vm, output.as_deref()),
        VmCommand::Save(order) => saving::save(&mut client, order),
        VmCommand::Restore(order) => saving::restore(&mut client, order),
        VmCommand::Migrate(order) => saving::migrate(&mut client, target, order),
        VmCommand::Perf { vm, seconds, format } => {
            check_name(&mut client, vm)?;
            perf::run(&mut client, vm, Duration::try_from_secs_f64(*seconds).unwrap_or_default(), *format)
        }
        VmCommand::Console { vm, linger } => {
            check_name(&mut client, vm)?;
            console::run(&mut client, vm, Duration::try_from_secs_f64(*linger).unwrap_or_default())
        }
    }
}

fn list(client: &mut Client, format: Format) -> Result<u8> {
    let vms = client.vms()?;
    if format.json {
        for vm in &vms {
            println!("{}", serde_json::to_string(vm)?);
        }
    } else {
        println!("{}", table(&vms, client.info()?.uptime_ns));
    }
    Ok(DONE)
}

fn table(vms: &[VmInfo], uptime_ns: u64) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["NAME", "STATE", "FOR", "VCPUS", "ON", "MEMORY", "EXITS", "REASON"]);
    for vm in vms {
        let cpus: Vec<String> = vm.cpus.iter().map(u32::to_string).collect();
        table.add_row([
            vm.name.clone(),
            state(vm),
            format!("{:.0} s", seconds(uptime_ns.saturating_sub(vm.since_ns))),
            vm.vcpus.to_string(),
            cpus.join(","),
            memory(vm),
            vm.exits_total.to_string(),
            vm.reason.clone().unwrap_or_default(),
        ]);
    }
    table
}

/// Formats its memory; of memory on demand also the part that it has.
fn memory(vm: &VmInfo) -> String {
    let seen = Size { bytes: vm.memory_bytes };
    vm.resident_bytes.map_or_else(|| seen.to_string(), |bytes| format!("{} of {seen}", Size { bytes }))
}

/// Formats its state; a running guest may be throttled beside that.
fn state(vm: &VmInfo) -> String {
    let is_throttled = vm.throttled_since_ns.is_some();
    if is_throttled { format!("{}, throttled", vm.state) } else { vm.state.to_string() }
}

fn dump(client: &mut Client, name: &str, output: Option<&Path>) -> Result<u8> {
    check_name(client, name)?;
    let vcpus = client.vms()?.iter().find(|vm| vm.name == name).map_or(0, |vm| vm.vcpus);
    let path = output.map_or_else(|| PathBuf::from(format!("{name}.core")), Path::to_owned);
    let dumped = watched(client, |client, progress, is_interrupted| {
        dump::dump(client, name, vcpus, &path, progress, is_interrupted)
    })?;
    let Some(dumped) = dumped else { return Ok(INTERRUPTED) };
    let [memory, fetched] = [dumped.memory_bytes, dumped.fetched_bytes].map(|bytes| Size { bytes });
    println!("{}: {memory} of memory ({fetched} not zero), {} CPUs", path.display(), dumped.vcpus);
    Ok(DONE)
}

/// Reads a guest, with a bar of its progress and until the operator interrupts it: then there is `None`.
pub(super) fn watched<T>(
    client: &mut Client,
    read: impl FnOnce(&mut Client, &mut dyn FnMut(u64, u64), &dyn Fn() -> bool) -> Result<T>,
) -> Result<Option<T>> {
    let signal = Arc::new(AtomicBool::new(false));
    for number in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(number, signal.clone())?;
    }
    client.handles_signals();
    let bar = io::stderr().is_terminal().then(|| ProgressBar::new(0).with_style(bar_style()));
    let mut progress = |done, total| {
        if let Some(bar) = &bar {
            bar.set_length(total);
            bar.set_position(done);
        }
    };
    let result = read(client, &mut progress, &|| signal.load(Ordering::Relaxed));
    bar.iter().for_each(ProgressBar::finish_and_clear);
    match result {
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("baton: {error}");
            Ok(None)
        }
        result => result.map(Some),
    }
}

fn bar_style() -> ProgressStyle {
    // The template is constant, and a test of the tool shows it.
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} to go");
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Gives an order that ends the work of machines, after a question if they run.
fn end(client: &mut Client, vms: &VmEnd, order: &Order) -> Result<u8> {
    let names = orders::named(client, &vms.order.vms, order.all)?;
    vms.consent.obtain(|| client.vms(), Ending { order: order.verb, guests: Some(&names) })?;
    orders::give(client, &names, order, vms.order.format)
}

fn order(client: &mut Client, vms: &VmOrder, order: &Order) -> Result<u8> {
    let names = orders::named(client, &vms.vms, order.all)?;
    orders::give(client, &names, order, vms.format)
}

#[cfg(test)]
mod tests;
