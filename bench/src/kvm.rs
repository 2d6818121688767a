// SPDX-License-Identifier: MIT OR Apache-2.0
//! A stock Linux with KVM and the distribution's QEMU in Baton's place on the emulated machine, whose guests have the
//! same kernel and agent as Baton's.
//!
//! It is measured in time. Instructions are not counted: with `-icount` QEMU 10 executes guests of KVM's at some five
//! million instructions a second, and they do not come up.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use baton::drivers::Drivers;
use lab::inside;

use super::Context;
use super::direct::{self, Direct};

/// The kernel of the host, which has the modules. Its guests have [`GUESTS_KERNEL`].
pub(super) const KERNEL: &str = "target/kernels/6.12/vmlinuz";
pub(super) const GUESTS_KERNEL: &str = "target/kernels/default/vmlinuz";
pub(super) const INITRAMFS: &str = "target/guests/initramfs.cpio";
pub(super) const PROGRAM: &str = "qemu-system-x86_64";
/// The files that QEMU reads to start a kernel, and the folders of distributions that have them.
pub(super) const FIRMWARE: [&str; 3] = ["bios-256k.bin", "linuxboot_dma.bin", "kvmvapic.bin"];
const FIRMWARE_FOLDERS: [&str; 3] = ["/usr/share/qemu", "/usr/share/seabios", "/usr/share/qemu-kvm"];
pub(super) const MEMORY: &str = "2G";
/// Free of the races between the threads of QEMU's emulation: a guest of KVM's that loses an interrupt to one of them
/// waits for ever.
pub(super) const ACCELERATOR: &str = "tcg,thread=single";
/// Its guests take minutes to boot: each access to a device is some forty thousand instructions.
pub(super) const TIMEOUT: Duration = Duration::from_secs(900);
/// `guest NAME INITRD OPTIONS ARGUMENTS…` runs a guest and shows what it prints.
const PRELUDE: &str = r#"guest() {
  name=$1 initrd=$2 options=$3
  shift 3
  : >"/$name.log"
  tail -f "/$name.log" &
  qemu-system-x86_64 -accel kvm -cpu host -machine q35 -m 256 -L / -nodefaults -no-user-config -display none \
    -serial "file:/$name.log" -kernel /vmlinuz -initrd "/$initrd" -append "console=ttyS0 loglevel=5 $options" "$@" ||
    echo "peer: cannot run QEMU: $?"
}
"#;

/// The host's setting.
pub(super) struct Peer<'a> {
    /// Modules of the host beside KVM's.
    pub modules: &'a [&'a str],
    /// Initial file systems of its guests, by name.
    pub guests: &'a [(&'a str, Vec<u8>)],
    /// An archive below the host's own initial file system.
    pub below: Vec<u8>,
    /// A shell script, which may use `guest`.
    pub script: &'a str,
}

/// Returns what is missing here for it, if anything is.
pub(super) fn missing(context: &Context) -> Option<String> {
    let kernel = context.made(KERNEL).err().map(|problem| problem.to_string());
    let firmware = || FIRMWARE.iter().find(|name| firmware(name).is_none()).map(|name| format!("no {name} is here"));
    kernel.or_else(|| program().err().map(|problem| problem.to_string())).or_else(firmware)
}

/// Returns the initial file system of a guest whose agent uses these drivers, or which has this one of its own.
pub(super) fn initrd(context: &Context, own: Option<&str>, drivers: &[&str]) -> Result<Vec<u8>> {
    let kernel = context.made(GUESTS_KERNEL)?;
    Ok([read(&context.made(own.unwrap_or(INITRAMFS))?)?, modules(&kernel, drivers)?].concat())
}

/// Starts it. Files are put in `folder`.
pub(super) fn start(context: &Context, folder: &Path, peer: Peer<'_>) -> Result<Direct> {
    let initrd = folder.join("initrd.cpio");
    fs::write(&initrd, archive(context, folder, peer)?).context("the initial file system cannot be written")?;
    let mut command = direct::command_by(ACCELERATOR, context, 1, MEMORY);
    command.arg("-kernel").arg(context.made(KERNEL)?).arg("-initrd").arg(initrd);
    command.args(["-append", "console=ttyS0 loglevel=4 no_timer_check"]);
    Direct::start_for(context, command, context.timeout.max(TIMEOUT))
}

/// Waits until all of these lines have begun.
///
/// # Errors
/// One reports that something is wrong.
pub(super) fn await_signs(machine: &mut Direct, signs: &[&str]) -> Result<()> {
    let mut missing = signs.to_vec();
    let problem = machine.wait("the machine with KVM", |_, line| {
        missing.retain(|sign| !line.starts_with(sign));
        let is_wrong = line.contains("WRONG") || line.starts_with("peer: cannot");
        (is_wrong || missing.is_empty()).then(|| is_wrong.then(|| line.to_owned()))
    })?;
    problem.map_or(Ok(()), |line| bail!("the machine with KVM printed {line:?}"))
}

/// The initial file system: busybox, the modules, QEMU with its libraries, and the guests' kernel and file systems.
fn archive(context: &Context, folder: &Path, peer: Peer<'_>) -> Result<Vec<u8>> {
    let guests: Vec<(&str, PathBuf)> = peer.guests.iter().map(|(name, _)| (*name, folder.join(name))).collect();
    for ((_, content), (_, path)) in peer.guests.iter().zip(&guests) {
        fs::write(path, content).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    let firmware = FIRMWARE.iter().filter_map(|name| Some((*name, firmware(name)?)));
    let kernel = context.made(GUESTS_KERNEL)?;
    let all: Vec<(&str, PathBuf)> = guests.into_iter().chain(firmware).chain([("vmlinuz", kernel)]).collect();
    let files: Vec<(&str, &Path)> = all.iter().map(|(name, path)| (*name, path.as_path())).collect();
    let own = [&["kvm_amd"], peer.modules].concat();
    Ok([
        peer.below,
        read(&context.made(INITRAMFS)?)?,
        modules(&context.made(KERNEL)?, &own)?,
        inside::script(&format!("{PRELUDE}{}", peer.script), &files)?,
        inside::program(PROGRAM, &program()?, folder)?,
    ]
    .concat())
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("{} cannot be read", path.display()))
}

pub(super) fn modules(kernel: &Path, names: &[&str]) -> Result<Vec<u8>> {
    Drivers::of(kernel.parent().unwrap_or(kernel))?.archive(names)
}

pub(super) fn program() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM)).find(|file| file.is_file());
    let found = found.with_context(|| format!("there is no {PROGRAM} in PATH"))?;
    ensure!(read(&found)?.starts_with(b"\x7fELF"), "{} is a script", found.display());
    Ok(found)
}

pub(super) fn firmware(name: &str) -> Option<PathBuf> {
    FIRMWARE_FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|file| file.is_file())
}
