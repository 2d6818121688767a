// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's PCI configuration space: through memory where firmware shows it there, else through two ports.

use core::arch::global_asm;

use arrayvec::ArrayVec;
use firmware::tables::MAX_ECAMS;
use pci::{Bdf, ConfigSpace, ConfigWrite, EcamRange, Route, route};

use super::{address, cpu, memory, port, timer};

/// Range `n` is mapped at `MAPPED_AT + n × STRIDE`, and as far behind that as it lies behind a large page's beginning.
/// The first lies in the GiB of the other device registers: no table is allocated when PCI is probed.
const MAPPED_AT: u64 = address::DEVICES + STRIDE;
const STRIDE: u64 = 0x2000_0000;
const LARGE_PAGE: u64 = 2 << 20;
const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;

global_asm!(
    ".section .text",
    ".align 16",
    ".global ecam_read",
    "ecam_read:",
    "mov eax, [rdi]",
    "ret",
    ".global ecam_write8",
    "ecam_write8:",
    "mov eax, esi",
    "mov [rdi], al",
    "ret",
    ".global ecam_write16",
    "ecam_write16:",
    "mov eax, esi",
    "mov [rdi], ax",
    "ret",
    ".global ecam_write32",
    "ecam_write32:",
    "mov eax, esi",
    "mov [rdi], eax",
    "ret",
);

unsafe extern "sysv64" {
    fn ecam_read(at: u64) -> u32;
    fn ecam_write8(at: u64, value: u32);
    fn ecam_write16(at: u64, value: u32);
    fn ecam_write32(at: u64, value: u32);
}

/// A write's width.
#[derive(Clone, Copy)]
enum Width {
    Byte,
    Word,
    Dword,
}

/// The way to the registers. Its owner is the only one that reaches them: there is one, behind a lock.
pub struct Space {
    ranges: ArrayVec<EcamRange, MAX_ECAMS>,
}

impl Space {
    /// Through ports alone.
    pub const fn by_ports() -> Self {
        Self { ranges: ArrayVec::new_const() }
    }

    /// Shows a range, which overlaps nothing that is used otherwise; it is used from here on, if what it shows of the
    /// first function is what the ports show. Returns whether it is.
    pub fn add(&mut self, range: EcamRange) -> bool {
        let Some((start, end)) = range.addresses() else { return false };
        let Some(at) = mapped_at(self.ranges.len(), start) else { return false };
        if self.ranges.is_full() || memory::map_device(at, start, end - start).is_err() {
            return false;
        }
        self.ranges.push(range);
        let is_right = matches_ports(at, range);
        if !is_right {
            // It stays mapped, and its place taken: an empty range shows nothing.
            self.ranges.pop();
            self.ranges.push(EcamRange { first_bus: u8::MAX, last_bus: 0, ..range });
        }
        is_right
    }

    fn at(&self, range: usize, offset: u64) -> Option<u64> {
        let (start, _) = self.ranges.get(range)?.addresses()?;
        Some(mapped_at(range, start)? + offset)
    }
}

fn mapped_at(index: usize, start: u64) -> Option<u64> {
    (index < MAX_ECAMS).then_some(MAPPED_AT + index as u64 * STRIDE + start % LARGE_PAGE)
}

/// Returns whether the first function of a range is also what the ports show there. They show the first segment's; a
/// machine without ports reads as ones.
fn matches_ports(at: u64, range: EcamRange) -> bool {
    let place = Bdf::new(0, range.first_bus, 0, 0).filter(|_| range.segment == 0);
    let Some(Route::Ports(word)) = place.and_then(|place| route(&[], place, 0)) else { return true };
    let by_ports = read_port(word);
    by_ports == u32::MAX || by_ports == read_memory(at)
}

/// Reads a register through memory into EAX: AMD's CPUs require "mov eax/ax/al, any_address_mode" there (BKDG for
/// family 15h models 00h-0Fh, 42301 rev 3.14, section 2.7.1, "MMIO configuration coding requirements"), and the
/// compiler may choose any register. So it is a routine of its own, whose bytes a test checks.
fn read_memory(at: u64) -> u32 {
    // SAFETY: `at` lies in a range that is mapped uncached, and is a multiple of four; reading a configuration register
    // changes nothing that others rely on.
    unsafe { ecam_read(at) }
}

/// Writes a register through memory, by EAX as [`read_memory`] reads.
fn write_memory(at: u64, value: u32, width: Width) {
    // SAFETY: `at` lies in a range that is mapped uncached, and is a multiple of the width. The function is one that is
    // a guest's or about to be: the IOMMU bounds what it can do to memory.
    unsafe {
        match width {
            Width::Byte => ecam_write8(at, value),
            Width::Word => ecam_write16(at, value),
            Width::Dword => ecam_write32(at, value),
        }
    }
}

/// Writes a register by the data port that has its bytes.
fn write_port(word: u32, register: u16, value: u32, width: Width) {
    let data = DATA + (register & 3);
    // SAFETY: as in `read_port`; of the function, as in `write_memory`.
    unsafe {
        port::write_u32(ADDRESS, word);
        match width {
            Width::Byte => port::write_u8(data, value as u8),
            Width::Word => port::write_u16(data, value as u16),
            Width::Dword => port::write_u32(data, value),
        }
    }
}

fn read_port(word: u32) -> u32 {
    // SAFETY: address and data port of configuration space, which no other code uses.
    unsafe {
        port::write_u32(ADDRESS, word);
        port::read_u32(DATA)
    }
}

impl ConfigSpace for Space {
    fn read(&mut self, place: Bdf, register: u16) -> u32 {
        match route(&self.ranges, place, register) {
            Some(Route::Memory { range, offset }) => self.at(range, offset).map_or(u32::MAX, read_memory),
            Some(Route::Ports(word)) => read_port(word),
            None => u32::MAX,
        }
    }

    fn now(&mut self) -> u64 {
        cpu::tsc()
    }

    fn pause(&mut self) {
        timer::delay_us(1);
    }
}

impl Space {
    fn write(&mut self, place: Bdf, register: u16, value: u32, width: Width) {
        match route(&self.ranges, place, register & !3) {
            Some(Route::Memory { range, offset }) => {
                let at = self.at(range, offset + u64::from(register & 3));
                at.into_iter().for_each(|at| write_memory(at, value, width));
            }
            Some(Route::Ports(word)) => write_port(word, register, value, width),
            None => {}
        }
    }
}

impl ConfigWrite for Space {
    fn write8(&mut self, place: Bdf, register: u16, value: u8) {
        self.write(place, register, value.into(), Width::Byte);
    }

    fn write16(&mut self, place: Bdf, register: u16, value: u16) {
        self.write(place, register & !1, value.into(), Width::Word);
    }

    fn write32(&mut self, place: Bdf, register: u16, value: u32) {
        self.write(place, register & !3, value, Width::Dword);
    }
}
