// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of what each processor executes, for a profile (the crate `profile`).
//!
//! The watchdog's timer sends an NMI to the boot processor, again and again, whose handler sends one to each other processor. No mask
//! holds them back, only the world switch, at whose end they are taken. Without a profile nothing of this is on any path.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use profile::{MOST_FRAMES, Ring, Sample};
use units::PageSize;

use super::address::{DIRECT_MAP, text_end, text_start};
use super::memory::{FRAMES, OwnedFrames, stack_around};
use super::percpu::{self, BOOT_PROCESSOR, PerCpu};
use super::trap::{self, TrapFrame};
use super::{apic, svm, watchdog};

/// A processor's ring: 32 KiB of samples, and a page for its head.
const RING_BYTES: u64 = 36 * 1024;

/// The time between two looks; 0 while no profile is taken.
static PERIOD_US: AtomicU64 = AtomicU64::new(0);
/// NMIs for samples so far.
static ASKED: AtomicU64 = AtomicU64::new(0);

/// Processors that are looked at, and their rings' memory.
pub struct Sampling {
    processors: Vec<u32>,
    frames: Option<OwnedFrames>,
    /// Of which ring samples are told first: in turn.
    first: usize,
}

impl Sampling {
    /// Looks at every processor that is online, from now on. `None`: there is no memory. For the boot processor, where a watchdog is
    /// prepared.
    pub fn begin(period_us: u64) -> Option<Self> {
        let processors: Vec<u32> = percpu::indices().collect();
        let frames = FRAMES.lock().allocate(processors.len() as u64 * RING_BYTES, PageSize::Kib4).ok()?;
        let mut memory = DIRECT_MAP + frames.start().0;
        for place in processors.iter().filter_map(|index| percpu::of(*index)) {
            ring_at(memory)?.reset();
            place.samples.give(memory);
            memory += RING_BYTES;
        }
        ASKED.store(0, Ordering::Relaxed);
        PERIOD_US.store(period_us, Ordering::Release);
        watchdog::arm(period_us);
        Some(Self { processors, frames: Some(OwnedFrames::new(frames)), first: 0 })
    }

    /// Looks at nobody any more. What has been taken can still be told.
    pub fn end(&self) {
        if PERIOD_US.swap(0, Ordering::AcqRel) != 0 {
            watchdog::disarm();
        }
        self.places().for_each(|processor| processor.samples.take_back());
    }

    /// The timer has been passed over (its comparator may be late): starts it anew.
    pub fn go_on(&self, period_us: u64) {
        watchdog::arm(period_us);
    }

    /// How many looks have been taken, at all processors together.
    pub fn asked(&self) -> u64 {
        ASKED.load(Ordering::Relaxed)
    }

    /// How many samples found no room.
    pub fn lost(&self) -> u64 {
        self.rings().map(|ring| u64::from(ring.lost())).sum()
    }

    /// Samples of at most so many words.
    pub fn take(&mut self, room: usize) -> Vec<u32> {
        let mut words = Vec::with_capacity(room);
        for ring in self.rings().skip(self.first).chain(self.rings().take(self.first)) {
            ring.take(room - words.len(), |word| words.push(word));
        }
        self.first = (self.first + 1) % self.processors.len().max(1);
        words
    }

    /// Once it has ended: no handler is at work any more, so that the memory can go.
    pub fn is_quiet(&self) -> bool {
        self.places().all(|processor| processor.samples.is_quiet())
    }

    fn places(&self) -> impl Iterator<Item = &'static PerCpu> + '_ {
        self.processors.iter().filter_map(|index| percpu::of(*index))
    }

    fn rings(&self) -> impl Iterator<Item = Ring<'static>> + '_ {
        let range = self.frames.as_ref().map(OwnedFrames::range).unwrap_or_default();
        let starts = (DIRECT_MAP + range.start().0..DIRECT_MAP + range.end().0).step_by(RING_BYTES as usize);
        starts.filter_map(ring_at)
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.end();
        if !self.is_quiet() {
            self.frames.take().into_iter().for_each(OwnedFrames::leak);
        }
    }
}

/// The ring whose memory begins there.
fn ring_at(memory: u64) -> Option<Ring<'static>> {
    // SAFETY: only addresses of rings' memory come here: whole frames, in the direct map, which are kept until no handler uses them
    // and their reader is gone. Any bits are a word.
    Ring::in_words(unsafe { core::slice::from_raw_parts(memory as *const AtomicU32, RING_BYTES as usize / 4) })
}

/// Whether an NMI is a profile's: then the sample has been taken.
pub fn takes_nmi(frame: &TrapFrame) -> bool {
    let period_us = PERIOD_US.load(Ordering::Acquire);
    if period_us == 0 {
        return false;
    }
    let me = PerCpu::current();
    if me.index == BOOT_PROCESSOR {
        watchdog::arm_again(period_us);
        ASKED.fetch_add(1 + ask_others(), Ordering::Relaxed);
    }
    me.samples.with(|memory| {
        if let Some(ring) = ring_at(memory) {
            look(me, frame, &ring);
        }
    });
    true
}

/// Has all others looked at; how many they are.
fn ask_others() -> u64 {
    let others = percpu::indices().skip(1).filter_map(percpu::of).filter(|other| other.samples.is_given());
    others.inspect(|other| apic::send_nmi_from_nmi(other.apic_id)).count() as u64
}

fn look(me: &PerCpu, frame: &TrapFrame, ring: &Ring<'_>) {
    let mut frames = [0; MOST_FRAMES];
    let sample = if me.is_idle() {
        Sample::Idle
    } else if let Some(guest) = svm::guest_taken_from(frame) {
        Sample::Guest(guest)
    } else {
        let count = frames_of(frame, &mut frames);
        Sample::Host(&frames[..count])
    };
    sample.encode(|words| ring.push(words));
}

/// Where the image's code was interrupted and called from, up to the first address that is not the code's.
fn frames_of(frame: &TrapFrame, into: &mut [u32; MOST_FRAMES]) -> usize {
    let mut addresses = [0; MOST_FRAMES];
    addresses[0] = frame.rip;
    let mut count = 1;
    if let Some(stack) = stack_around(frame.rsp) {
        let caller = profile::walk::caller_above(trap::code_bytes(frame.rip)).map(|above| frame.rsp + above);
        if let Some(at) = caller.filter(|at| at.is_multiple_of(8) && stack.contains(at)) {
            // SAFETY: an aligned quadword of a mapped stack.
            addresses[1] = unsafe { *(at as *const u64) };
            count = 2;
        }
        count += trap::backtrace(frame.rbp, stack, &mut addresses[count..]);
    }
    let code = text_start()..text_end();
    let known = addresses[..count].iter().take_while(|address| code.contains(address));
    into.iter_mut().zip(known).map(|(place, address)| *place = (address - code.start) as u32).count()
}
