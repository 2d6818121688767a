// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory on demand: stock Linux has what it touches, and gives back what it frees by its balloon, across updates.

use anyhow::{Result, ensure};
use baton::config::{Guest, Image};
use baton::size::Size;
use e2e::dmesg;
use e2e::host::Host;
use e2e::old_image;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder};
use e2e::stock;
use handover::state::DeviceKind;
use tempfile::TempDir;
use wire::{RequestBody, UpdateBy, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("a_guest_has_what_it_touches_and_gives_back_what_it_frees_across_updates", || comes_and_goes(Kernel::Default, 3)),
    ("a_guest_waits_for_memory_until_another_one_leaves_some", a_guest_waits_until_another_one_leaves_some),
];

pub const LONG_RULES: &[Rule] = &[
    ("linux_6_12_gives_memory_back_across_twenty_updates", || comes_and_goes(Kernel::V6_12, 20)),
    ("an_image_without_memory_on_demand_is_refused", an_image_without_it_is_refused),
];

const LINUX: &str = "linux";
const OTHER: &str = "other";
const DRIVERS: &[&str] = &["virtio_pci", "virtio_balloon"];
const ASSURED: Size = Size::mebibytes(64);
const SEEN: Size = Size::mebibytes(384);
/// Runs of `memtest`; the first while memory comes.
const TESTS: usize = 4;
/// Linux, its initial file system and what it keeps of files.
const MOST_WHEN_IDLE: u64 = 192 << 20;
/// Less than the four fifths of its memory that `memtest` writes.
const LEAST_WHEN_FULL: u64 = 256 << 20;

fn linux(folder: &TempDir, name: &str, kernel: Kernel, tasks: &str) -> Result<Guest> {
    let stock = stock::guest(folder.path(), name, kernel, DRIVERS, tasks)?;
    Ok(Guest { memory: ASSURED, memory_max: Some(SEEN), vcpus: 2, ..stock })
}

/// Waits until a guest has as much memory as `is_enough` wants.
fn resident(host: &mut Host, name: &str, is_enough: impl Fn(u64) -> bool) -> Result<()> {
    loop {
        let vm = host.vm(name)?;
        ensure!(vm.memory_bytes == SEEN.bytes, "{vm:?}");
        if vm.resident_bytes.is_some_and(&is_enough) {
            return Ok(());
        }
        host.wait_a_moment()?;
    }
}

fn comes_and_goes(kernel: Kernel, updates: u64) -> Result<()> {
    let folder = folder()?;
    let tests = ["memtest"; TESTS].join(",");
    let mut host = Recipe::new().guest(linux(&folder, LINUX, kernel, &format!("{tests},wait"))?).start()?;
    for generation in 2..2 + updates {
        host.update_to(generation)?;
    }
    resident(&mut host, LINUX, |bytes| bytes >= LEAST_WHEN_FULL)?;
    host.guest_prints(LINUX, "baton-agent: waiting")?;
    resident(&mut host, LINUX, |bytes| bytes <= MOST_WHEN_IDLE)?;
    host.update_to(2 + updates)?;
    resident(&mut host, LINUX, |bytes| bytes <= MOST_WHEN_IDLE)?;
    let console = host.seen.console(LINUX);
    ensure!(console.matches("written and read back").count() == TESTS && !console.contains("WRONG"), "{console}");
    let complaints = dmesg::suspicious(&console);
    ensure!(complaints.is_empty(), "the guest complains: {complaints:#?}");
    Ok(())
}

fn a_guest_waits_until_another_one_leaves_some() -> Result<()> {
    let folder = folder()?;
    let guest = |name| linux(&folder, name, Kernel::Default, "memtest,memtest,memtest,memtest,wait");
    let (first, second) = (guest(LINUX)?, Guest { autostart: false, ..guest(OTHER)? });
    let recipe = Recipe { memory: Size::mebibytes(576), ..Recipe::new() };
    let mut host = recipe.guest(first).guest(second).start()?;
    resident(&mut host, LINUX, |bytes| bytes >= LEAST_WHEN_FULL)?;
    host.order(RequestBody::VmStart { name: OTHER.to_owned() })?;
    host.logs(&["guest other: waits for memory beyond what it is assured"])?;
    ensure!(host.vm(OTHER)?.state == VmState::Running);
    host.update_to(2)?;
    host.order(RequestBody::VmStop { name: LINUX.to_owned() })?;
    host.guest_prints(OTHER, "baton-agent: waiting")?;
    let console = host.seen.console(OTHER);
    ensure!(!console.contains("WRONG"), "{console}");
    Ok(())
}

fn an_image_without_it_is_refused() -> Result<()> {
    let folder = folder()?;
    let old = folder.path().join("old.elf");
    std::fs::write(&old, old_image::knowing_devices_up_to(DeviceKind::PowerButton)?)?;
    let linux = linux(&folder, LINUX, Kernel::Default, "memtest,wait")?;
    let mut host = Recipe { image: Image::File(old), ..Recipe::new().guest(linux) }.start()?;
    host.guest_prints(LINUX, "written and read back")?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?;
    let text = refusal.to_string();
    ensure!(text.contains("guest 'linux': it has a device that the image does not know"), "{text}");
    host.is_up()
}
