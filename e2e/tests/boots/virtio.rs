// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtio devices of the host's, driven by stock Linux: entropy source and console, across updates.

use anyhow::{Result, bail, ensure};
use baton::config::{Guest, Image};
use bundle::VirtioDevices;
use e2e::dmesg;
use e2e::host::Host;
use e2e::old_image;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder};
use e2e::stock;
use handover::state::DeviceKind;
use wire::{ExitCount, ExitKind, ReplyBody, RequestBody, UpdateBy};

use super::Rule;

pub const RULES: &[Rule] = &[("linux_uses_entropy_and_console_across_an_update", || goes_on(Kernel::Default, 1))];

pub const LONG_RULES: &[Rule] = &[
    ("linux_6_12_uses_entropy_and_console_across_twenty_updates", || goes_on(Kernel::V6_12, 20)),
    ("an_image_without_virtio_devices_is_refused_while_the_guest_runs", an_image_without_them_is_refused),
    ("the_second_console_takes_a_fraction_of_com1s_exits", the_second_console_takes_a_fraction_of_com1s_exits),
];

const LINUX: &str = "linux";
const DRIVERS: &[&str] = &["virtio_pci", "virtio_rng", "virtio_console"];
const TASKS: &str = "hwrng:50,hvc:50";
const DEVICES: VirtioDevices = VirtioDevices { rng: true, console: true };

fn goes_on(kernel: Kernel, updates: u64) -> Result<()> {
    let folder = folder()?;
    let linux = Guest { virtio: DEVICES, ..stock::guest(folder.path(), LINUX, kernel, DRIVERS, TASKS)? };
    let mut host = Recipe::new().guest(linux).start()?;
    for generation in 2..2 + updates {
        devices_work(&mut host, generation)?;
        let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
        match host.client()?.request(update)? {
            ReplyBody::Updated(report) => ensure!(report.generation == generation, "{report:?}"),
            other => bail!("{other:?}"),
        }
    }
    devices_work(&mut host, 2 + updates)?;
    let console = host.seen.console(LINUX);
    ensure!(!console.contains("WRONG"), "{console}");
    let complaints = dmesg::suspicious(&console);
    ensure!(complaints.is_empty(), "the guest complains: {complaints:#?}");
    Ok(())
}

fn an_image_without_them_is_refused() -> Result<()> {
    let folder = folder()?;
    let old = folder.path().join("old.elf");
    std::fs::write(&old, old_image::knowing_devices_up_to(DeviceKind::HotPlug)?)?;
    let linux = Guest { virtio: DEVICES, ..stock::guest(folder.path(), LINUX, Kernel::Default, DRIVERS, TASKS)? };
    let mut host = Recipe { image: Image::File(old), ..Recipe::new().guest(linux) }.start()?;
    devices_work(&mut host, 1)?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?;
    let text = refusal.to_string();
    ensure!(text.contains("guest 'linux': it has a device that the image does not know"), "{text}");
    devices_work(&mut host, 2)
}

/// KiB that are printed on each console.
const PRINTED_KIB: u64 = 64;
/// Exits on COM1 for each one on the second console, at least.
const EXITS_RATIO: u64 = 20;

fn the_second_console_takes_a_fraction_of_com1s_exits() -> Result<()> {
    let folder = folder()?;
    let tasks = format!("print:ttyS0:{PRINTED_KIB},print:hvc0:{PRINTED_KIB},wait");
    let linux = Guest { virtio: DEVICES, ..stock::guest(folder.path(), LINUX, Kernel::Default, DRIVERS, &tasks)? };
    let mut host = Recipe::new().guest(linux).start()?;
    let com1 = exits(&mut host, "ttyS0")?;
    let second = exits(&mut host, "hvc0")?;
    println!("exits of {PRINTED_KIB} KiB: COM1 {com1}, second console {second}");
    ensure!(second > 0 && com1 >= EXITS_RATIO * second, "COM1: {com1} exits, the second console: {second}");
    Ok(())
}

/// The exits by ports and device registers while the guest prints on a console.
fn exits(host: &mut Host, device: &str) -> Result<u64> {
    host.guest_prints(LINUX, &format!("print: begins on /dev/{device}"))?;
    let before = accesses(host)?;
    host.guest_prints(LINUX, &format!("print: {PRINTED_KIB} KiB on /dev/{device}"))?;
    Ok(accesses(host)? - before)
}

fn accesses(host: &mut Host) -> Result<u64> {
    let exits = host.vm(LINUX)?.exits;
    let is_access = |exit: &&ExitCount| matches!(exit.kind, ExitKind::Port | ExitKind::MemoryFault);
    Ok(exits.iter().filter(is_access).map(|exit| exit.count).sum())
}

/// The guest reads random bytes, writes to its second console, and answers what is typed there, from now on.
fn devices_work(host: &mut Host, turn: u64) -> Result<()> {
    host.guest_prints(LINUX, "hwrng ")?;
    host.guest_prints(LINUX, "hvc ")?;
    host.types(LINUX, &format!("turn {turn}\n"))?;
    host.guest_prints(LINUX, &format!("hvc answers turn {turn}"))
}
