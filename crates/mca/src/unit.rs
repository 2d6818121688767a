// SPDX-License-Identifier: MIT OR Apache-2.0
//! One CPU's machine-check unit: its banks, how they are enabled, read and cleared.

use units::{PAGE_BYTES, PhysAddr, PhysRange};

use crate::recovery::Recovery;
use crate::registers::{MCG_CAP, MCG_CAP_HAS_CTL, MCG_CAP_RECOVERS, MCG_CTL, MCG_STATUS, Register, Registers, msr};
use crate::severity::{self, Severity};
use crate::status::Status;

/// Banks that are read at most: as many as scalable MCA has registers for.
const MOST_BANKS: u32 = 64;
/// Legacy registers end where the VMX capability registers begin (0x480).
const MOST_LEGACY_BANKS: u32 = 32;
/// CPUID Fn8000_0007_EBX (AMD APM vol. 3, section E.4.6).
const SURVIVES_OVERFLOW: u32 = 1 << 0;
const CONTAINS: u32 = 1 << 1;
const SCALABLE: u32 = 1 << 3;
/// CPUID Fn0000_0001_EDX bit 14: the registers exist.
const HAS_BANKS: u32 = 1 << 14;
/// Physical addresses have 52 bits at most.
const ADDRESS_BITS: u64 = (1 << 52) - 1;
/// MISC bits 8 to 6 of Intel's (SDM vol. 3, section 16.3.2.4): the address is a physical one.
const ADDRESS_IS_PHYSICAL: u64 = 2;
/// Identity bits 43 to 32: a bank of the core. Its addresses are the system's; those of a memory controller are not.
const OF_THE_CORE: u64 = 0xb0;
/// An error that is reported to be about more than 1 GiB is not about memory.
const MOST_ADDRESS_BITS: u64 = 30;

/// One CPU's machine-check unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    banks: u32,
    has_control: bool,
    is_scalable: bool,
    recovery: Recovery,
}

/// An error in a bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The bank's number.
    pub bank: u32,
    /// Its status.
    pub status: Status,
    /// Its address register, where that is valid; not every bank holds a physical address there.
    pub address: Option<u64>,
    /// The memory that it concerns, in whole pages, as far as the bank names it.
    pub memory: Option<PhysRange>,
    /// Its severity.
    pub severity: Severity,
}

impl Unit {
    /// Detects the calling CPU's unit, by CPUID Fn0000_0001_EDX and Fn8000_0007_EBX (0 where that leaf does not exist).
    /// `None` if it has none.
    pub fn detect(features: u32, recovery_features: u32, registers: &mut impl Registers) -> Option<Self> {
        if features & HAS_BANKS == 0 {
            return None;
        }
        let capabilities = registers.read(MCG_CAP);
        let has = |flag| recovery_features & flag != 0;
        let most = if has(SCALABLE) { MOST_BANKS } else { MOST_LEGACY_BANKS };
        let recovery = match capabilities & MCG_CAP_RECOVERS != 0 {
            true => Recovery::Flags,
            false if has(CONTAINS) => Recovery::Poison { survives_overflow: has(SURVIVES_OVERFLOW) },
            false => Recovery::None,
        };
        let banks = (capabilities as u32 & 0xff).min(most);
        let has_control = capabilities & MCG_CAP_HAS_CTL != 0;
        Some(Self { banks, has_control, is_scalable: has(SCALABLE), recovery })
    }

    /// Returns how many banks there are.
    pub fn banks(&self) -> u32 {
        self.banks
    }

    /// Returns the way in which errors are contained.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// Reports the errors that the banks hold already, clears them, and enables every source of errors. For each CPU
    /// before guests run.
    pub fn prepare(&self, registers: &mut impl Registers, mut report: impl FnMut(&Found)) {
        for bank in 0..self.banks {
            // A bank of scalable MCA may hold two errors, one of them deferred.
            for _ in 0..2 {
                if let Some(found) = self.read_bank(registers, bank) {
                    report(&found);
                    self.clear(registers, &found);
                }
            }
            registers.write(msr(self.is_scalable, bank, Register::Control), u64::MAX);
        }
        if self.has_control {
            registers.write(MCG_CTL, u64::MAX);
        }
        registers.write(MCG_STATUS, 0);
    }

    /// Takes the errors that came without a #MC: corrected ones, and those that stop no context. Errors that a #MC
    /// signals are left to its handler.
    pub fn poll(&self, registers: &mut impl Registers, mut take: impl FnMut(&Found)) {
        for bank in 0..self.banks {
            if let Some(found) = self.read_bank(registers, bank).filter(Found::is_pollable) {
                take(&found);
                self.clear(registers, &found);
            }
        }
    }

    /// Returns the error that a bank holds.
    pub(crate) fn read_bank(&self, registers: &mut impl Registers, bank: u32) -> Option<Found> {
        let mut read = |register| registers.read(msr(self.is_scalable, bank, register));
        let mut status = Status(read(Register::Status));
        let mut address_register = Register::Address;
        if self.is_scalable && !status.has(Status::VALID) {
            status = Status(read(Register::DeferredStatus) | Status::DEFERRED);
            address_register = Register::DeferredAddress;
        }
        if !status.has(Status::VALID) {
            return None;
        }
        let address = status.has(Status::ADDRESS_VALID).then(|| read(address_register));
        let memory = address.and_then(|address| self.memory(address, status, read));
        Some(Found { bank, status, address, memory, severity: severity::of(status, self.recovery) })
    }

    /// Returns the memory that an address register names.
    fn memory(&self, address: u64, status: Status, mut read: impl FnMut(Register) -> u64) -> Option<PhysRange> {
        let (is_physical, lowest_bit) = if self.recovery == Recovery::Flags {
            let misc = if status.has(Status::MISC_VALID) { read(Register::Misc) } else { 0 };
            (misc >> 6 & 7 == ADDRESS_IS_PHYSICAL, misc & 0x3f)
        } else if self.is_scalable {
            (read(Register::Identity) >> 32 & 0xfff == OF_THE_CORE, address >> 56 & 0x3f)
        } else {
            (true, 0)
        };
        if !is_physical || lowest_bit > MOST_ADDRESS_BITS {
            return None;
        }
        let bytes = PAGE_BYTES.max(1 << lowest_bit);
        PhysRange::from_start(PhysAddr(address & ADDRESS_BITS & !(bytes - 1)), bytes)
    }

    /// Clears an error that has been taken from its bank.
    pub(crate) fn clear(&self, registers: &mut impl Registers, found: &Found) {
        let status = msr(self.is_scalable, found.bank, Register::Status);
        let deferred = msr(self.is_scalable, found.bank, Register::DeferredStatus);
        if self.is_scalable && found.status.has(Status::DEFERRED) {
            // The same error may be in both.
            registers.write(deferred, 0);
        }
        registers.write(status, 0);
    }
}

impl Found {
    /// Returns whether no #MC signals it.
    pub fn is_pollable(&self) -> bool {
        matches!(self.severity, Severity::Corrected | Severity::Unsignalled | Severity::Optional)
    }
}

impl core::fmt::Display for Found {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "bank {}, status {:#018x}", self.bank, self.status.0)?;
        self.address.map_or(Ok(()), |address| write!(f, ", address {address:#x}"))
    }
}
