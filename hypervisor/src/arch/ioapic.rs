// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's I/O APICs: everything masked but what the host itself uses.

use iommu::Redirection;
use spin::Mutex;

use super::address;

/// I/O APIC `n` is mapped at `MAPPED_AT + n × 4 KiB`.
pub const MAPPED_AT: u64 = address::DEVICES + 0x10_0000;

const VERSION: u32 = 1;
const FIRST_ENTRY: u32 = 0x10;
const MASKED: u32 = 1 << 16;
/// A level-triggered interrupt was sent, and no local APIC has ended it.
const REMOTE_IRR: u32 = 1 << 14;

/// Held from an access to an index register to the one to the data register. CPUs of the host take interrupts only
/// where they hold no lock, so a handler may take it.
static SELECTED: Mutex<()> = Mutex::new(());

/// One I/O APIC, its page mapped.
#[derive(Clone, Copy)]
pub struct IoApic {
    number: usize,
    is_alone: bool,
}

impl IoApic {
    /// I/O APIC `number`, with its page mapped at its place.
    pub const fn mapped(number: usize) -> Self {
        Self { number, is_alone: false }
    }

    /// As [`Self::mapped`], at the end of the host: every other CPU has stopped, maybe amid an access.
    pub const fn alone(number: usize) -> Self {
        Self { number, is_alone: true }
    }

    /// Returns how many inputs it has.
    pub fn inputs(self) -> u32 {
        (self.read(VERSION) >> 16 & 0xff) + 1
    }

    /// Masks every input.
    pub fn mask_all(self) {
        for input in 0..self.inputs() {
            self.write(FIRST_ENTRY + input * 2, MASKED);
        }
    }

    /// Replaces the entry of `input`. The input is masked while its halves belong to different entries; one that only
    /// gets another lower half misses no edge.
    pub fn set(self, input: u32, entry: Redirection) {
        let (low, high) = (FIRST_ENTRY + input * 2, FIRST_ENTRY + input * 2 + 1);
        let upper = (entry.0 >> 32) as u32;
        if self.read(high) != upper {
            self.write(low, MASKED);
            self.write(high, upper);
        }
        self.write(low, entry.0 as u32);
    }

    /// Masks an input, before the handler of its interrupt ends that.
    pub fn mask(self, input: u32) {
        let low = FIRST_ENTRY + input * 2;
        self.write(low, self.read(low) | MASKED);
        // Reading waits for the write: an end of interrupt that overtakes it would let the input interrupt again.
        let _ = self.read(low);
    }

    /// Unmasks an input. Returns whether its line was asserted: then it has interrupted at once.
    pub fn unmask(self, input: u32) -> bool {
        let low = FIRST_ENTRY + input * 2;
        self.write(low, self.read(low) & !MASKED);
        self.read(low) & REMOTE_IRR != 0
    }

    /// Masks every input that is sent as an NMI.
    pub fn mask_nmis(self) {
        for input in 0..self.inputs() {
            let (low, high) = (FIRST_ENTRY + input * 2, FIRST_ENTRY + input * 2 + 1);
            if Redirection(u64::from(self.read(high)) << 32 | u64::from(self.read(low))).is_nmi() {
                self.write(low, MASKED);
            }
        }
    }

    fn base(self) -> u64 {
        MAPPED_AT + self.number as u64 * 4096
    }

    fn read(self, register: u32) -> u32 {
        let _selected = (!self.is_alone).then(|| SELECTED.lock());
        // SAFETY: the page is mapped uncached; index and data registers, which no other CPU uses meanwhile.
        unsafe {
            core::ptr::write_volatile(self.base() as *mut u32, register);
            core::ptr::read_volatile((self.base() + 0x10) as *const u32)
        }
    }

    fn write(self, register: u32, value: u32) {
        let _selected = (!self.is_alone).then(|| SELECTED.lock());
        // SAFETY: as in `read`.
        unsafe {
            core::ptr::write_volatile(self.base() as *mut u32, register);
            core::ptr::write_volatile((self.base() + 0x10) as *mut u32, value);
        }
    }
}
