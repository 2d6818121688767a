// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton vm`: the virtual machines of a running host.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use comfy_table::{Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use wire::{Refusal, RefusalCode, RequestBody, VmInfo};

use super::{DONE, connect, console, perf, seconds, shutdown};
use crate::args::{Format, Target, VmCommand, VmEnd, VmOrder};
use crate::client::{Client, NotFound};
use crate::consent::Ending;
use crate::dump::{self, Interrupted};
use crate::size::Size;
use crate::suggest::did_you_mean;

/// Status of a command that the operator has interrupted.
const INTERRUPTED: u8 = 130;

pub(super) fn run(target: &Target, command: &VmCommand) -> Result<u8> {
    let mut client = connect(target)?;
    match command {
        VmCommand::List(format) => list(&mut client, *format),
        VmCommand::Start(vm) => order(&mut client, vm, |name| RequestBody::VmStart { name }, "started"),
        VmCommand::Stop(vm) => end(&mut client, vm, "stop", |name| RequestBody::VmStop { name }, "stopped"),
        VmCommand::Shutdown(vms) => {
            vms.vms.iter().try_for_each(|vm| check_name(&mut client, vm))?;
            shutdown::shutdown(&mut client, vms)
        }
        VmCommand::Wait(vms) => {
            vms.vms.iter().try_for_each(|vm| check_name(&mut client, vm))?;
            shutdown::wait(&mut client, vms)
        }
        VmCommand::Pause(vm) => order(&mut client, vm, |name| RequestBody::VmPause { name }, "paused"),
        VmCommand::Resume(vm) => order(&mut client, vm, |name| RequestBody::VmResume { name }, "resumed"),
        VmCommand::Reset(vm) => end(&mut client, vm, "reset", |name| RequestBody::VmReset { name }, "reset"),
        VmCommand::Dump { vm, output } => dump(&mut client, vm, output.as_deref()),
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
            Size { bytes: vm.memory_bytes }.to_string(),
            vm.exits_total.to_string(),
            vm.reason.clone().unwrap_or_default(),
        ]);
    }
    table
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
    let bar = io::stderr().is_terminal().then(|| ProgressBar::new(0).with_style(bar_style()));
    let signal = Arc::new(AtomicBool::new(false));
    for number in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(number, signal.clone())?;
    }
    client.handles_signals();
    let progress = |done, total| {
        if let Some(bar) = &bar {
            bar.set_length(total);
            bar.set_position(done);
        }
    };
    let dumped = dump::dump(client, name, vcpus, &path, progress, &|| signal.load(Ordering::Relaxed));
    bar.iter().for_each(ProgressBar::finish_and_clear);
    let dumped = match dumped {
        Err(error) if error.is::<Interrupted>() => {
            eprintln!("baton: {error}");
            return Ok(INTERRUPTED);
        }
        dumped => dumped?,
    };
    let [memory, fetched] = [dumped.memory_bytes, dumped.fetched_bytes].map(|bytes| Size { bytes });
    println!("{}: {memory} of memory ({fetched} not zero), {} CPUs", path.display(), dumped.vcpus);
    Ok(DONE)
}

fn bar_style() -> ProgressStyle {
    // The template is constant, and a test of the tool shows it.
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} to go");
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// An order that ends what a machine does: asked about if it runs.
fn end(client: &mut Client, vm: &VmEnd, verb: &str, body: fn(String) -> RequestBody, done: &str) -> Result<u8> {
    vm.consent.obtain(|| client.vms(), Ending { order: verb, guests: Some(slice::from_ref(&vm.order.vm)) })?;
    order(client, &vm.order, body, done)
}

fn order(client: &mut Client, vm: &VmOrder, body: fn(String) -> RequestBody, done: &str) -> Result<u8> {
    if let Err(error) = client.order(body(vm.vm.clone())) {
        let is_unknown = error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.code == RefusalCode::UnknownVm);
        if is_unknown {
            check_name(client, &vm.vm)?;
        }
        return Err(error);
    }
    match vm.format.json {
        true => println!("{}", serde_json::json!({ "name": vm.vm, "done": done })),
        false => println!("{} {done}", vm.vm),
    }
    Ok(DONE)
}

/// Returns an error with a suggestion unless a machine has this name.
fn check_name(client: &mut Client, name: &str) -> Result<()> {
    let vms = client.vms()?;
    let mut names = vms.iter().map(|vm| vm.name.as_str());
    if names.any(|known| known == name) {
        return Ok(());
    }
    let suggestion = did_you_mean(name, vms.iter().map(|vm| vm.name.as_str()));
    let hint = if suggestion.is_empty() { "; `baton vm list` shows those there are".to_owned() } else { suggestion };
    bail!(NotFound(format!("there is no virtual machine {name:?}{hint}")))
}
