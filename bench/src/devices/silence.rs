// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stream of datagrams from a guest's own network card, while the host is updated.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail};
use baton::config::{Backend, Device, Guest, Image, Iommu, Model, Network};
use baton::drivers::Drivers;
use baton::size::Size;
use bundle::AssignedConfig;
use lab::What;
use lab::datagrams::{Arrivals, Receiver};
use wire::{ReplyBody, RequestBody, UpdateBy};

use super::XAPIC;
use crate::Context;
use crate::setup::{HostSetup, Started, guest, temporary_folder};

const MEMORY: Size = Size::mebibytes(768);
const GUEST_MEMORY: Size = Size::mebibytes(384);
const CARD: &str = "8086:10d3";
/// The addresses of QEMU's user networking.
pub(super) const OWN: &str = "10.0.2.15";
pub(super) const GATEWAY: &str = "10.0.2.2";
/// Updates of each machine.
const UPDATES: usize = 50;
/// From the first datagram to the first update, and between windows.
const PAUSE: Duration = Duration::from_millis(500);

/// Longest silences in milliseconds.
#[derive(Debug, Default)]
pub(super) struct Windows {
    pub with_ms: Vec<f64>,
    pub without_ms: Vec<f64>,
    pub lost: f64,
}

impl Windows {
    /// Adds the longest silences of two windows: with an update, and without one.
    pub(super) fn add(&mut self, arrivals: &Arrivals, with: Range<Duration>, without: Range<Duration>) {
        let silence = |window| arrivals.longest_silence(window).as_secs_f64() * 1e3;
        self.with_ms.push(silence(with));
        self.without_ms.push(silence(without));
    }

    /// By how much each update's silence was longer than that of the window after it.
    pub(super) fn excess_ms(&self) -> Vec<f64> {
        self.with_ms.iter().zip(&self.without_ms).map(|(with, without)| with - without).collect()
    }
}

/// A kernel that has the card's driver as a module.
pub(super) fn kernel(context: &Context) -> Result<PathBuf> {
    context.made("target/kernels/6.1-full/vmlinuz")
}

/// Measures the silences of [`UPDATES`] updates.
pub(super) fn measure(context: &Context, iommu: Iommu, name: &str) -> Result<Windows> {
    let (receiver, port) = Receiver::of_user_network()?;
    let folder = temporary_folder()?;
    let kernel = kernel(context)?;
    let drivers = folder.path().join("drivers.cpio");
    fs::write(&drivers, Drivers::of(kernel.parent().unwrap_or(&kernel))?.archive(&["e1000e"])?)?;
    let linux = Guest {
        initrd: Some(context.made("target/guests/initramfs.cpio")?),
        modules: vec![drivers],
        cmdline: format!("console=ttyS0 loglevel=5 agent=drivers,stream:{OWN}:{GATEWAY}:{port}"),
        functions: vec![AssignedConfig {
            selector: CARD.to_owned(),
            without_reset: false,
            gsi: None,
            virtual_functions: 0,
        }],
        ..guest("linux", kernel, GUEST_MEMORY)
    };
    let card = Network { model: Model::E1000e, backend: Backend::User { forward: Vec::new() }, mac: None };
    let setup = HostSetup {
        guests: vec![linux],
        image: Image::Usual,
        options: XAPIC.to_owned(),
        iommu,
        devices: vec![Device::Network(card)],
        ..HostSetup::new(MEMORY)
    };
    let mut host = setup.start(context)?;
    await_stream(context, &mut host)?;
    let mut windows = Windows::default();
    for update in 1..=UPDATES {
        context.step(&format!("devices: {name}: update {update} of {UPDATES}"));
        sleep(PAUSE);
        let start = receiver.now();
        let body = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
        match host.lab.client()?.request_within(context.timeout, body)? {
            ReplyBody::Updated(_) => {}
            other => bail!("not the answer to an update: {other:?}"),
        }
        let length = receiver.now() - start;
        sleep(PAUSE + length + PAUSE);
        let without = start + length + PAUSE;
        windows.add(&receiver.arrivals(), start..start + length, without..without + length);
    }
    windows.lost = receiver.arrivals().lost_count() as f64;
    Ok(windows)
}

fn await_stream(context: &Context, host: &mut Started) -> Result<()> {
    let mut console = String::new();
    host.wait(context.timeout, "the guest's first line about its stream", |what| {
        if let What::Console { bytes, .. } = what {
            console += &String::from_utf8_lossy(bytes);
        }
        console.contains("stream 0 sent=").then_some(())
    })
}
