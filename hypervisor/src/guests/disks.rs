// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disks with their storage in another guest: a virtio block device, and the host's stream to the NBD server there.
//!
//! ```text
//! exit: notification ──► the vCPU's turn: requests, NBD ──► stream ──► the server's guest: buffers, interrupt
//!                        own device and stream locked      stream, port and device there locked
//! the server's guest: packet ──► stream ──► wakes the first vCPU: its turn
//! ```
//!
//! The vCPU that works for a disk is one of its guest, which pays for it. A turn is bounded, and the guest executes
//! between two of them.

mod listing;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bundle::DiskConfig;
use spin::Mutex;
use vm::devices::blk::{Blk, BlkConfig, Bounded, Limits, News};
use vm::devices::pci::{Endpoint, Slot};
use vm::devices::virtio::{Virtio, in_slot};
use vm::machine::Machine;

pub use self::listing::list;
use crate::arch::guest_memory::GuestRam;
use crate::arch::{cpu, timer};
use crate::guests::forwarding::{self, Kick, Run};
use crate::guests::guest::Guest;
use crate::guests::sockets::streams::{self, Sent, Stream};
use crate::guests::sockets::succession;

/// The device numbers of a guest's disks, in their order: physical functions and network devices are elsewhere.
const DEVICES: [u8; bundle::limits::DISKS] = [17, 18, 19, 28];
/// The guest executes for so long between two turns; and if the server's guest has no buffers, doubled up to
/// [`FULL_DOUBLED`] times.
const PAUSE_NS: u64 = 20_000;
const FULL_PAUSE_NS: u64 = 100_000;
const FULL_DOUBLED: u32 = 7;
/// Shortest interval between two log lines of a disk.
const REPORT_NS: u64 = 1_000_000_000;

/// A disk on its guest's bus.
pub struct Disk {
    number: usize,
    stream: Arc<Stream>,
    device: Arc<Mutex<Endpoint<Virtio<Blk>>>>,
    turns: Mutex<Turns>,
}

/// State from one turn to the next. Held by the vCPU that has the turn.
#[derive(Default)]
struct Turns {
    /// Turns in a row in which the server's guest had no buffers.
    full: u32,
    /// The next log line, and when it may be logged.
    news: Option<News>,
    report_ns: u64,
}

/// Puts a guest's disks on its bus.
///
/// # Errors
/// Why there can be none.
pub fn attach(guest: &Guest, machine: &mut Machine<GuestRam>) -> Result<Vec<Disk>, String> {
    let mut disks = Vec::new();
    let mut streams = streams::of(guest.number).into_iter();
    for (number, (config, device)) in guest.config.disks.iter().zip(DEVICES).enumerate() {
        let bad = |reason: &str| format!("disk {}: {reason}", number + 1);
        let stream = streams.next().ok_or_else(|| bad("its stream is not there"))?;
        let device = in_slot(Slot(device << 3), Blk::new(described(config))).map_err(|_| bad("it fits no function"))?;
        let device = machine.bus_mut().attach_function(device);
        let device = device.map_err(|_| bad("its slot on the guest's bus is taken"))?;
        disks.push(Disk { number, stream, device, turns: Mutex::default() });
    }
    Ok(disks)
}

fn described(config: &DiskConfig) -> BlkConfig {
    BlkConfig {
        export: config.export.clone(),
        is_read_only: config.is_read_only,
        is_write_back: config.is_write_back,
        timeout_ns: u64::from(config.timeout_s) * 1_000_000_000,
        serial: config.serial.clone(),
        limits: Limits { requests_per_s: config.limits.requests_per_s, bytes_per_s: config.limits.bytes_per_s },
    }
}

/// Works for a guest's disks, in a vCPU's time, `until` others want the CPU. Returns when it is to go on; `None`: when
/// there is a reason.
pub fn work(run: &dyn Run, vcpu: usize, disks: &[Disk], until: u64) -> Option<u64> {
    if disks.is_empty() {
        return None;
    }
    let now_ns = timer::uptime_ns();
    let next_ns = disks.iter().filter_map(|disk| disk.turn((run, vcpu), now_ns, until)).min()?;
    let us = next_ns.saturating_sub(now_ns).max(PAUSE_NS) / 1000;
    Some(cpu::tsc().saturating_add(timer::us_to_ticks(us)))
}

/// Closes the disks of a guest that has ended: the server is notified, as far as that is possible now.
pub fn close(disks: &[Disk]) {
    for disk in disks {
        let mut figures = disk.stream.figures.lock();
        (figures.is_up, figures.in_flight) = (false, 0);
        drop(figures);
        succession::resume_all();
        let mut socket = disk.stream.socket.lock();
        socket.stream().reset();
        let _ = disk.stream.send(&mut socket, u64::MAX);
    }
}

impl Disk {
    fn turn(&self, (run, vcpu): (&dyn Run, usize), now_ns: u64, until: u64) -> Option<u64> {
        // Another vCPU of this guest works: what it may have overlooked is there after it.
        let Some(mut turns) = self.turns.try_lock() else { return Some(now_ns) };
        succession::resume_all();
        self.stream.begin_turn();
        let mut socket = self.stream.socket.lock();
        let (mut next_ns, mut news) = (None, None);
        let mut bounded = Bounded::new(&mut socket, || cpu::tsc() >= until);
        forwarding::work(run, Kick::But(vcpu), &self.device, &mut |blk, io| {
            let worked = blk.work(now_ns, &mut bounded, io);
            news = blk.take_news();
            *self.stream.figures.lock() = blk.figures();
            next_ns = worked?;
            Ok(())
        });
        let is_over = bounded.has_left_some();
        let sent = self.stream.send(&mut socket, until);
        drop(socket);
        turns.full = if sent == Sent::Full { turns.full + 1 } else { 0 };
        let again_ns = match sent {
            Sent::All => is_over.then_some(now_ns),
            Sent::More | Sent::Refused => Some(now_ns),
            Sent::Full => Some(now_ns.saturating_add(FULL_PAUSE_NS << turns.full.min(FULL_DOUBLED))),
        };
        turns.news = news.or(turns.news);
        let report_ns = turns.news.and_then(|news| self.report(run.guest(), &mut turns, news, now_ns));
        [next_ns, again_ns, report_ns].into_iter().flatten().min()
    }

    /// Logs what has happened to the connection, or returns when it may.
    #[cold]
    fn report(&self, guest: &Guest, turns: &mut Turns, news: News, now_ns: u64) -> Option<u64> {
        if now_ns < turns.report_ns {
            return Some(turns.report_ns);
        }
        (turns.news, turns.report_ns) = (None, now_ns.saturating_add(REPORT_NS));
        let (name, number) = (&guest.config.name, self.number + 1);
        match news {
            News::Up(export) => log::info!("guest {name}: disk {number}: {} bytes, its server is there", export.bytes),
            News::Down(problem) => log::warn!("guest {name}: disk {number} waits for its server: {problem}"),
        }
        None
    }
}
