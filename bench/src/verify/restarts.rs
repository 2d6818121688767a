// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts that are restarted, and hosts that are sent a file.

use std::fmt;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use baton::config::{Config, Guest, Host, Image};
use baton::image;
use baton::size::Size;
use bundle::{OnPanic, Pmu, WhenDone};
use lab::{Happening, Lab, RunDir, What};
use tempfile::TempDir;
use wire::{EventKind, ReplyBody, RequestBody, UploadKind};

use super::hashing::machine_options;
use crate::Context;

const MEMORY: Size = Size::mebibytes(128);
const GUEST_MEMORY: Size = Size::mebibytes(16);
const NAME: &str = "guest";

/// What the guest does meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuestDoes {
    Wait,
    Compute,
}

impl fmt::Display for GuestDoes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Wait { "waits" } else { "computes" })
    }
}

/// What a restart took, in instructions where they are counted, and bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restarted {
    /// From the first stop of a guest until the host answers again.
    pub gap: f64,
    pub hashing_in_gap: f64,
    pub hashing_before: f64,
    pub bytes_in_gap: f64,
}

/// Restarts a host on one processor whose instructions are counted: one takes a nanosecond.
pub(super) fn measure(context: &Context, processor: &str, policy: &str) -> Result<Restarted> {
    let options = machine_options(processor, true);
    let (mut lab, _folder) = start(context, GuestDoes::Wait, &format!("verify={policy}"), options)?;
    let mut client = lab.client()?;
    let reply = client.request_within(context.timeout, RequestBody::Restart)?;
    lab.kill();
    let ReplyBody::Restarted(report) = reply else { bail!("the host answered something else ({reply:?})") };
    Ok(Restarted {
        gap: report.host_gap_ns as f64,
        hashing_in_gap: report.hashing_in_gap_ns as f64,
        hashing_before: report.hashing_before_ns as f64,
        bytes_in_gap: report.bytes_hashed_in_gap as f64,
    })
}

/// Sends a host its own image; how many bytes get across in a second.
pub(super) fn upload(context: &Context, does: GuestDoes) -> Result<f64> {
    let file = image::sealed(image::read(&context.image)?);
    let (mut lab, _folder) = start(context, does, "", machine_options("max", false))?;
    let mut client = lab.client()?;
    let began = Instant::now();
    client.upload(UploadKind::Image, &file, |_| ())?;
    let seconds = began.elapsed().as_secs_f64();
    lab.kill();
    Ok(file.len() as f64 / seconds)
}

/// A host with a guest that has started. The folder holds its bundle and sockets.
fn start(context: &Context, does: GuestDoes, options: &str, extra: Vec<std::ffi::OsString>) -> Result<(Lab, TempDir)> {
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    let bundle = folder.path().join("bundle.cpio");
    let host = Host { cpus: 1, memory: MEMORY, when_done: WhenDone::Stay, cmdline: String::new(), image: Image::Usual };
    let guests = vec![guest(context, does)?];
    let config = Config { path: PathBuf::from("bench"), host, trusted_keys: vec![], allow_downgrade: None, guests };
    std::fs::write(&bundle, baton::bundle::build(&config, Some(&context.image))?)?;
    let machine = context.machine(bundle, MEMORY, options.to_owned(), extra);
    let mut lab = Lab::start(&machine, RunDir::take_at(&folder.path().join("run"))?)?;
    while let Some(left) = context.timeout.checked_sub(lab.elapsed()) {
        let Some(Happening { what, .. }) = lab.next(left) else { break };
        if let What::Event(event) = what
            && matches!(event.kind, EventKind::VmStarted { .. })
        {
            return Ok((lab, folder));
        }
    }
    bail!("the host did not start its guest within {:?}; raise --timeout on a slow machine", context.timeout)
}

/// One that waits, or computes, for as long as it is let.
fn guest(context: &Context, does: GuestDoes) -> Result<Guest> {
    let cmdline = match does {
        GuestDoes::Wait => "do=wait",
        GuestDoes::Compute => "seed=2 rounds=2000000000 do=registers",
    };
    Ok(Guest {
        name: NAME.to_owned(),
        kernel: context.made("target/guests/keeper.elf")?,
        initrd: None,
        modules: Vec::new(),
        cmdline: cmdline.to_owned(),
        vcpus: 1,
        memory: GUEST_MEMORY,
        debug_exit: false,
        weight: 100,
        on_panic: OnPanic::default(),
        hung_s: 0,
        pmu: Pmu::Off,
        pmu_events: None,
        autostart: true,
    })
}
