// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engines for SHA-256's rounds: the CPU's own instructions ([`sha256.S`](sha256.S)) where it has them.

use core::arch::global_asm;

use seal::{Block, Compress, Portable};

use super::cpu;

global_asm!(include_str!("sha256.S"));

unsafe extern "sysv64" {
    fn sha256_by_instructions(state: *mut u32, blocks: *const u8, count: usize);
}

/// Blocks that are hashed while the guest's XMM registers are saved: some microseconds' worth.
const BLOCKS_AT_ONCE: usize = 64;

/// The engine that carries out the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Plain code.
    Portable,
    /// The CPU's instructions.
    Instructions,
}

impl Engine {
    /// Those that the CPU has.
    pub fn available() -> impl Iterator<Item = Self> {
        [Self::Portable].into_iter().chain(has_instructions().then_some(Self::Instructions))
    }

    /// Returns what the bench calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Instructions => "instructions",
        }
    }

    /// Returns what it is in a line of the log.
    pub fn means(self) -> &'static str {
        match self {
            Self::Portable => "plain code",
            Self::Instructions => "SHA-NI",
        }
    }

    /// The faster one that the CPU has.
    pub fn best() -> Self {
        if has_instructions() { Self::Instructions } else { Self::Portable }
    }
}

impl Compress for Engine {
    fn compress(&mut self, state: &mut [u32; 8], blocks: &[Block]) {
        if *self == Self::Portable {
            return Portable.compress(state, blocks);
        }
        for some in blocks.chunks(BLOCKS_AT_ONCE) {
            // SAFETY: the CPU has the instructions ([`Engine::best`]), and CR4.OSFXSR is set. The state has eight
            // words, the blocks are as many as is reported and at least one; registers that belong to a guest are put
            // back.
            unsafe { sha256_by_instructions(state.as_mut_ptr(), some.as_ptr().cast(), some.len()) };
        }
    }
}

/// SHA, and SSSE3 and SSE4.1, of which the code uses some (AMD APM vol. 3, appendix D).
fn has_instructions() -> bool {
    const SSSE3_AND_SSE41: u32 = 1 << 9 | 1 << 19;
    const SHA: u32 = 1 << 29;
    cpu::cpuid(1, 0).ecx & SSSE3_AND_SSE41 == SSSE3_AND_SSE41
        && cpu::cpuid(0, 0).eax >= 7
        && cpu::cpuid(7, 0).ebx & SHA != 0
}
