// SPDX-License-Identifier: MIT OR Apache-2.0
//! A numbered datagram each millisecond, for a receiver outside the machine that measures how long it hears nothing.
//!
//! ```text
//! 0        8        16
//! |batonudp|number  |   both numbers are little-endian
//! ```

use crate::log;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// The first bytes of a datagram.
const MAGIC: &[u8; 8] = b"batonudp";
const INTERFACES: &str = "/sys/class/net";
/// Longest wait for an interface, and for its cable.
const LIMIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const PERIOD: Duration = Duration::from_millis(1);
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Gives the first network card an address in a network of 24 bits, and sends from it for ever, beside the tasks that
/// follow.
pub fn start(own: Ipv4Addr, to: SocketAddrV4) {
    thread::spawn(move || {
        if let Err(error) = set_up(own).and_then(|()| send(own, to)) {
            log!("stream: WRONG: {error}");
        }
    });
}

/// Gives the first network card an address, and waits for its cable.
pub fn set_up(own: Ipv4Addr) -> Result<(), String> {
    let name = wait_for(first_card).ok_or("no network card: is its driver loaded?")?;
    let arguments = ["ifconfig", &name, &own.to_string(), "netmask", "255.255.255.0", "up"];
    let status = Command::new("/bin/busybox").args(arguments).status().map_err(|error| format!("ifconfig: {error}"))?;
    if !status.success() {
        return Err(format!("{name} does not take the address {own}: {status}"));
    }
    let carrier = format!("{INTERFACES}/{name}/carrier");
    let has_cable = || (fs::read_to_string(&carrier).ok()?.trim() == "1").then_some(());
    wait_for(has_cable).ok_or_else(|| format!("{name} has no link"))?;
    log!("stream: {name} has {own}");
    Ok(())
}

/// The first interface that has a device behind it.
fn first_card() -> Option<String> {
    let names = fs::read_dir(INTERFACES).ok()?.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| Path::new(INTERFACES).join(name).join("device").exists()).min()
}

fn wait_for<T>(find: impl Fn() -> Option<T>) -> Option<T> {
    let end = Instant::now() + LIMIT;
    loop {
        match find() {
            None if Instant::now() < end => sleep(POLL_INTERVAL),
            found => return found,
        }
    }
}

fn send(own: Ipv4Addr, to: SocketAddrV4) -> Result<(), String> {
    let socket = UdpSocket::bind((own, 0)).map_err(|error| format!("{own}: {error}"))?;
    // The receiver may be behind the broadcast address: no ARP is needed there.
    socket.set_broadcast(true).map_err(|error| format!("broadcasts: {error}"))?;
    let mut sending = Sending::new(Instant::now());
    loop {
        let now = Instant::now();
        sending.catch_up(now, |bytes| socket.send_to(bytes, to).map(drop));
        if let Some(report) = sending.take_report(now) {
            log!("{report}");
        }
        sleep(sending.due.saturating_duration_since(Instant::now()));
    }
}

/// Which datagram is due, and counts.
struct Sending {
    number: u64,
    due: Instant,
    reported: Instant,
    beat: u64,
    errors: u64,
    latest: Duration,
}

impl Sending {
    fn new(now: Instant) -> Self {
        Self { number: 0, due: now, reported: now, beat: 0, errors: 0, latest: Duration::ZERO }
    }

    /// Sends all datagrams that are due: those of a pause, too.
    fn catch_up(&mut self, now: Instant, mut send: impl FnMut(&[u8]) -> io::Result<()>) {
        while self.due <= now {
            self.latest = self.latest.max(now - self.due);
            self.errors += u64::from(send(&datagram(self.number)).is_err());
            self.number += 1;
            self.due += PERIOD;
        }
    }

    /// A line each second: datagrams, failures to send, and the latest datagram since the line before.
    fn take_report(&mut self, now: Instant) -> Option<String> {
        if now - self.reported < REPORT_INTERVAL {
            return None;
        }
        let Self { number, beat, errors, latest, .. } = self;
        let report = format!("stream {beat} sent={number} errors={errors} late_us={}", latest.as_micros());
        (self.beat, self.reported, self.latest) = (self.beat + 1, now, Duration::ZERO);
        Some(report)
    }
}

fn datagram(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests;
