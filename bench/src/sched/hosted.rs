// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several guests on a host of one CPU, until each has reported its last line.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use baton::config::Guest;
use baton::size::Size;
use bundle::OnPanic;
use lab::What;
use wire::RequestBody;

use super::Context;
use crate::setup::{HostSetup, Started, guest};

/// The guests' last line.
const DONE: &str = "turns: done";
const GUEST_MEMORY: Size = Size::mebibytes(16);
const HOST_MEMORY: Size = Size::mebibytes(512);

/// A guest of one vCPU that does this.
pub(crate) fn turns(context: &Context, name: &str, cmdline: &str) -> Result<Guest> {
    Ok(Guest {
        cmdline: cmdline.to_owned(),
        debug_exit: true,
        on_panic: OnPanic::Throttle,
        autostart: false,
        ..guest(name, context.made("target/guests/turns.elf")?, GUEST_MEMORY)
    })
}

/// Runs the guests beside each other on one CPU of a machine that counts instructions (a tick is 2^`shift` ns);
/// returns what each wrote on its console. The host's local APIC is the memory-mapped one: see `exits`.
pub(crate) fn run_guests(
    context: &Context,
    guests: Vec<Guest>,
    shift: &str,
    options: &str,
    timeout: Duration,
) -> Result<BTreeMap<String, String>> {
    let names: Vec<String> = guests.iter().map(|guest| guest.name.clone()).collect();
    let icount = format!("shift={shift},sleep=off");
    let setup = HostSetup {
        guests,
        options: options.to_owned(),
        extra: ["-icount", &icount, "-cpu", "max,-x2apic"].map(Into::into).to_vec(),
        ..HostSetup::new(HOST_MEMORY)
    };
    collect(setup.start(context)?, &names, context.timeout.max(timeout))
}

/// Starts the guests; returns their consoles once each has printed its last line.
fn collect(mut host: Started, names: &[String], timeout: Duration) -> Result<BTreeMap<String, String>> {
    let mut consoles: BTreeMap<String, String> = names.iter().map(|name| (name.clone(), String::new())).collect();
    host.wait(timeout, "the host's first answer", |what| matches!(what, What::Ready).then_some(()))?;
    let mut client = host.lab.client()?;
    names.iter().try_for_each(|name| client.order(RequestBody::VmStart { name: name.clone() }))?;
    let done = host.wait(timeout, "the guests' last lines", |what| {
        let What::Console { name, bytes } = what else { return None };
        consoles.entry(name.clone()).or_default().push_str(&String::from_utf8_lossy(bytes));
        consoles.values().all(|console| console.contains(DONE)).then_some(())
    });
    done.with_context(|| format!("the guests printed {consoles:#?}"))?;
    Ok(consoles)
}
