// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machine checks: which memory is damaged, as far as the processor says (AMD APM vol. 2, chapter 9; Intel SDM vol. 3, chapter
//! 17).

use units::PhysAddr;

use super::cpu;

const MSR_MCG_CAP: u32 = 0x179;
const MSR_MC0_STATUS: u32 = 0x401;
const MSR_MC0_ADDR: u32 = 0x402;
/// From one bank's registers to the next one's.
const BANK_STRIDE: u32 = 4;
/// Banks that are looked at.
const MOST_BANKS: u32 = 32;
/// The bank holds an error; it was not corrected; and its address is known.
const UNCORRECTED_AT_ADDRESS: u64 = 1 << 63 | 1 << 61 | 1 << 58;

/// The calling processor's first uncorrected error with an address.
pub fn damaged_memory() -> Option<PhysAddr> {
    let has_banks = cpu::cpuid(1, 0).edx & (1 << 14) != 0;
    // SAFETY: CPUID says that the register exists; reading it has no effect.
    let banks = if has_banks { unsafe { cpu::read_msr(MSR_MCG_CAP) as u32 & 0xff } } else { 0 };
    (0..banks.min(MOST_BANKS)).map(|bank| bank * BANK_STRIDE).find_map(|bank| {
        // SAFETY: the processor has this bank; reading its registers has no effect.
        let status = unsafe { cpu::read_msr(MSR_MC0_STATUS + bank) };
        if status & UNCORRECTED_AT_ADDRESS != UNCORRECTED_AT_ADDRESS {
            return None;
        }
        // SAFETY: as above, and the bank's address register holds the address.
        Some(PhysAddr(unsafe { cpu::read_msr(MSR_MC0_ADDR + bank) }))
    })
}
