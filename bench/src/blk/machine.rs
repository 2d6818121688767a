// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine: a guest with an NVMe disk, which serves it, and one that uses it by virtio.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::client::Client;
use baton::config::{Device, Guest, Iommu, Nvme, Storage};
use baton::size::Size;
use bundle::{AssignedConfig, DiskConfig, VsockConfig};
use lab::What;
use lab::disk_use::DiskUse;
use wire::DiskInfo;

use crate::Context;
use crate::setup::{HostSetup, Started, linux};

pub(super) const STORAGE: &str = "storage";
pub(super) const WEB: &str = "web";
const MEMORY: Size = Size::mebibytes(1024);
const DISK: Size = Size::mebibytes(64);
pub(super) const CID: u32 = 5;
/// Longer than the storage guest takes to boot on a slow machine: no request may fail.
const TIMEOUT_S: u32 = 600;

/// Returns the machine, where the agent of `web` does `tasks`. Files are put in `folder`.
pub(super) fn setup(context: &Context, folder: &Path, tasks: &str, is_write_back: bool) -> Result<HostSetup> {
    let serial = "blk".to_owned();
    let nvme = Nvme { storage: Storage::Temporary(DISK), serial: serial.clone(), virtual_functions: 0 };
    let disk = DiskConfig {
        cid: CID,
        port: 10_809,
        export: "web-root".to_owned(),
        is_write_back,
        timeout_s: TIMEOUT_S,
        serial,
        ..DiskConfig::default()
    };
    let web = linux(context, folder, WEB, &["virtio_pci", "virtio_blk"], tasks)?;
    let guests = vec![storage(context, folder)?, Guest { disks: vec![disk], ..web }];
    Ok(HostSetup { guests, iommu: Iommu::Amd, devices: vec![Device::Nvme(nvme)], ..HostSetup::new(MEMORY) })
}

fn storage(context: &Context, folder: &Path) -> Result<Guest> {
    let drivers = ["virtio_pci", "vmw_vsock_virtio_transport"];
    let selector = "1b36:0010".to_owned();
    Ok(Guest {
        vsock: Some(VsockConfig { cid: CID, peers: Vec::new(), control: None }),
        functions: vec![AssignedConfig { selector, without_reset: false, gsi: None, virtual_functions: 0 }],
        initrd: Some(context.made("target/guests/nbdkit.cpio")?),
        cmdline: "console=ttyS0 loglevel=5".to_owned(),
        ..linux(context, folder, STORAGE, &drivers, "wait")?
    })
}

/// Returns the disk as the host lists it.
pub(super) fn disk(client: &mut Client) -> Result<DiskInfo> {
    client.disks()?.pop().context("the host lists no disk")
}

/// Returns how many requests it has answered in the running image.
pub(super) fn answered(disk: &DiskInfo) -> u64 {
    disk.reads.requests + disk.writes.requests
}

/// The output of the guest with the disk.
#[derive(Debug, Default)]
pub(super) struct Console {
    text: String,
    /// Bytes of it that were read.
    seen: usize,
}

impl Console {
    /// Waits for its next report, until the machine has run for `limit`.
    ///
    /// # Errors
    /// None came; or a block was wrong, or an access failed, by all that it has printed until then.
    pub(super) fn next_report(&mut self, host: &mut Started, limit: Duration) -> Result<DiskUse> {
        loop {
            if let Some(report) = self.reported()? {
                return Ok(report);
            }
            let text = &mut self.text;
            host.wait(limit, "the guest's report of its disk", |what| printed(what).map(|printed| *text += &printed))?;
        }
    }

    /// Returns its next report that is there already.
    ///
    /// # Errors
    /// A block was wrong, or an access failed.
    pub(super) fn old_report(&mut self, host: &mut Started) -> Result<Option<DiskUse>> {
        while let Some(happening) = host.lab.next(Duration::ZERO) {
            self.text.extend(printed(&happening.what));
        }
        self.reported()
    }

    fn reported(&mut self) -> Result<Option<DiskUse>> {
        while let Some(length) = self.text[self.seen..].find('\n') {
            let line = &self.text[self.seen..self.seen + length];
            self.seen += length + 1;
            ensure!(!line.contains("WRONG") && !line.contains("I/O error"), "the guest printed {line:?}");
            if let Some(report) = DiskUse::of(line) {
                ensure!(report.wrong == 0 && report.errors == 0, "the guest printed {line:?}");
                return Ok(Some(report));
            }
        }
        Ok(None)
    }
}

/// Returns what the guest with the disk has printed.
fn printed(what: &What) -> Option<String> {
    match what {
        What::Console { name, bytes } if name == WEB => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}
