// SPDX-License-Identifier: MIT OR Apache-2.0
//! Forwarding the packets of one guest, a bounded number at a time.

use core::sync::atomic::Ordering;

use vm::devices::virtio::{Chain, Fault, Io};
use vm::devices::vsock::{HOST_CID, Header, Packet, Received, Taken, Vsock};

use super::port::{Port, Sender, Socket, find, ports, with, with_by};
use super::{services, streams};
use crate::arch::percpu::PerCpu;
use crate::arch::{cpu, timer};
use crate::guests::forwarding::{Between, Kick, Run, work};

/// Packets that are taken, and bytes that are copied, in one turn.
const PACKETS: usize = 64;
const BYTES: u32 = 512 << 10;
/// The guest executes for as long between two turns, and if there is no place for what it sends.
const PAUSE_US: u64 = 20;
const FULL_PAUSE_US: u64 = 100;
/// A guest that gives no buffers for as long loses the connections by which it is sent data, so that what a guest sends
/// to others waits for one of them no longer. One that is updated or debugged has to have buffers left.
const FULL_LIMIT_NS: u64 = 1_000_000_000;

/// The vCPU that forwards.
#[derive(Clone, Copy)]
struct Own<'a> {
    run: &'a dyn Run,
    vcpu: usize,
    socket: &'a Socket,
}

/// How it goes on after a packet.
enum Next {
    /// With the next one; so many bytes have been copied.
    Packet(u32),
    /// With the rest of this one, after so many microseconds.
    Rest(u64),
    /// Not: its driver has done what it must not.
    Nothing,
}

/// Forwards packets that a vCPU's guest has sent, `until` others want the CPU. Returns when it is to go on; `None`:
/// when the guest notifies the device again.
#[inline(never)]
pub fn send(run: &dyn Run, vcpu: usize, socket: &Socket, until: u64) -> Option<u64> {
    let own = Own { run, vcpu, socket };
    let port = &*socket.port;
    if port.has_old_streams.load(Ordering::Relaxed) {
        with(port, |_, _, _| Ok(()));
    }
    // Another vCPU of this guest forwards: what it may have overlooked is there after it.
    let Some(mut sender) = port.sender.try_lock() else { return in_us(PAUSE_US) };
    if !own.begin() {
        return None;
    }
    let mut bytes = 0;
    for _ in 0..PACKETS {
        if bytes >= BYTES || cpu::tsc() >= until {
            break;
        }
        let next = match own.take(&mut sender.chain)? {
            Taken::Nothing if own.end(true) => Next::Packet(0),
            Taken::Nothing => return None,
            Taken::Blocked => Next::Rest(FULL_PAUSE_US),
            Taken::Dropped => own.done(0),
            Taken::Refused(header) => own.refuse(&header),
            Taken::Packet(packet) => own.forward(packet, &mut sender),
        };
        match next {
            Next::Packet(copied) => bytes += copied,
            Next::Rest(us) => {
                own.end(false);
                return in_us(us);
            }
            Next::Nothing => return None,
        }
    }
    own.end(false);
    in_us(PAUSE_US)
}

/// Resets connections to a guest that is gone, or has dropped its connections: its peers are notified.
pub fn reset_peers(cid: u32) {
    services::resume_all();
    for port in ports().filter(|port| port.cid != cid) {
        with(&port, |vsock, io, _| vsock.reset_all_of(cid, io));
    }
    services::reset_all_of(cid);
    streams::reset_all_of(cid);
}

fn in_us(us: u64) -> Option<u64> {
    Some(cpu::tsc() + timer::us_to_ticks(us))
}

