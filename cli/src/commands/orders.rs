// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders that `baton vm` gives for one or more virtual machines.

use anyhow::{Result, bail};
use wire::{RequestBody, VmInfo, VmState};

use super::DONE;
use crate::args::{Format, Vms};
use crate::client::{Client, NotFound};
use crate::suggest::did_you_mean;

/// An order.
pub(super) struct Order {
    /// Its name on the command line.
    pub verb: &'static str,
    /// The report about a machine that has carried it out.
    done: &'static str,
    body: fn(String) -> RequestBody,
    /// The states of the machines that `--all` means.
    pub all: &'static [VmState],
}

pub(super) const START: Order =
    Order { verb: "start", done: "started", body: |name| RequestBody::VmStart { name }, all: VmState::ENDED };
pub(super) const STOP: Order =
    Order { verb: "stop", done: "stopped", body: |name| RequestBody::VmStop { name }, all: VmState::ALIVE };
pub(super) const PAUSE: Order =
    Order { verb: "pause", done: "paused", body: |name| RequestBody::VmPause { name }, all: VmState::CAN_PAUSE };
/// Resumes paused machines; `--all` does not include those that are held after a panic.
pub(super) const RESUME: Order =
    Order { verb: "resume", done: "resumed", body: |name| RequestBody::VmResume { name }, all: &[VmState::Paused] };
pub(super) const RESET: Order =
    Order { verb: "reset", done: "reset", body: |name| RequestBody::VmReset { name }, all: VmState::ALIVE };

pub(super) const DELETE: Order =
    Order { verb: "delete", done: "deleted", body: |name| RequestBody::VmDelete { name }, all: VmState::ENDED };

/// Returns the machines that an order is for, each once.
///
/// # Errors
/// No machine has one of the names.
pub(super) fn named(client: &mut Client, vms: &Vms, all: &[VmState]) -> Result<Vec<String>> {
    let names = meant(vms, &client.vms()?, all)?;
    if names.is_empty() {
        eprintln!("baton: no machine is in a state for that; `baton vm list` shows their states");
    }
    Ok(names)
}

fn meant(vms: &Vms, known: &[VmInfo], all: &[VmState]) -> Result<Vec<String>> {
    if vms.all {
        return Ok(known.iter().filter(|vm| all.contains(&vm.state)).map(|vm| vm.name.clone()).collect());
    }
    let mut once: Vec<String> = Vec::new();
    for name in &vms.names {
        check(name, known)?;
        if !once.contains(name) {
            once.push(name.clone());
        }
    }
    Ok(once)
}

/// Gives the order for each machine; after a refusal the others are still asked.
///
/// # Errors
/// The first refusal; the others are printed.
pub(super) fn give(client: &mut Client, names: &[String], order: &Order, format: Format) -> Result<u8> {
    let mut first = None;
    for name in names {
        match client.order((order.body)(name.clone())) {
            Ok(()) if format.json => println!("{}", serde_json::json!({ "name": name, "done": order.done })),
            Ok(()) => println!("{name} {}", order.done),
            Err(error) if first.is_none() => first = Some(error),
            Err(error) => eprintln!("baton: {error:#}"),
        }
    }
    first.map_or(Ok(DONE), Err)
}

/// Returns an error with a suggestion unless a machine has this name.
pub(super) fn check_name(client: &mut Client, name: &str) -> Result<()> {
    check(name, &client.vms()?)
}

fn check(name: &str, known: &[VmInfo]) -> Result<()> {
    if known.iter().any(|vm| vm.name == name) {
        return Ok(());
    }
    let suggestion = did_you_mean(name, known.iter().map(|vm| vm.name.as_str()));
    let hint = if suggestion.is_empty() { "; `baton vm list` shows those there are".to_owned() } else { suggestion };
    bail!(NotFound(format!("there is no virtual machine {name:?}{hint}")))
}

#[cfg(test)]
mod tests;
