// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU's source of entropy: RDSEED and RDRAND (Intel SDM vol. 1, section 7.3.17; AMD APM vol. 3, chapter 3).

use core::arch::asm;

use entropy::Source;

use super::cpu;

/// CPUID leaf 1, ECX: RDRAND.
const RDRAND: u32 = 1 << 30;
/// CPUID leaf 7, EBX: RDSEED.
const RDSEED: u32 = 1 << 18;

/// The instructions, as far as the CPU has them.
#[derive(Clone, Copy, Debug)]
pub struct Instructions {
    has_rdseed: bool,
    has_rdrand: bool,
}

impl Instructions {
    /// Detects those of the calling CPU. Every CPU of a host has the same.
    pub fn detect() -> Self {
        let has_leaf = cpu::cpuid(0, 0).eax >= 7;
        Self {
            has_rdseed: has_leaf && cpu::cpuid(7, 0).ebx & RDSEED != 0,
            has_rdrand: cpu::cpuid(1, 0).ecx & RDRAND != 0,
        }
    }
}

impl Source for Instructions {
    fn has_rdseed(&self) -> bool {
        self.has_rdseed
    }

    fn has_rdrand(&self) -> bool {
        self.has_rdrand
    }

    fn rdseed(&mut self) -> Option<u64> {
        let (word, is_there): (u64, u8);
        if !self.has_rdseed {
            return None;
        }
        // SAFETY: the CPU has the instruction, which changes the register and the flags.
        unsafe { asm!("rdseed {}", "setc {}", out(reg) word, out(reg_byte) is_there, options(nomem, nostack)) };
        (is_there != 0).then_some(word)
    }

    fn rdrand(&mut self) -> Option<u64> {
        let (word, is_there): (u64, u8);
        if !self.has_rdrand {
            return None;
        }
        // SAFETY: the CPU has the instruction, which changes the register and the flags.
        unsafe { asm!("rdrand {}", "setc {}", out(reg) word, out(reg_byte) is_there, options(nomem, nostack)) };
        (is_there != 0).then_some(word)
    }

    fn pause(&mut self) {
        cpu::pause();
    }
}
