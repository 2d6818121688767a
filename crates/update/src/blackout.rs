// SPDX-License-Identifier: MIT OR Apache-2.0
//! State that the CPUs of the old image share in the blackout, beside the [words](crate::takeover) that both images
//! see: the CPUs that have arrived, and those that are back.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::platform::{Cpu, Platform};
use crate::takeover::Takeover;

/// Time in µs from the order to return to the first NMI to CPUs that have not, and between further NMIs.
pub const NMI_INTERVAL_US: u64 = 500;

/// One blackout. It ends when it is dropped, once all CPUs are back, or with the old image.
#[derive(Debug)]
pub struct Blackout {
    leader: Cpu,
    members: Vec<Member>,
    stopped: u64,
    returned: AtomicU64,
    first_nmi_us: u64,
}

#[derive(Debug)]
struct Member {
    cpu: Cpu,
    has_come: AtomicBool,
    is_back: AtomicBool,
}

impl Blackout {
    /// Returns a blackout of these CPUs. `leader` answers the request; it is among them but for a rehearsal, which any
    /// CPU does alone. Allocates: before any guest stops.
    #[must_use]
    pub fn new(leader: Cpu, members: impl Iterator<Item = Cpu>) -> Self {
        let member = |cpu| Member { cpu, has_come: AtomicBool::new(false), is_back: AtomicBool::new(false) };
        let members = members.map(member).collect();
        Self { leader, members, stopped: 0, returned: AtomicU64::new(0), first_nmi_us: NMI_INTERVAL_US }
    }

    /// Sets, for a self-test, the time of the first NMI that ends the new image's time.
    pub fn set_first_nmi_us(&mut self, us: u64) {
        self.first_nmi_us = us;
    }

    /// Begins: from now on a CPU that comes is part of it, and no CPU waits for longer than `limit_us`. The caller then
    /// makes it known to all CPUs, and [interrupts](Self::interrupt_missing) them.
    pub fn begin(&mut self, words: &Takeover, limit_us: u64, platform: &impl Platform) {
        self.stopped = platform.now();
        self.returned = AtomicU64::new(self.stopped);
        words.begin(self.members.len() as u32, self.stopped + platform.ticks(limit_us));
    }

    /// Returns when it began.
    pub fn stopped(&self) -> u64 {
        self.stopped
    }

    /// Returns how long after the begin the last CPU so far came back, in ticks.
    pub fn lasted(&self) -> u64 {
        self.returned.load(Ordering::Acquire).saturating_sub(self.stopped)
    }

    /// Returns the CPUs that take part, by their numbers.
    pub fn members(&self) -> impl Iterator<Item = u32> {
        self.members.iter().map(|member| member.cpu.index)
    }

    /// Interrupts each CPU that has not come. For the leader, which has come or is about to.
    pub fn interrupt_missing(&self, platform: &impl Platform) {
        let missing = self.members.iter().filter(|member| !member.has_come.load(Ordering::Relaxed));
        missing.filter(|member| member.cpu != self.leader).for_each(|member| platform.interrupt(member.cpu));
    }

    /// Returns whether the CPU `index` takes part and comes for the first time.
    pub(crate) fn admit(&self, index: u32) -> bool {
        self.member(index).is_some_and(|member| !member.has_come.swap(true, Ordering::AcqRel))
    }

    pub(crate) fn is_leader(&self, index: u32) -> bool {
        self.leader.index == index
    }

    pub(crate) fn leader(&self) -> Cpu {
        self.leader
    }

    pub(crate) fn first_nmi_us(&self) -> u64 {
        self.first_nmi_us
    }

    /// Notes that the CPU `index` runs the old image again, or has never left it.
    pub(crate) fn note_back(&self, index: u32, now: u64) {
        self.returned.fetch_max(now, Ordering::AcqRel);
        if let Some(member) = self.member(index) {
            member.is_back.store(true, Ordering::Release);
        }
    }

    /// Sends an NMI to each CPU that is not back, the calling one aside.
    pub(crate) fn send_nmis(&self, index: u32, platform: &impl Platform) {
        let missing = self.members.iter().filter(|member| !member.is_back.load(Ordering::Acquire));
        missing.filter(|member| member.cpu.index != index).for_each(|member| platform.send_nmi(member.cpu));
    }

    fn member(&self, index: u32) -> Option<&Member> {
        self.members.iter().find(|member| member.cpu.index == index)
    }
}
