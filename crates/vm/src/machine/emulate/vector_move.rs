// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulated moves of vector registers.

use iced_x86::Mnemonic;

use super::vector_file::VectorWrite;
use crate::addr::AccessSize;

/// A move of a vector register, or of a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorMove {
    pub(super) part: Part,
    pub(super) write: VectorWrite,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it, and whether memory must be aligned.
    Whole { is_aligned: bool },
    /// The lowest 32 or 64 bits; a load clears the others.
    Low,
    /// Bits 0 to 63; a load leaves the others.
    LowHalf,
    /// Bits 64 to 127; a load leaves the others.
    HighHalf,
}

impl VectorMove {
    /// The move that an SSE instruction is, if it is one.
    pub fn of(mnemonic: Mnemonic) -> Option<Self> {
        use Mnemonic::{
            Lddqu, Movapd, Movaps, Movd, Movdqa, Movdqu, Movhpd, Movhps, Movlpd, Movlps, Movntdq, Movntdqa, Movntpd,
            Movntps, Movq, Movsd, Movss, Movupd, Movups,
        };
        let part = match mnemonic {
            Movaps | Movapd | Movdqa | Movntps | Movntpd | Movntdq | Movntdqa => Part::Whole { is_aligned: true },
            Movups | Movupd | Movdqu | Lddqu => Part::Whole { is_aligned: false },
            Movd | Movq | Movss | Movsd => Part::Low,
            Movlps | Movlpd => Part::LowHalf,
            Movhps | Movhpd => Part::HighHalf,
            _ => return None,
        };
        Some(Self { part, write: VectorWrite::Keep })
    }

    /// Bytes in memory.
    pub(super) fn bytes(self, size: AccessSize) -> usize {
        match (self.part, self.write) {
            (Part::Whole { .. }, VectorWrite::Whole) => 32,
            (Part::Whole { .. }, _) => 16,
            _ => size.bytes(),
        }
    }
}
