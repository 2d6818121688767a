// SPDX-License-Identifier: MIT OR Apache-2.0
//! IOMMUs: a unit's registers, and the memory in which its tables are.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

use iommu::{Redirection, Registers, Signal, Spare, Words};
use units::{PhysAddr, PhysRange};

use super::address::{self, DIRECT_MAP};
use super::memory::{self, MemoryError};
use super::{cpu, timer};

/// Unit `n`'s registers are mapped at `MAPPED_AT + n × STRIDE`.
const MAPPED_AT: u64 = address::DEVICES + 0x2_0000_0000;
const STRIDE: u64 = 2 << 20;
/// CPUID function 1, EBX: bytes of the line that CLFLUSH writes back, divided by eight, in bits 8-15 (AMD APM vol. 3,
/// appendix E.3.2).
const CLFLUSH_SHIFT: u32 = 8;

/// One unit's registers. The unit's owner is the only one that reaches them; a clone is for a second attempt at taking
/// the unit.
#[derive(Clone, Debug)]
pub struct UnitRegisters {
    at: u64,
    bytes: u64,
}

impl UnitRegisters {
    /// Maps the registers of the unit with this number: whole pages, at most 2 MiB, that are no memory.
    ///
    /// # Errors
    /// [`MemoryError`] if they cannot be mapped.
    pub fn map(number: usize, registers: PhysRange) -> Result<Self, MemoryError> {
        let at = MAPPED_AT + number as u64 * STRIDE;
        let bytes = registers.bytes().min(STRIDE);
        memory::map_device(at, registers.start().0, bytes)?;
        Ok(Self { at, bytes })
    }

    fn pointer<T>(&self, offset: u32) -> Option<*mut T> {
        let size = size_of::<T>() as u64;
        let offset = u64::from(offset);
        (offset.is_multiple_of(size) && offset + size <= self.bytes).then_some((self.at + offset) as *mut T)
    }

    fn read<T: Copy>(&self, offset: u32, absent: T) -> T {
        let Some(pointer) = self.pointer::<T>(offset) else { return absent };
        // SAFETY: inside of the registers, which are mapped uncached for ever, and aligned; the unit's owner reads
        // them. A read's side effects concern only the unit and its owner.
        unsafe { pointer.read_volatile() }
    }

    fn write<T: Copy>(&self, offset: u32, value: T) {
        let Some(pointer) = self.pointer::<T>(offset) else { return };
        // SAFETY: as in `read`. The unit's accesses are then bounded by its tables, which are in memory that nothing
        // else uses (`iommu::Store`), and which its owner has built before it names them.
        unsafe { pointer.write_volatile(value) };
    }
}

impl Registers for UnitRegisters {
    fn read32(&mut self, offset: u32) -> u32 {
        self.read(offset, u32::MAX)
    }

    fn write32(&mut self, offset: u32, value: u32) {
        self.write(offset, value);
    }

    fn read64(&mut self, offset: u32) -> u64 {
        self.read(offset, u64::MAX)
    }

    fn write64(&mut self, offset: u32, value: u64) {
        self.write(offset, value);
    }

    fn pause(&mut self) {
        timer::delay_us(1);
    }
}

/// The tables' memory, through the direct map. [`iommu::Store`] asks only for what lies in its pieces.
#[derive(Debug)]
pub struct TableWords {
    line_bytes: u64,
}

/// Returns whether two words can be replaced at once: the units' entries need it (CPUID function 1, ECX bit 13).
pub fn has_pairs() -> bool {
    cpu::cpuid(1, 0).ecx >> 13 & 1 != 0
}

impl TableWords {
    /// For the machine's CPUs.
    pub fn new() -> Self {
        let line_bytes = u64::from(cpu::cpuid(1, 0).ebx >> CLFLUSH_SHIFT & 0xff) * 8;
        Self { line_bytes: if line_bytes.is_power_of_two() { line_bytes } else { 16 } }
    }
}

impl Words for TableWords {
    fn read(&self, at: PhysAddr) -> u64 {
        // SAFETY: in a piece of the store's: whole frames in the direct map with no other owner, aligned.
        unsafe { ((DIRECT_MAP + at.0) as *const u64).read_volatile() }
    }

    fn write(&mut self, at: PhysAddr, value: u64) {
        // SAFETY: as in `read`; a unit may read it meanwhile, whole.
        unsafe { ((DIRECT_MAP + at.0) as *mut u64).write_volatile(value) };
    }

    fn write_pair(&mut self, at: PhysAddr, values: [u64; 2]) {
        let [low, high] = values;
        // SAFETY: as in `read`, aligned to sixteen; `has_pairs` states that the instruction exists. RBX, which the
        // compiler keeps for itself, is as before behind it.
        unsafe {
            asm!(
                "xchg rbx, rsi",
                "2:",
                "lock cmpxchg16b [rdi]",
                "jnz 2b",
                "mov rbx, rsi",
                in("rdi") DIRECT_MAP + at.0,
                inout("rsi") low => _,
                in("rcx") high,
                inout("rax") 0_u64 => _,
                inout("rdx") 0_u64 => _,
                options(nostack),
            );
        }
    }

    fn write_back(&mut self, at: PhysAddr, bytes: u64) {
        let end = at.0 + bytes;
        let mut line = at.0 & !(self.line_bytes - 1);
        while line < end {
            // SAFETY: flushes a line of the store's memory, which is mapped; CPUs with SVM or VMX have CLFLUSH.
            unsafe { asm!("clflush [{}]", in(reg) DIRECT_MAP + line, options(nostack, preserves_flags)) };
            line += self.line_bytes;
        }
        // SAFETY: orders what is before it.
        unsafe { asm!("mfence", options(nostack, preserves_flags)) };
    }
}

/// An I/O APIC's [`Spare`] entry for one input, kept where the end of the host finds it without a lock.
#[derive(Debug)]
pub struct SpareEntry(AtomicU64);

impl SpareEntry {
    /// There is none: interrupts of I/O APICs are not remapped.
    pub const fn none() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Keeps another one, or none.
    pub fn keep(&self, spare: Option<Spare>) {
        self.0.store(spare.map_or(0, Spare::bits), Ordering::Relaxed);
    }

    /// The redirection by which the input sends this from here on: by the spare entry, which is stored, where there is
    /// one. For the end of the host.
    pub fn redirect(&self, signal: Signal, is_active_low: bool) -> Redirection {
        let Some(spare) = Spare::from_bits(self.0.load(Ordering::Relaxed)) else {
            return Redirection::direct(signal, is_active_low);
        };
        let write = spare.send(signal, is_active_low);
        let mut words = TableWords::new();
        words.write(write.at, write.word);
        words.write_back(write.at, size_of::<u64>() as u64);
        write.redirection
    }
}
