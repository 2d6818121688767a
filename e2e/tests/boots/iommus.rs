// SPDX-License-Identifier: MIT OR Apache-2.0
//! IOMMUs: a device that is programmed to write to the host's memory writes where nothing keeps it from that, and
//! nowhere else; an update goes on with the units as they are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::Image;
use baton::image::sealed;
use e2e::host::Host;
use e2e::place::built;
use e2e::recipe::{Recipe, folder};
use handover::image::{BUILD_TEXT_BYTES, IOMMU_VERSION};
use wire::{EventKind, IommuKind, ReplyBody, RequestBody, UpdateBy};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("a_device_writes_where_there_is_no_iommu", a_device_writes_where_there_is_no_iommu),
    ("amd_vi_keeps_a_device_from_memory_before_and_after_an_update", || is_kept_from_memory(&AMD)),
    ("vt_d_keeps_a_device_from_memory_before_and_after_an_update", || is_kept_from_memory(&INTEL)),
    ("vt_d_passes_interrupts_for_an_image_that_cannot_remap_them", is_passed_for_an_image_of_old),
    ("vt_d_remaps_interrupts_again_when_such_an_update_is_rolled_back", is_remapped_after_a_rollback),
    ("vt_d_lets_the_watchdogs_nmi_through", the_watchdogs_nmi_arrives),
    ("a_host_that_has_ended_answers_where_amd_vi_passes_its_interrupts", || answers_after_its_end(&AMD)),
    ("a_host_that_has_ended_answers_where_vt_d_remaps_its_interrupts", || answers_after_its_end(&INTEL)),
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
    /// The host has it remap interrupts, its own among them.
    remaps: bool,
}

const AMD: Iommu = Iommu {
    device: "amd-iommu,intremap=on,pt=off",
    kind: IommuKind::AmdVi,
    registers: 0xfed8_0000,
    edu: (0, 0, 2, 0),
    logs: false,
    remaps: false,
};
const INTEL: Iommu = Iommu {
    device: "intel-iommu,intremap=on",
    kind: IommuKind::VtD,
    registers: 0xfed9_0000,
    edu: (0, 0, 1, 0),
    logs: true,
    remaps: true,
};

const GUEST: &str = "beats";
/// Behind the owner of an image's note: the version in text, and the version of IOMMUs.
const VERSION_TEXT_AT: usize = 24;
const IOMMU_AT: usize = VERSION_TEXT_AT + 24 + BUILD_TEXT_BYTES + 8;

const REMAPPED: &str = "interrupts are remapped";
const PASSED: &str = "interrupts pass unchecked, for an image that cannot remap them";

fn with_edu(iommu: Option<&Iommu>) -> Result<Host> {
    recipe(iommu).next_with_fault_points().options("selftest=dma").beating(GUEST)?.start()
}

fn recipe(iommu: Option<&Iommu>) -> Recipe {
    // By default `edu` reaches the first 256 MiB, and wraps there.
    let edu = Some("edu,dma_mask=0xffffffffffffffff");
    let devices = iommu.map(|iommu| iommu.device).into_iter().chain(edu);
    let arguments: Vec<OsString> = devices.flat_map(|device| ["-device".into(), device.into()]).collect();
    // An entry of an IOMMU's tables is changed by CMPXCHG16B.
    Recipe { cpu: "max", ..Recipe::new() }.with_fault_points().with(arguments)
}

fn a_device_writes_where_there_is_no_iommu() -> Result<()> {
    let mut host = with_edu(None)?;
    host.logs(&["self-test dma: memory is overwritten"])?;
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
    are_remapped(&mut host, usize::from(iommu.remaps))?;
    host.powers_off()
}

/// Interrupts began to be remapped so often, and no input of the host's was left without an entry.
fn are_remapped(host: &mut Host, times: usize) -> Result<()> {
    host.wait("remapped interrupts", |seen| seen.to_string().matches(REMAPPED).count() == times)?;
    ensure!(!host.seen.to_string().contains("is blocked"), "{}", host.seen);
    Ok(())
}

