// SPDX-License-Identifier: MIT OR Apache-2.0
//! Forwarding the frames of one guest, a bounded number at a time.

use switch::{Occasion, Reason, Tag};
use vm::devices::net::{Chain, Fault, Frame, Net, Received, Taken, Undelivered};
use vm::devices::virtio::Io;

use super::capturing;
use super::port::{Nic, Port, Sender, Topology};
use crate::arch::guest_memory::GuestRam;
use crate::arch::percpu::PerCpu;
use crate::arch::{cpu, timer};
use crate::guests::forwarding::{Between, Kick, Next, Run, work};

/// Frames that are taken or copied, and bytes that are copied, in one turn of one device.
const FRAMES: usize = 64;
const BYTES: usize = 512 << 10;
/// The guest executes for as long between two turns.
const PAUSE_US: u64 = 20;
/// Frames are dense whose turns follow so soon.
const DENSE_US: u64 = 200;
/// A frame of a device that is not notified waits for so long at most while its guest executes.
const LINGER_US: u64 = 50;

/// The vCPU that forwards.
#[derive(Clone, Copy)]
struct Own<'a> {
    run: &'a dyn Run,
    vcpu: usize,
    nic: &'a Nic,
    /// Of the device's queues.
    pair: usize,
}

/// How a turn ended.
enum Turn {
    /// There are no more frames.
    Done,
    /// There are more; they go on at this time, in ticks.
    At(u64),
    /// There are no more frames, and the guest does not notify the device of the next ones. They are sent at this time.
    Lingers(u64),
}

/// Returns until when a frame may wait, in ticks, that the guest sends from now on without a notification.
pub fn linger_until() -> u64 {
    cpu::tsc() + timer::us_to_ticks(LINGER_US)
}

/// Forwards frames that a vCPU's guest has sent, `until` others want the CPU.
#[inline(never)]
pub fn send(run: &dyn Run, vcpu: usize, nics: &[Nic], occasion: Occasion, until: u64) -> Next {
    let mut next = Next::default();
    for nic in nics {
        let mut spent = Copies::default();
        for pair in nic.waiting(vcpu) {
            let (at, lingers) = match send_by(Own { run, vcpu, nic, pair }, occasion, until, &mut spent) {
                Turn::Done => continue,
                Turn::At(at) => (at, false),
                Turn::Lingers(at) => (at, true),
            };
            next.frames = next.frames.into_iter().chain([at]).min();
            next.lingers |= lingers;
        }
    }
    next
}

/// `spent`: what the device's turn has cost so far.
fn send_by(own: Own<'_>, occasion: Occasion, until: u64, spent: &mut Copies) -> Turn {
    if spent.are_enough() {
        return soon();
    }
    let port = &own.nic.port;
    let Some(sender) = port.senders.get(own.pair) else { return Turn::Done };
    // Another vCPU of this guest forwards: what it may have overlooked is there after it.
    let Some(mut sender) = sender.try_lock() else { return soon() };
    if !own.begin() {
        return Turn::Done;
    }
    let mut frames = 0;
    let dense = timer::us_to_ticks(DENSE_US);
    loop {
        if let Err(at_ns) = check_rate(port) {
            own.end(false);
            return Turn::At(at(at_ns));
        }
        // A guest that has had its time sends nothing more before the others; else a frame goes in any case.
        let is_over = (frames > 0 || occasion == Occasion::Preempted) && cpu::tsc() >= until;
        if is_over || spent.are_enough() {
            own.end(false);
            return soon();
        }
        let Sender { chain, mitigation, topology } = &mut *sender;
        let taken = own.take(chain);
        spent.frames += 1;
        match taken {
            None => return Turn::Done,
            Some(Taken::Nothing) if mitigation.decide(occasion, frames > 0, cpu::tsc(), dense) => {
                own.end(false);
                return Turn::Lingers(linger_until());
            }
            Some(Taken::Nothing) if own.end(true) => frames += 1,
            Some(Taken::Nothing) => return Turn::Done,
            Some(Taken::Dropped(reason)) => {
                port.counters.count_drop(reason);
                frames += 1;
            }
            Some(Taken::Frame(frame)) => {
                if let Some(bucket) = &port.bucket {
                    bucket.lock().take(frame.bytes() as u64);
                }
                frames += 1;
                match forward(own, topology.as_deref(), &frame, chain) {
                    Ok(copies) => *spent = spent.and(copies),
                    Err(fault) => own.fail(fault),
                }
            }
        }
    }
}

