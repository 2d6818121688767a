// SPDX-License-Identifier: MIT OR Apache-2.0
//! IOMMUs: a device that is told to write to the host's memory writes where nothing keeps it from that, and nowhere
//! else; an update goes on with the units as they are.

use std::ffi::OsString;

use anyhow::{Result, ensure};
use e2e::host::Host;
use e2e::recipe::Recipe;
use wire::{EventKind, IommuKind, ReplyBody, RequestBody, UpdateBy};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("a_device_writes_where_there_is_no_iommu", a_device_writes_where_there_is_no_iommu),
    ("amd_vi_keeps_a_device_from_memory_before_and_after_an_update", || is_kept_from_memory(&AMD)),
    ("vt_d_keeps_a_device_from_memory_before_and_after_an_update", || is_kept_from_memory(&INTEL)),
];

/// An emulated IOMMU.
struct Iommu {
    device: &'static str,
    kind: IommuKind,
    registers: u64,
    /// Where QEMU puts the next device.
    edu: (u16, u8, u8, u8),
    /// It logs accesses of functions that are blocked. QEMU's AMD-Vi refuses them without a word, where the manual
    /// wants an event (48882, section 2.2.2.1, mode 0).
    logs: bool,
}

const AMD: Iommu = Iommu {
    device: "amd-iommu,intremap=on",
    kind: IommuKind::AmdVi,
    registers: 0xfed8_0000,
    edu: (0, 0, 2, 0),
    logs: false,
};
const INTEL: Iommu = Iommu {
    device: "intel-iommu,intremap=on",
    kind: IommuKind::VtD,
    registers: 0xfed9_0000,
    edu: (0, 0, 1, 0),
    logs: true,
};

const GUEST: &str = "beats";

fn with_edu(iommu: Option<&Iommu>) -> Result<Host> {
    // By default `edu` reaches the first 256 MiB, and wraps there.
    let edu = Some("edu,dma_mask=0xffffffffffffffff");
    let devices = iommu.map(|iommu| iommu.device).into_iter().chain(edu);
    let arguments: Vec<OsString> = devices.flat_map(|device| ["-device".into(), device.into()]).collect();
    // An entry of an IOMMU's tables is changed by CMPXCHG16B.
    let recipe = Recipe { cpu: "max", ..Recipe::new() };
    let recipe = recipe.with_fault_points().next_with_fault_points().with(arguments);
    recipe.options("selftest=dma").beating(GUEST)?.start()
}

fn a_device_writes_where_there_is_no_iommu() -> Result<()> {
    let mut host = with_edu(None)?;
    host.says(&["self-test dma: memory is overwritten"])?;
    ensure!(host.client()?.iommus()?.is_empty(), "{}", host.seen);
    host.powers_off()
}

fn is_kept_from_memory(iommu: &Iommu) -> Result<()> {
    let mut host = with_edu(Some(iommu))?;
    is_refused(&mut host, iommu, 1)?;
    host.beats(GUEST, 5)?;
    let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
    let reply = host.client()?.request_within(e2e::host::BOOT_LIMIT, update)?;
    ensure!(matches!(&reply, ReplyBody::Updated(report) if report.generation == 2), "{reply:?}");
    is_refused(&mut host, iommu, 2)?;
    host.beats(GUEST, 5)?;
    ensure!(!host.seen.to_string().contains("taken over again"), "{}", host.seen);
    host.powers_off()
}

/// The device has not changed memory, in each of so many images, and the operator is told.
fn is_refused(host: &mut Host, iommu: &Iommu, images: usize) -> Result<()> {
    host.wait("the device's failure", |seen| {
        seen.to_string().matches("self-test dma: memory is as it was").count() == images
    })?;
    let is_told = |event: &&EventKind| matches!(event, EventKind::AccessRefused { place, .. } if *place == iommu.edu);
    if iommu.logs {
        host.wait("an event of a refused access", |seen| seen.events.iter().filter(is_told).count() >= images)?;
    }
    let units = host.client()?.iommus()?;
    let [unit] = units.as_slice() else { anyhow::bail!("{units:?}") };
    ensure!((unit.kind, unit.registers, &unit.problem) == (iommu.kind, iommu.registers, &None), "{unit:?}");
    ensure!((unit.refused > 0) == iommu.logs, "{unit:?}");
    Ok(())
}
