// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts that are restarted, and hosts that are sent a file.

use std::ffi::OsString;
use std::fmt;
use std::time::Instant;

use anyhow::{Result, bail};
use baton::config::{Guest, Image};
use baton::image;
use baton::size::Size;
use lab::What;
use wire::{EventKind, ReplyBody, RequestBody, UploadKind};

use super::hashing::machine_options;
use crate::Context;
use crate::setup::{HostSetup, Started, keeper};

const MEMORY: Size = Size::mebibytes(128);
const GUEST_MEMORY: Size = Size::mebibytes(16);

/// The guest's activity.
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

/// The cost of a restart, in instructions where they are counted, and in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restarted {
    /// From the first stop of a guest until the host answers again.
    pub blackout: f64,
    pub hashing_in_blackout: f64,
    pub hashing_before: f64,
    pub bytes_in_blackout: f64,
}

/// Restarts a host on one CPU with counted instructions: one takes a nanosecond.
pub(super) fn measure(context: &Context, cpu: &str, policy: &str) -> Result<Restarted> {
    let options = machine_options(cpu, true);
    let host = start(context, GuestDoes::Wait, &format!("verify={policy}"), options)?;
    let mut client = host.lab.client()?;
    let reply = client.request_within(context.timeout, RequestBody::Restart)?;
    let ReplyBody::Restarted(report) = reply else { bail!("the host answered something else ({reply:?})") };
    Ok(Restarted {
        blackout: report.host_blackout_ns as f64,
        hashing_in_blackout: report.hashing_in_blackout_ns as f64,
        hashing_before: report.hashing_before_ns as f64,
        bytes_in_blackout: report.bytes_hashed_in_blackout as f64,
    })
}

/// Sends a host its own image; how many bytes get across in a second.
pub(super) fn upload(context: &Context, does: GuestDoes) -> Result<f64> {
    let file = image::sealed(image::read(&context.image)?);
    let host = start(context, does, "", machine_options("max", false))?;
    let mut client = host.lab.client()?;
    let began = Instant::now();
    client.upload(UploadKind::Image, &file, |_| ())?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(file.len() as f64 / seconds)
}

/// Starts a host and waits until its guest has started.
fn start(context: &Context, does: GuestDoes, options: &str, extra: Vec<OsString>) -> Result<Started> {
    let (guests, options) = (vec![guest(context, does)?], options.to_owned());
    let setup = HostSetup { guests, image: Image::Usual, options, extra, ..HostSetup::new(MEMORY) };
    let mut host = setup.start(context)?;
    host.wait(context.timeout, "the guest's start", |what| match what {
        What::Event(event) => matches!(event.kind, EventKind::VmStarted { .. }).then_some(()),
        _ => None,
    })?;
    Ok(host)
}

/// A guest that waits or computes until the machine ends.
fn guest(context: &Context, does: GuestDoes) -> Result<Guest> {
    let tasks = match does {
        GuestDoes::Wait => "do=wait",
        GuestDoes::Compute => "seed=2 rounds=2000000000 do=registers",
    };
    Ok(Guest { debug_exit: false, ..keeper(context, tasks, GUEST_MEMORY)? })
}
