// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of what each CPU executes, for a profile (the crate `profile`).
//!
//! The watchdog's timer sends an NMI to the boot CPU, again and again. Its handler sends one to each other CPU. No mask
//! holds them back, only the world switch: they are taken at its end. Without a profile nothing of this is on any path.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use profile::walk::{Interrupted, frames};
use profile::{MOST_FRAMES, MOST_WORDS, Sample};
use units::PageSize;

use super::address::{DIRECT_MAP, text_end, text_start};
use super::memory::{FRAMES, OwnedFrames};
use super::percpu::{self, BOOT_CPU, PerCpu};
use super::stack::stack_around;
use super::trap::{self, TrapFrame};
use super::{apic, virt, watchdog};

/// A CPU's ring: 32 KiB of samples.
type Ring = profile::Ring<8192>;

/// The time between two samples; 0 while no profile is taken.
static PERIOD_US: AtomicU64 = AtomicU64::new(0);
/// NMIs for samples so far.
static ASKED: AtomicU64 = AtomicU64::new(0);

/// A ring for each CPU, online or not, by their numbers. Dropped only once it has ended and is quiet.
pub struct Sampling {
    frames: OwnedFrames,
    cpus: u32,
    /// The number of reports of samples: each time another CPU's come first.
    first: u32,
}

impl Sampling {
    /// Samples every CPU that is online, from now on. `None`: there is no memory. For the boot CPU, where
    /// a watchdog is prepared.
    pub fn begin(period_us: u64) -> Option<Self> {
        let mut cpus = 0;
        while percpu::of(cpus).is_some() {
            cpus += 1;
        }
        let frames = FRAMES.lock().allocate(u64::from(cpus) * size_of::<Ring>() as u64, PageSize::Kib4).ok()?;
        let this = Self { frames: OwnedFrames::new(frames), cpus, first: 0 };
        for index in 0..cpus {
            ring_at(this.memory(index)).reset();
            percpu::of(index)?.samples.give(this.memory(index));
        }
        ASKED.store(0, Ordering::Relaxed);
        PERIOD_US.store(period_us, Ordering::Release);
        watchdog::arm(period_us);
        Some(this)
    }

    /// Stops sampling. Samples that have been taken can still be reported.
    pub fn end(&self) {
        if PERIOD_US.swap(0, Ordering::AcqRel) != 0 {
            watchdog::disarm();
        }
        for index in 0..self.cpus {
            percpu::of(index).inspect(|cpu| cpu.samples.withdraw());
        }
    }

    /// Returns how many samples have been taken, at all CPUs together.
    pub fn asked(&self) -> u64 {
        ASKED.load(Ordering::Relaxed)
    }

    /// Samples of at most so many words, and how many samples have found no room so far.
    pub fn take(&mut self, mut room: usize) -> (Vec<u32>, u64) {
        let (mut words, mut lost) = (Vec::new(), 0);
        self.first += 1;
        for step in self.first..self.first + self.cpus {
            let ring = ring_at(self.memory(step % self.cpus));
            room = ring.take(room, &mut |word| words.push(word));
            lost += u64::from(ring.lost());
        }
        (words, lost)
    }

    /// Once it has ended: no handler is at work any more, so that the memory can go.
    pub fn is_quiet(&self) -> bool {
        (0..self.cpus).all(|index| percpu::of(index).is_none_or(|cpu| cpu.samples.is_quiet()))
    }

    fn memory(&self, index: u32) -> u64 {
        DIRECT_MAP + self.frames.range().start().0 + u64::from(index) * size_of::<Ring>() as u64
    }
}

/// Returns the ring in the memory at this address.
fn ring_at(memory: u64) -> &'static Ring {
    // SAFETY: only addresses of rings' memory come here: in frames of the direct map, aligned, which are kept until no
    // handler uses them and their reader is gone. It is all atomics, of which any bits are a value.
    unsafe { &*(memory as *const Ring) }
}

/// Returns whether an NMI is a profile's: then the sample has been taken.
pub fn takes_nmi(frame: &TrapFrame) -> bool {
    let period_us = PERIOD_US.load(Ordering::Acquire);
    if period_us == 0 {
        return false;
    }
    let me = PerCpu::current();
    if me.index == BOOT_CPU {
        watchdog::arm_again(period_us);
        ask_others();
    }
    me.samples.with(|memory| take_sample(me, frame, ring_at(memory)));
    true
}

/// Sends each other CPU an NMI: its handler takes a sample.
fn ask_others() {
    let (mut index, mut asked) = (BOOT_CPU + 1, 1);
    while let Some(other) = percpu::of(index) {
        if other.is_here() {
            apic::send_nmi_from_nmi(other.apic_id);
            asked += 1;
        }
        index += 1;
    }
    ASKED.fetch_add(asked, Ordering::Relaxed);
}

fn take_sample(me: &PerCpu, frame: &TrapFrame, ring: &Ring) {
    let mut addresses = [0; MOST_FRAMES];
    let sample = if me.is_idle() {
        Sample::Idle
    } else if let Some(guest) = virt::interrupted_guest(frame) {
        Sample::Guest(guest)
    } else {
        let (bytes, stack) = (trap::code_bytes(frame.rip), stack_around(frame.rsp).unwrap_or_default());
        let interrupted = Interrupted { at: frame.rip, bytes, stack_pointer: frame.rsp, frame_pointer: frame.rbp };
        let count = frames(&interrupted, text_start()..text_end(), stack, &trap::read_stack, &mut addresses);
        Sample::Host(&addresses[..count])
    };
    ring.push(sample.encode(&mut [0; MOST_WORDS]));
}
