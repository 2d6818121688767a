// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several guests on a host of one processor, until each has said its last line.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use baton::config::{Config, Guest, Host, Image};
use baton::size::Size;
use bundle::WhenDone;
use lab::{Accelerator, Happening, Lab, Machine, RunDir, What};
use wire::RequestBody;

use super::Context;
use bundle::{OnPanic, Pmu};

/// The guests' last line.
const DONE: &str = "turns: done";
const GUEST_MEMORY: Size = Size::mebibytes(16);
const HOST_MEMORY: Size = Size::mebibytes(512);

/// A guest of one virtual processor that does this.
pub(crate) fn turns(context: &Context, name: &str, cmdline: &str) -> Result<Guest> {
    Ok(Guest {
        name: name.to_owned(),
        kernel: context.made("target/guests/turns.elf")?,
        initrd: None,
        modules: Vec::new(),
        cmdline: cmdline.to_owned(),
        vcpus: 1,
        memory: GUEST_MEMORY,
        debug_exit: true,
        weight: 100,
        on_panic: OnPanic::Throttle,
        hung_s: 0,
        pmu: Pmu::Off,
        pmu_events: None,
        autostart: false,
    })
}

/// Runs the guests beside each other on one processor of a machine that counts instructions (a tick is 2^`shift` ns);
/// returns what each wrote on its console. The host's local APIC is the memory-mapped one: see `exits`.
pub(crate) fn run_guests(
    context: &Context,
    guests: Vec<Guest>,
    shift: &str,
    options: &str,
    timeout: Duration,
) -> Result<BTreeMap<String, String>> {
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    let bundle = folder.path().join("bundle.cpio");
    let names: Vec<String> = guests.iter().map(|guest| guest.name.clone()).collect();
    let host =
        Host { cpus: 1, memory: HOST_MEMORY, when_done: WhenDone::Stay, cmdline: String::new(), image: Image::None };
    let config = Config { path: PathBuf::from("bench"), trusted_keys: vec![], allow_downgrade: None, host, guests };
    std::fs::write(&bundle, baton::bundle::build(&config, None)?)?;
    let icount = format!("shift={shift},sleep=off");
    let machine = Machine {
        qemu: context.qemu.clone(),
        accelerator: Accelerator::Tcg,
        cpus: 1,
        memory: HOST_MEMORY,
        image: context.image.clone(),
        bundle: Some(bundle),
        disc: None,
        cmdline: options.to_owned(),
        // A second -cpu replaces the first.
        extra: ["-icount", &icount, "-cpu", "max,-x2apic"].map(Into::into).to_vec(),
    };
    let lab = Lab::start(&machine, RunDir::take_at(&folder.path().join("run"))?)?;
    collect(lab, &names, context.timeout.max(timeout))
}

fn collect(mut lab: Lab, names: &[String], timeout: Duration) -> Result<BTreeMap<String, String>> {
    let mut consoles: BTreeMap<String, String> = names.iter().map(|name| (name.clone(), String::new())).collect();
    let mut host_lines = Vec::new();
    while let Some(left) = timeout.checked_sub(lab.elapsed()) {
        let Some(Happening { what, .. }) = lab.next(left) else { break };
        match what {
            What::Ready => {
                let mut client = lab.client()?;
                names.iter().try_for_each(|name| client.order(RequestBody::VmStart { name: name.clone() }))?;
            }
            What::Console { name, bytes } => {
                consoles.entry(name).or_default().push_str(&String::from_utf8_lossy(&bytes));
            }
            What::HostLine(line) | What::EmulatorLine(line) => host_lines.push(line),
            What::Ended(ending) => {
                bail!("the machine ended before its guests: {ending}\n{}", host_lines.join("\n"));
            }
            _ => {}
        }
        if consoles.values().all(|console| console.contains(DONE)) {
            lab.kill();
            return Ok(consoles);
        }
    }
    bail!("the guests were not done within {timeout:?}: {consoles:#?}\nThe host said\n{}", host_lines.join("\n"))
}
