// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same traffic between two guests of a stock Linux with KVM, QEMU, vhost and a bridge, in Baton's place on the
//! same emulated machine. Its guests have the same kernel and agent as Baton's.
//!
//! Bytes and frames are those that the sender's tap has received. The host's part is by its own accounting
//! (`/proc/stat`): all time but the guests' and the idle time, sampled at its timer's ticks. Instructions are not
//! counted: with `-icount` QEMU 10 executes guests of KVM's at some five million instructions a second, and they do not
//! come up.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use baton::drivers::Drivers;
use lab::inside;

use super::DRIVERS;
use super::traffic::{ECHOES, Traffic, round_trip};
use crate::Context;
use crate::direct::{self, Direct};
use crate::setup::temporary_folder;

/// The kernel of the host, which has the modules; its guests have the default one.
const KERNEL: &str = "target/kernels/6.12/vmlinuz";
const MODULES: &[&str] = &["kvm_amd", "tun", "bridge", "vhost_net"];
const PROGRAM: &str = "qemu-system-x86_64";
/// The files that QEMU reads to start a kernel, and the folders of distributions that have them.
const FIRMWARE: [&str; 3] = ["bios-256k.bin", "linuxboot_dma.bin", "kvmvapic.bin"];
const FIRMWARE_FOLDERS: [&str; 3] = ["/usr/share/qemu", "/usr/share/seabios", "/usr/share/qemu-kvm"];
const MEMORY: &str = "2G";
/// Seconds of the machine's clock from the first traffic to the window, and of the window.
const WARM_UP_S: f64 = 3.0;
const WINDOW_S: f64 = 15.0;
/// Its guests take minutes to boot: each access to a device is some forty thousand instructions.
const TIMEOUT: Duration = Duration::from_secs(900);

/// The counts of one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::net) struct Counts {
    /// Nanoseconds, and those of them that are the host's.
    pub ticks: f64,
    pub host: f64,
    /// Bytes and frames of the sender's.
    pub bytes: f64,
    pub frames: f64,
}

/// Returns what is missing here for it, if anything is.
pub(in crate::net) fn missing(context: &Context) -> Option<String> {
    let kernel = context.made(KERNEL).err().map(|problem| problem.to_string());
    let firmware = || FIRMWARE.iter().find(|name| firmware(name).is_none()).map(|name| format!("no {name} is here"));
    kernel.or_else(|| program().err().map(|problem| problem.to_string())).or_else(firmware)
}

/// Measures a window of traffic on a machine of its own.
pub(in crate::net) fn measure(context: &Context, traffic: Traffic) -> Result<Counts> {
    let folder = temporary_folder()?;
    let mut machine = start(context, folder.path(), traffic)?;
    await_traffic(&mut machine, traffic)?;
    let mut first: Option<Reading> = None;
    let mut began = None;
    machine.wait("its counts", |_, line| {
        let now = Reading::of(line)?;
        let start = *began.get_or_insert(now.uptime_s);
        let before = match first {
            Some(before) => before,
            None => {
                first = (now.uptime_s - start >= WARM_UP_S).then_some(now);
                return None;
            }
        };
        (now.uptime_s - before.uptime_s >= WINDOW_S).then(|| now.since(&before))
    })
}

/// Measures the mean round trip of blocks, in microseconds of the guest's clock.
pub(in crate::net) fn round_trip_us(context: &Context) -> Result<f64> {
    let folder = temporary_folder()?;
    let mut machine = start(context, folder.path(), Traffic::Echo)?;
    await_traffic(&mut machine, Traffic::Echo)?;
    let (mut seen, mut all) = (0, Vec::new());
    machine.wait("its round trips", |_, line| {
        let mean = round_trip(line)?;
        seen += 1;
        if seen > ECHOES.0 {
            all.push(mean);
        }
        (all.len() == ECHOES.1).then(|| all.iter().sum::<f64>() / all.len() as f64)
    })
}

fn await_traffic(machine: &mut Direct, traffic: Traffic) -> Result<()> {
    let mut missing = traffic.signs().to_vec();
    let problem = machine.wait("traffic", |_, line| {
        missing.retain(|sign| !line.starts_with(sign));
        let is_wrong = line.contains("WRONG") || line.starts_with("peer: cannot");
        (is_wrong || missing.is_empty()).then(|| is_wrong.then(|| line.to_owned()))
    })?;
    problem.map_or(Ok(()), |line| bail!("the machine with KVM printed {line:?}"))
}

fn start(context: &Context, folder: &Path, traffic: Traffic) -> Result<Direct> {
    let initrd = folder.join("initrd.cpio");
    fs::write(&initrd, archive(context, folder, traffic)?).context("the initial file system cannot be written")?;
    let mut command = direct::command(context, 1, MEMORY);
    command.arg("-kernel").arg(context.made(KERNEL)?).arg("-initrd").arg(initrd);
    command.args(["-append", "console=ttyS0 loglevel=4 no_timer_check"]);
    Direct::start_for(context, command, context.timeout.max(TIMEOUT))
}

