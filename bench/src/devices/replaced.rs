// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same stream of datagrams from a guest of a stock Linux with KVM, in Baton's place on the same emulator, while
//! its host is replaced by kexec and QEMU's CPR (`cpr-reboot`, QEMU 8.2 and newer).
//!
//! The guest's card is virtio over a tap, which a bridge connects to the machine's own card. Before the kernel is
//! replaced QEMU saves the guest's state, and ends; under the next one a new QEMU restores it. The guest's memory stays
//! where it is.

mod script;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use lab::datagrams::Receiver;
use lab::inside;

use super::silence::{GATEWAY, OWN, Windows};
use crate::Context;
use crate::direct::{self, Direct};
use crate::kvm;
use crate::report::{Figure, Report};
use crate::setup::temporary_folder;

const VARIANT: &str = "KVM, replaced by kexec";
/// Replacements of one machine.
const REPLACEMENTS: usize = 5;
/// With `--quick`.
const QUICK_REPLACEMENTS: usize = 1;
/// Modules of the host: KVM, the memory that is kept, and both ends of the bridge.
const MODULES: &[&str] = &["kvm_amd", "tun", "bridge", "vhost_net", "virtio_pci", "virtio_net", "nd_e820", "nd_pmem"];
const GUESTS_MODULES: &[&str] = &["virtio_pci", "virtio_net"];
/// The guest's memory of 256 MiB and the files of [`script`], from 1 GiB on.
const KEPT: &str = "memmap=512M!1G";
/// The machine's card. Stock cloud kernels have no driver of an e1000e; this one's link is there at once.
const CARD: &str = "virtio-net-pci,netdev=net,romfile=";
/// Where kexec is, with its libraries.
const KEXEC: &str = "target/guests/kexec.cpio";
/// The QEMU of set-up, where the distribution's own is older, and the folders of its firmware.
const QEMU_OF_SETUP: &str = "target/qemu-10/usr/bin/qemu-system-x86_64";
const FIRMWARE_OF_SETUP: [&str; 2] = ["target/qemu-10/usr/share/qemu", "target/qemu-10/usr/share/seabios"];
const OLDEST_QEMU: (u32, u32) = (8, 2);

/// Reports its silences beside the largest median of Baton's updates.
pub(super) fn report(context: &Context, report: &mut Report<'_>, own_ms: f64) -> Result<()> {
    if let Some(missing) = missing(context) {
        context.note(&format!("devices: no KVM to compare with: {missing}"));
        return Ok(());
    }
    let windows = measure(context, if context.sizes.quick { QUICK_REPLACEMENTS } else { REPLACEMENTS })?;
    let mut figure = |metric, unit, values: Vec<f64>| report.figure(Figure::measured(VARIANT, metric, unit, values));
    let pause = figure("transfer_pause", "ms", windows.excess_ms())?;
    figure("silence_without_update", "ms", windows.without_ms)?;
    figure("silence_with_update", "ms", windows.with_ms)?;
    figure("datagrams_lost", "datagrams", vec![windows.lost])?;
    report.figure(Figure::measured("KVM ÷ Baton", "transfer_pause", "ratio", [pause / own_ms])).map(drop)
}

/// Measures the silences of so many replacements.
fn measure(context: &Context, replacements: usize) -> Result<Windows> {
    let (receiver, port) = Receiver::of_user_network()?;
    let folder = temporary_folder()?;
    let mut machine = start(context, folder.path(), port)?;
    let mut await_line = |line| kvm::await_signs(&mut machine, &[line]).map(|()| receiver.now());
    await_line(script::SENDS)?;
    let mut start = await_line(script::REPLACING)?;
    let mut windows = Windows::default();
    for replacement in 1..=replacements {
        context.step(&format!("devices: KVM replaced by kexec, {replacement} of {replacements}"));
        let end = await_line(script::REPLACED)?;
        let next = await_line(script::REPLACING)?;
        let without = end.max(next.saturating_sub(end - start))..next;
        windows.add(&receiver.arrivals(), start..end, without);
        start = next;
    }
    windows.lost = receiver.arrivals().lost_count() as f64;
    Ok(windows)
}