impl Own<'_> {
    /// False if its driver has done what it must not.
    fn begin(self) -> bool {
        let mut was_reset = None;
        let is_faultless = self.with(&mut |vsock, io| {
            was_reset = vsock.take_was_reset().then_some(vsock.cid());
            vsock.begin_sending(io)
        });
        was_reset.into_iter().for_each(reset_peers);
        is_faultless
    }

    /// True if there is another packet already.
    fn end(self, asks_again: bool) -> bool {
        let mut is_there = false;
        self.with(&mut |vsock, io| vsock.end_sending(asks_again, io).map(|found| is_there = found));
        is_there
    }

    fn take(self, chain: &mut Chain) -> Option<Taken> {
        let mut taken = None;
        self.with(&mut |vsock, io| vsock.take(chain, io).map(|found| taken = Some(found)));
        taken
    }

    /// Takes a packet, or as much of it as there is a place for, to its receiver.
    fn forward(self, mut packet: Packet, sender: &mut Sender) -> Next {
        let header = *packet.header();
        if header.destination.cid == HOST_CID {
            return self.forward_to_host(&packet, sender);
        }
        let Some(to) = find(header.destination.cid) else { return self.refuse(&header) };
        let (before, stuck) = (packet.passed(), to.bit());
        let received = self.receive(&to, &mut packet, &sender.chain);
        let copied = packet.passed() - before;
        match received {
            Received::All => {
                (sender.full_since_ns, sender.stuck) = (None, sender.stuck & !stuck);
                self.done(copied)
            }
            Received::Part => self.hold(&packet, PAUSE_US),
            Received::Refused => self.refuse(&header),
            Received::Sender(fault) => {
                self.with(&mut |_, _| Err(fault));
                Next::Nothing
            }
            Received::Full => {
                PerCpu::current().calls.for_way();
                let now_ns = timer::uptime_ns();
                if copied > 0 {
                    sender.full_since_ns = None;
                }
                let since_ns = *sender.full_since_ns.get_or_insert(now_ns);
                if sender.stuck & stuck == 0 && now_ns.saturating_sub(since_ns) < FULL_LIMIT_NS {
                    return self.hold(&packet, FULL_PAUSE_US);
                }
                (sender.full_since_ns, sender.stuck) = (None, sender.stuck | stuck);
                self.refuse(&header)
            }
        }
    }

    /// One of the host's streams takes a packet: it has room for all that the guest may send.
    fn forward_to_host(self, packet: &Packet, sender: &Sender) -> Next {
        let received = services::receive(self.run, packet, &sender.chain);
        match received.unwrap_or_else(|| streams::receive(self.run, packet, &sender.chain)) {
            Received::All => self.done(packet.header().bytes),
            Received::Part | Received::Full => self.hold(packet, PAUSE_US),
            Received::Refused => self.refuse(packet.header()),
            Received::Sender(fault) => {
                self.with(&mut |_, _| Err(fault));
                Next::Nothing
            }
        }
    }

    /// The device at a port receives a packet, within a turn's limit.
    fn receive(self, to: &Port, packet: &mut Packet, chain: &Chain) -> Received {
        let (before, mut received) = (packet.passed(), Received::Part);
        while received == Received::Part && packet.passed() - before < BYTES {
            let mut found = Received::Refused;
            with_by(to, Kick::Behind, |vsock, io, memory| {
                let source = Between { from: self.run.machine().memory(), to: memory };
                found = vsock.receive(packet, (chain, &source), io)?;
                Ok(())
            });
            received = found;
        }
        received
    }

    fn done(self, copied: u32) -> Next {
        if self.with(&mut |vsock, io| vsock.done(io)) { Next::Packet(copied) } else { Next::Nothing }
    }

    fn hold(self, packet: &Packet, us: u64) -> Next {
        self.with(&mut |vsock, io| {
            vsock.hold(packet, io);
            Ok(())
        });
        Next::Rest(us)
    }

    /// Neither end knows the connection any more.
    fn refuse(self, header: &Header) -> Next {
        if let Some(to) = find(header.destination.cid) {
            with(&to, |vsock, io, _| vsock.reset_end(header.destination.port, header.source, io));
        }
        if self.with(&mut |vsock, io| vsock.refuse(header, io)) { Next::Packet(0) } else { Next::Nothing }
    }

    /// False if its driver has done what it must not.
    fn with(self, act: &mut dyn FnMut(&mut Vsock, &mut Io<'_>) -> Result<(), Fault>) -> bool {
        work(self.run, Kick::But(self.vcpu), &self.socket.device, act)
    }
}
