// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers, as numbers of MSRs.

/// The machine-check registers of one CPU.
pub trait Registers {
    /// Reads an MSR. Only those are read that [`crate::Unit::detect`] has found.
    fn read(&mut self, register: u32) -> u64;
    /// Writes an MSR.
    fn write(&mut self, register: u32, value: u64);
}

/// Number of banks, and their features.
pub(crate) const MCG_CAP: u32 = 0x179;
/// State of the interrupted context; zero while no #MC is handled.
pub const MCG_STATUS: u32 = 0x17a;
/// Enables sources of errors, where [`MCG_CAP_HAS_CTL`] is set.
pub(crate) const MCG_CTL: u32 = 0x17b;
/// MCG_CAP bit 8: MCG_CTL exists.
pub(crate) const MCG_CAP_HAS_CTL: u64 = 1 << 8;
/// MCG_CAP bit 24 (Intel SDM vol. 3, section 16.3.1.1): the banks' S and AR flags state whether software has to
/// recover. Reserved on AMD.
pub(crate) const MCG_CAP_RECOVERS: u64 = 1 << 24;
/// MCG_STATUS bit 0: the interrupted context can be resumed.
pub(crate) const RIPV: u64 = 1 << 0;

/// Registers of bank 0, and how far those of the next bank are.
const LEGACY: (u32, u32) = (0x400, 4);
/// The same with scalable MCA.
const SCALABLE: (u32, u32) = (0xc000_2000, 0x10);

/// One register of a bank, by its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Register {
    Control = 0,
    Status = 1,
    Address = 2,
    Misc = 3,
    /// Scalable MCA only: the unit that the bank belongs to.
    Identity = 5,
    /// Scalable MCA only: a deferred error, where it is not in `Status`.
    DeferredStatus = 8,
    /// Scalable MCA only: its address.
    DeferredAddress = 9,
}

/// The MSR of a bank's register.
pub(crate) fn msr(is_scalable: bool, bank: u32, register: Register) -> u32 {
    let (first, stride) = if is_scalable { SCALABLE } else { LEGACY };
    first + bank * stride + register as u32
}