/// The initial file system: busybox, the modules, QEMU with its libraries, and the guests' kernel and file system.
fn archive(context: &Context, folder: &Path, traffic: Traffic) -> Result<Vec<u8>> {
    let read = |path: &Path| fs::read(path).with_context(|| format!("{} cannot be read", path.display()));
    let busybox = read(&context.made("target/guests/initramfs.cpio")?)?;
    let drivers_of = |kernel: &Path, names: &[&str]| Drivers::of(kernel.parent().unwrap_or(kernel))?.archive(names);
    let (host, guests) = (context.made(KERNEL)?, context.made("target/kernels/default/vmlinuz")?);
    let initrd = folder.join("guest.cpio");
    fs::write(&initrd, [busybox.clone(), drivers_of(&guests, DRIVERS)?].concat())?;
    let firmware: Vec<(&str, PathBuf)> = FIRMWARE.iter().filter_map(|name| Some((*name, firmware(name)?))).collect();
    let mut files = vec![("vmlinuz", guests.as_path()), ("guest.cpio", initrd.as_path())];
    files.extend(firmware.iter().map(|(name, path)| (*name, path.as_path())));
    let script = inside::script(&script(traffic), &files)?;
    Ok([busybox, drivers_of(&host, MODULES)?, script, inside::program(PROGRAM, &program()?, folder)?].concat())
}

/// Starts both guests, shows what they print, and prints the counts every second.
fn script(traffic: Traffic) -> String {
    let [sink, sender] = traffic.tasks();
    format!(
        r#"brctl addbr lan && ip link set lan up || echo "peer: cannot make a bridge"
guest() {{
  tunctl -t "$1" >/dev/null && brctl addif lan "$1" && ip link set "$1" up || echo "peer: cannot make a tap"
  : >"/$1.log"
  tail -f "/$1.log" &
  {PROGRAM} -accel kvm -cpu host -machine q35 -m 256 -L / -nodefaults -no-user-config -display none \
    -serial "file:/$1.log" -kernel /vmlinuz -initrd /guest.cpio \
    -append "console=ttyS0 loglevel=5 agent=drivers,$3" -netdev "tap,id=net,ifname=$1,script=no,downscript=no,vhost=on" \
    -device "virtio-net-pci,netdev=net,mac=52:54:00:00:00:0$2,disable-legacy=on,romfile=" ||
    echo "peer: cannot run QEMU: $?"
}}
guest sink 1 "{sink}" &
guest sender 2 "{sender}" &
while sleep 1; do
  read -r up _ </proc/uptime
  read -r stat </proc/stat
  cd /sys/class/net/sender/statistics 2>/dev/null || continue
  echo "peer: up=$up bytes=$(cat rx_bytes) frames=$(cat rx_packets) $stat"
done
"#
    )
}

fn program() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM)).find(|file| file.is_file());
    let found = found.with_context(|| format!("there is no {PROGRAM} in PATH"))?;
    ensure!(fs::read(&found)?.starts_with(b"\x7fELF"), "{} is a script", found.display());
    Ok(found)
}

fn firmware(name: &str) -> Option<PathBuf> {
    FIRMWARE_FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|file| file.is_file())
}

/// The counts until a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Reading {
    uptime_s: f64,
    bytes: f64,
    frames: f64,
    /// Ticks of its accounting: all, those of guests, and idle ones.
    all: f64,
    guests: f64,
    idle: f64,
}

impl Reading {
    /// Reads `peer: up=… bytes=… frames=… cpu` and the columns of `/proc/stat` (proc(5)).
    fn of(line: &str) -> Option<Self> {
        let words = line.trim().strip_prefix("peer: ")?;
        let value = |name: &str| words.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse::<f64>().ok());
        let (_, columns) = words.split_once("cpu ")?;
        let columns: Vec<f64> = columns.split_whitespace().map_while(|word| word.parse().ok()).collect();
        // user, which includes guest, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice.
        let [_, _, _, idle, waiting, _, _, _, guests, nice_guests] = columns[..] else { return None };
        Some(Self {
            uptime_s: value("up=")?,
            bytes: value("bytes=")?,
            frames: value("frames=")?,
            all: columns[..8].iter().sum(),
            guests: guests + nice_guests,
            idle: idle + waiting,
        })
    }

    fn since(&self, before: &Self) -> Counts {
        let ticks = (self.uptime_s - before.uptime_s) * 1e9;
        let all = self.all - before.all;
        let others = self.guests - before.guests + self.idle - before.idle;
        Counts {
            ticks,
            host: ticks * (1.0 - others / all),
            bytes: self.bytes - before.bytes,
            frames: self.frames - before.frames,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_s_part_is_what_neither_guests_nor_idling_took() {
        let line = |up, bytes, stat: &str| format!("peer: up={up} bytes={bytes} frames=7 cpu  {stat}\r");
        let before = Reading::of(&line("2.50", 1000, "10 0 20 5 0 1 2 0 8 0")).expect("a reading");
        let after = Reading::of(&line("4.50", 5000, "60 0 70 25 0 11 22 0 48 0")).expect("a reading");
        let counts = after.since(&before);
        // Of 150 ticks 40 are the guests', and 20 idle.
        assert!((counts.ticks - 2e9).abs() < 1.0 && (counts.host - 1.2e9).abs() < 1.0, "{counts:?}");
        assert!((counts.bytes - 4000.0).abs() < 1e-9 && counts.frames.abs() < 1e-9, "{counts:?}");
        assert_eq!(Reading::of("peer: up=2.50 bytes=1 frames=7 cpu  10 0 20"), None);
    }
}
