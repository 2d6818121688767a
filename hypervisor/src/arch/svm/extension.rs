// SPDX-License-Identifier: MIT OR Apache-2.0
//! SVM enabled for a moment.

use crate::arch::cpu;

const MSR_EFER: u32 = 0xc000_0080;
const EFER_SVME: u64 = 1 << 12;

/// Does something with SVM switched on, on a processor that has it.
pub fn with_extension<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: the register exists on every x86-64 processor; reading it has no effect.
    let before = unsafe { cpu::read_msr(MSR_EFER) };
    // SAFETY: the caller has found SVM, not switched off; without VMRUN the bit changes nothing for who runs.
    unsafe { cpu::write_msr(MSR_EFER, before | EFER_SVME) };
    let result = act();
    // SAFETY: as it was; the global interrupt flag is set.
    unsafe { cpu::write_msr(MSR_EFER, before) };
    result
}