/// Writes an image to a folder; its note states this version of IOMMUs.
pub fn image_of(folder: &Path, version: u32) -> Result<PathBuf> {
    let path = folder.join("old.elf");
    let mut image = std::fs::read(built("baton-faults.elf")?)?;
    let owner = b"Baton\0\0\0";
    let text = env!("CARGO_PKG_VERSION").as_bytes();
    let is_note = |at: &usize| image[*at..].starts_with(owner) && image[*at + VERSION_TEXT_AT..].starts_with(text);
    let at = (0..image.len() - IOMMU_AT - 4).rev().find(is_note).context("the image has no note")?;
    ensure!(image[at + IOMMU_AT..][..4] == IOMMU_VERSION.to_le_bytes(), "the note has another layout");
    image[at + IOMMU_AT..][..4].copy_from_slice(&version.to_le_bytes());
    std::fs::write(&path, sealed(image))?;
    Ok(path)
}

/// A host with VT-d; its next image states in its note that it knows no version of IOMMUs.
fn before_an_image_of_old(folder: &Path, options: &str) -> Result<Host> {
    let path = image_of(folder, 0)?;
    let recipe = Recipe { image: Image::File(path), ..recipe(Some(&INTEL)) };
    let mut host = recipe.options(options).beating(GUEST)?.start()?;
    host.logs(&[REMAPPED])?;
    host.beats(GUEST, 5)?;
    Ok(host)
}

fn is_passed_for_an_image_of_old() -> Result<()> {
    let folder = folder()?;
    let mut host = before_an_image_of_old(folder.path(), "")?;
    let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
    let reply = host.client()?.request_within(e2e::host::BOOT_LIMIT, update)?;
    ensure!(matches!(&reply, ReplyBody::Updated(report) if report.generation == 2), "{reply:?}");
    host.beats(GUEST, 5)?;
    host.client()?.info()?;
    // It is of now, whatever its note states: it goes on with the units as they are, and has them remap.
    ensure!(!host.seen.to_string().contains("taken over again"), "{}", host.seen);
    are_remapped(&mut host, 2)?;
    host.powers_off()
}

fn is_remapped_after_a_rollback() -> Result<()> {
    let folder = folder()?;
    let mut host = before_an_image_of_old(folder.path(), "selftest=update:panic:restore")?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?;
    ensure!(refusal.reason.contains("rolled back"), "{refusal:?}");
    host.logs(&[PASSED])?;
    host.beats(GUEST, 5)?;
    host.client()?.info()?;
    are_remapped(&mut host, 2)?;
    host.powers_off()
}

/// A new image that hangs with interrupts masked, while it prepares itself, loses the CPU by the watchdog's NMI alone.
fn the_watchdogs_nmi_arrives() -> Result<()> {
    let recipe = recipe(Some(&INTEL)).next_with_fault_points().options("selftest=update:freeze:prepare");
    let mut host = recipe.beating(GUEST)?.start()?;
    host.logs(&[REMAPPED])?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: true, by: UpdateBy::Bundle })?;
    ensure!(refusal.reason.contains("hangs with interrupts masked"), "{refusal:?}");
    host.beats(GUEST, 5)?;
    are_remapped(&mut host, 1)?;
    host.powers_off()
}

/// The CPU that ends the host halts, and is woken by the control channel's UART alone.
fn answers_after_its_end(iommu: &Iommu) -> Result<()> {
    let mut host = recipe(Some(iommu)).options("selftest=panic-when-asked panic=halt").start()?;
    are_remapped(&mut host, usize::from(iommu.remaps))?;
    // There is no answer to this question.
    let events = RequestBody::Events { from_sequence: 0, limit: 1 };
    let _ = host.client()?.request_within(Duration::from_millis(100), events);
    host.logs(&["panic on CPU 0: self-test, as asked"])?;
    host.logs(&["end of report"])?;
    let info = host.client()?.info()?;
    ensure!(info.version.contains("this host has ended"), "{info:?}");
    host.powers_off()
}

/// The device has not changed memory, in each of so many images, and the operator is notified.
fn is_refused(host: &mut Host, iommu: &Iommu, images: usize) -> Result<()> {
    host.wait("the device's failure", |seen| {
        seen.to_string().matches("self-test dma: memory is as it was").count() == images
    })?;
    let is_wanted = |event: &&EventKind| matches!(event, EventKind::AccessRefused { place, .. } if *place == iommu.edu);
    if iommu.logs {
        host.wait("an event of a refused access", |seen| seen.events.iter().filter(is_wanted).count() >= images)?;
    }
    let units = host.client()?.iommus()?;
    let [unit] = units.as_slice() else { anyhow::bail!("{units:?}") };
    ensure!((unit.kind, unit.registers, &unit.problem) == (iommu.kind, iommu.registers, &None), "{unit:?}");
    ensure!((unit.refused > 0) == iommu.logs, "{unit:?}");
    Ok(())
}