/// Starts the machine. Files are put in `folder`.
fn start(context: &Context, folder: &Path, port: u16) -> Result<Direct> {
    let initrd = folder.join("initrd.cpio");
    fs::write(&initrd, archive(context, folder, port)?).context("the initial file system cannot be written")?;
    let mut command = direct::command_by(kvm::ACCELERATOR, context, 1, kvm::MEMORY);
    command.arg("-kernel").arg(context.made(kvm::KERNEL)?).arg("-initrd").arg(initrd);
    command.args(["-append", &format!("console=ttyS0 loglevel=4 no_timer_check {KEPT}")]);
    command.args(["-netdev", "user,id=net", "-device", CARD]);
    Direct::start_for(context, command, context.timeout.max(kvm::TIMEOUT))
}

/// The first kernel's initial file system: the next one's, and what the memory that is kept is filled with.
fn archive(context: &Context, folder: &Path, port: u16) -> Result<Vec<u8>> {
    let made = |name: &'static str, content: Vec<u8>| -> Result<(&'static str, PathBuf)> {
        let path = folder.join(name);
        fs::write(&path, content).with_context(|| format!("{} cannot be written", path.display()))?;
        Ok((name, path))
    };
    let firmware = kvm::FIRMWARE.into_iter().filter_map(|name| Some((name, firmware(context, name)?)));
    let mut kept = vec![
        (script::KERNEL, context.made(kvm::KERNEL)?),
        (script::GUESTS_KERNEL, context.made(kvm::GUESTS_KERNEL)?),
        made(script::GUESTS_INITRD, kvm::initrd(context, None, GUESTS_MODULES)?)?,
    ];
    kept.extend(firmware);
    let names: Vec<&str> = kept.iter().map(|(name, _)| *name).chain([script::INITRD]).collect();
    let script = script::of(&format!("stream:{OWN}:{GATEWAY}:{port}"), &names);
    let small = small(context, &script)?;
    kept.push(made(script::INITRD, small.clone())?);
    kept.push(made(script::EMULATOR, inside::program(kvm::PROGRAM, &program(context)?, folder)?)?);
    let files: Vec<(&str, &Path)> = kept.iter().map(|(name, path)| (*name, path.as_path())).collect();
    Ok([small, inside::script(&script, &files)?].concat())
}

/// The initial file system of each next kernel, which is small so that it is unpacked soon.
fn small(context: &Context, script: &str) -> Result<Vec<u8>> {
    let [agent, kexec] = [kvm::INITRAMFS, KEXEC].map(|file| context.made(file).and_then(|path| kvm::read(&path)));
    let modules = kvm::modules(&context.made(kvm::KERNEL)?, MODULES)?;
    Ok([agent?, kexec?, modules, inside::script(script, &[])?].concat())
}

/// Returns what is missing here for it, if anything is.
fn missing(context: &Context) -> Option<String> {
    let problem = |problem: anyhow::Error| format!("{problem:#}");
    let files = [kvm::KERNEL, kvm::GUESTS_KERNEL, kvm::INITRAMFS, KEXEC];
    let file = files.into_iter().find_map(|file| context.made(file).err().map(problem));
    let firmware = || kvm::FIRMWARE.into_iter().find(|name| firmware(context, name).is_none());
    file.or_else(|| program(context).err().map(problem)).or_else(|| firmware().map(|name| format!("no {name} is here")))
}

/// Returns set-up's QEMU, or the distribution's.
///
/// # Errors
/// There is none, or it is older than CPR.
fn program(context: &Context) -> Result<PathBuf> {
    let of_setup = context.root.join(QEMU_OF_SETUP);
    let program = if of_setup.is_file() { of_setup } else { kvm::program()? };
    let (found, (major, minor)) = (lab::version_of(&program)?, OLDEST_QEMU);
    ensure!(found >= OLDEST_QEMU, "{} is older than {major}.{minor}: it has no CPR", program.display());
    Ok(program)
}

fn firmware(context: &Context, name: &str) -> Option<PathBuf> {
    let of_setup = FIRMWARE_OF_SETUP.map(|folder| context.root.join(folder).join(name));
    of_setup.into_iter().find(|file| file.is_file()).or_else(|| kvm::firmware(name))
}
