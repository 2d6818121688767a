// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's I/O APICs: everything masked but what the host itself uses.

use super::address;

/// I/O APIC `n` is mapped at `MAPPED_AT + n × 4 KiB`.
pub const MAPPED_AT: u64 = address::DEVICES + 0x10_0000;

const VERSION: u32 = 1;
const FIRST_ENTRY: u32 = 0x10;
const MASKED: u32 = 1 << 16;
const LEVEL: u32 = 1 << 15;
const ACTIVE_LOW: u32 = 1 << 13;
const DELIVERY_MODE: u32 = 0b111 << 8;
const NMI: u32 = 0b100 << 8;

/// One I/O APIC, its page mapped.
#[derive(Clone, Copy)]
pub struct IoApic {
    number: usize,
}

impl IoApic {
    /// I/O APIC `number`, whose page is mapped at its place.
    pub const fn mapped(number: usize) -> Self {
        Self { number }
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

    /// Sends `input` as `vector` to one CPU.
    pub fn route(self, input: u32, vector: u8, apic_id: u32, is_level: bool, is_active_low: bool) {
        let flags = if is_level { LEVEL } else { 0 } | if is_active_low { ACTIVE_LOW } else { 0 };
        self.write(FIRST_ENTRY + input * 2 + 1, apic_id << 24);
        self.write(FIRST_ENTRY + input * 2, u32::from(vector) | flags);
    }

    /// Sends `input`, edge-triggered, as an NMI to one CPU, once [`Self::let_nmi`] opens it.
    pub fn route_nmi(self, input: u32, apic_id: u32) {
        self.write(FIRST_ENTRY + input * 2, MASKED | NMI);
        self.write(FIRST_ENTRY + input * 2 + 1, apic_id << 24);
    }

    /// Opens or masks an input that is sent as an NMI.
    pub fn let_nmi(self, input: u32, is_open: bool) {
        self.write(FIRST_ENTRY + input * 2, NMI | if is_open { 0 } else { MASKED });
    }

    /// Masks every input that is sent as an NMI.
    pub fn mask_nmis(self) {
        let entries = (0..self.inputs()).map(|input| FIRST_ENTRY + input * 2);
        let nmis = entries.filter(|entry| self.read(*entry) & DELIVERY_MODE == NMI);
        nmis.for_each(|entry| self.write(entry, MASKED));
    }

    fn base(self) -> u64 {
        MAPPED_AT + self.number as u64 * 4096
    }

    fn read(self, register: u32) -> u32 {
        // SAFETY: the page is mapped uncached; index and data registers, used by the boot CPU alone.
        unsafe {
            core::ptr::write_volatile(self.base() as *mut u32, register);
            core::ptr::read_volatile((self.base() + 0x10) as *const u32)
        }
    }

    fn write(self, register: u32, value: u32) {
        // SAFETY: as in `read`.
        unsafe {
            core::ptr::write_volatile(self.base() as *mut u32, register);
            core::ptr::write_volatile((self.base() + 0x10) as *mut u32, value);
        }
    }
}
