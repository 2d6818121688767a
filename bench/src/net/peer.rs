// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same traffic between two guests of a stock Linux with KVM, QEMU, vhost and a bridge, in Baton's place on the
//! same emulated machine. Its guests have the same kernel and agent as Baton's.
//!
//! Bytes and frames are those that the sender's tap has received. The host's part is by its own accounting
//! (`/proc/stat`): all time but the guests' and the idle time, sampled at its timer's ticks.

use anyhow::Result;

use super::DRIVERS;
use super::traffic::{ECHOES, Traffic, round_trip};
use crate::Context;
use crate::direct::Direct;
use crate::kvm::{self, Peer};
use crate::setup::temporary_folder;

const MODULES: &[&str] = &["tun", "bridge", "vhost_net"];
const INITRD: &str = "guest.cpio";
/// Seconds of the machine's clock from the first traffic to the window, and of the window.
const WARM_UP_S: f64 = 3.0;
const WINDOW_S: f64 = 15.0;
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

/// Measures a window of traffic on a machine of its own.
pub(in crate::net) fn measure(context: &Context, traffic: Traffic) -> Result<Counts> {
    let mut machine = start(context, traffic)?;
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
    let mut machine = start(context, Traffic::Echo)?;
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

/// Starts the machine; returns once the traffic is there.
fn start(context: &Context, traffic: Traffic) -> Result<Direct> {
    let folder = temporary_folder()?;
    let guests = [(INITRD, kvm::initrd(context, None, DRIVERS)?)];
    let peer = Peer { modules: MODULES, guests: &guests, below: Vec::new(), script: &script(traffic) };
    let mut machine = kvm::start(context, folder.path(), peer)?;
    kvm::await_signs(&mut machine, &traffic.signs())?;
    Ok(machine)
}

/// Starts both guests, and prints the counts every second.
fn script(traffic: Traffic) -> String {
    let [sink, sender] = traffic.tasks();
    format!(
        r#"brctl addbr lan && ip link set lan up || echo "peer: cannot make a bridge"
on_bridge() {{
  tunctl -t "$1" >/dev/null && brctl addif lan "$1" && ip link set "$1" up || echo "peer: cannot make a tap"
  guest "$1" {INITRD} "agent=drivers,$3" -netdev "tap,id=net,ifname=$1,script=no,downscript=no,vhost=on" \
    -device "virtio-net-pci,netdev=net,mac=52:54:00:00:00:0$2,disable-legacy=on,romfile="
}}
on_bridge sink 1 "{sink}" &
on_bridge sender 2 "{sender}" &
cd /sys/class/net
while sleep 1; do
  read -r up _ </proc/uptime
  read -r stat </proc/stat
  echo "peer: up=$up bytes=$(cat sender/statistics/rx_bytes) frames=$(cat sender/statistics/rx_packets) $stat"
done
"#
    )
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