/// The cost of forwarding a frame.
#[derive(Clone, Copy, Default)]
struct Copies {
    frames: usize,
    bytes: usize,
    /// A receiver that waits for the calling CPU needs it before the next frame.
    makes_way: bool,
}

impl Copies {
    /// Others, or the guest, go on before the next frame.
    fn are_enough(&self) -> bool {
        self.makes_way || self.frames >= FRAMES || self.bytes >= BYTES
    }

    fn and(&self, other: Self) -> Self {
        let (frames, bytes) = (self.frames + other.frames, self.bytes + other.bytes);
        Self { frames, bytes, makes_way: other.makes_way }
    }
}

fn soon() -> Turn {
    Turn::At(cpu::tsc() + timer::us_to_ticks(PAUSE_US))
}

fn check_rate(port: &Port) -> Result<(), u64> {
    port.bucket.as_ref().map_or(Ok(()), |bucket| bucket.lock().check(timer::uptime_ns()))
}

/// A time of the host's, in ticks.
fn at(at_ns: u64) -> u64 {
    let wait_us = at_ns.saturating_sub(timer::uptime_ns()).div_ceil(1000);
    cpu::tsc() + timer::us_to_ticks(wait_us)
}

/// Takes a frame to every port that it is for.
///
/// # Errors
/// The sender's driver has done what it must not.
fn forward(own: Own<'_>, lan: Option<&Topology>, frame: &Frame, chain: &Chain) -> Result<Copies, Fault> {
    let (port, now_ns) = (&own.nic.port, timer::uptime_ns());
    let Some(lan) = lan else { return Ok(Copies::default()) };
    let forward = lan.network.forward(own.nic.number, frame.ethernet(), frame.is_to_be_segmented(), now_ns);
    let forward = match forward {
        Ok(forward) => forward,
        Err(reason) => {
            port.counters.count_drop(reason);
            return Ok(Copies::default());
        }
    };
    port.counters.count_sent(frame.bytes());
    if lan.tap.is_on() {
        capturing::keep(lan, (port, own.run.machine().memory()), (frame, chain), forward)?;
    }
    let mut copies = Copies::default();
    for egress in lan.network.egress(forward) {
        let Some(to) = lan.port(egress.port) else { continue };
        copies.frames += 1;
        match receive(to, own.run.machine().memory(), frame, egress.tag, chain) {
            Ok(Received { bytes, is_short }) => {
                to.counters.count_received(bytes);
                copies.bytes += bytes;
                copies.makes_way |= is_short && PerCpu::current().calls.for_way();
            }
            Err(Undelivered::Dropped(reason)) => to.counters.count_drop(reason),
            Err(Undelivered::Sender(fault)) => return Err(fault),
        }
    }
    Ok(copies)
}

/// The device at a port receives a frame. Its guest learns of it at once; where that would take the CPU from the
/// sender, when that has had its slice.
fn receive(
    to: &Port,
    from: &GuestRam,
    frame: &Frame,
    tag: Option<Tag>,
    chain: &Chain,
) -> Result<Received, Undelivered> {
    let plugged = to.plugged.lock();
    let Some(plugged) = &*plugged else { return Err(Undelivered::Dropped(Reason::Down)) };
    let memory = plugged.run.machine().memory();
    let source = Between { from, to: memory };
    let mut received = Err(Undelivered::Dropped(Reason::Down));
    work(&*plugged.run, Kick::Behind, &plugged.device, &mut |net, io| {
        received = net.receive(frame, tag, (chain, &source), io)?;
        Ok(())
    });
    received
}

impl Own<'_> {
    fn begin(self) -> bool {
        self.with(&mut |net, io| net.begin_sending(self.pair, io))
    }

    /// True if there is another frame already.
    fn end(self, asks_again: bool) -> bool {
        let mut is_there = false;
        self.with(&mut |net, io| net.end_sending(self.pair, asks_again, io).map(|found| is_there = found));
        is_there
    }

    fn take(self, chain: &mut Chain) -> Option<Taken> {
        let mut taken = None;
        self.with(&mut |net, io| net.take(self.pair, chain, io).map(|found| taken = Some(found)));
        taken
    }

    fn fail(self, fault: Fault) {
        self.with(&mut |_, _| Err(fault));
    }

    /// False if its driver has done what it must not.
    fn with(self, act: &mut dyn FnMut(&mut Net, &mut Io<'_>) -> Result<(), Fault>) -> bool {
        work(self.run, Kick::But(self.vcpu), &self.nic.device, act)
    }
}
