// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vector registers of the vCPU that is loaded. The hypervisor is built without them, so an exit leaves them in the
//! CPU; an instruction that moves one to or from a device register is emulated with these two functions.

use core::arch::asm;

use vm::machine::emulate::VectorWrite;

use super::cpu;

/// XCR0: SSE and AVX state are enabled.
const SSE_AND_AVX: u64 = 0b110;

/// One move between memory and the register that is known only when it is executed.
macro_rules! with_register {
    ($register:expr, $value:expr, $before:literal, $after:literal, [$($number:literal)+]) => {
        match $register {
            $($number => {
                // SAFETY: CR4.OSFXSR is set (`memory::protect_this_cpu`), and CR4.OSXSAVE where AVX is enabled,
                // which the caller has checked for AVX's forms. The memory is 32 bytes of the caller's. No code of the
                // hypervisor uses the register.
                unsafe {
                    asm!(
                        concat!($before, stringify!($number), $after),
                        value = in(reg) $value,
                        options(nostack, preserves_flags),
                    )
                }
            })+
            _ => {}
        }
    };
}

/// Bits 0 to 255 of a register; bits from 128 up are zero where the guest has not enabled AVX.
pub fn read(register: u8) -> [u64; 4] {
    let mut value = [0; 4];
    let into = &raw mut value;
    if has_avx() {
        with_register!(register, into, "vmovups [{value}], ymm", "", [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]);
    } else {
        with_register!(register, into, "movups [{value}], xmm", "", [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]);
    }
    value
}

/// Writes a register; as SSE does where the guest has not enabled AVX.
pub fn write(register: u8, value: [u64; 4], write: VectorWrite) {
    let from = &raw const value;
    match write {
        VectorWrite::Clear if has_avx() => {
            with_register!(register, from, "vmovups xmm", ", [{value}]", [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]);
        }
        VectorWrite::Whole if has_avx() => {
            with_register!(register, from, "vmovups ymm", ", [{value}]", [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]);
        }
        _ => with_register!(register, from, "movups xmm", ", [{value}]", [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15]),
    }
}

/// Returns whether the guest has enabled AVX. XCR0 is the guest's while it is loaded.
fn has_avx() -> bool {
    const OSXSAVE: u64 = 1 << 18;
    // SAFETY: CR4.OSXSAVE is set where XCR0 is read.
    cpu::read_cr4() & OSXSAVE != 0 && unsafe { cpu::read_xcr0() } & SSE_AND_AVX == SSE_AND_AVX
}
