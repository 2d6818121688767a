// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU's vector registers.

/// Effect of a load on the bits of the register beyond the 128 of SSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorWrite {
    /// They stay: an SSE instruction.
    Keep,
    /// They are cleared: an AVX instruction of 128 bits.
    Clear,
    /// Bits 128 to 255 are written: an AVX instruction of 256 bits.
    Whole,
}

/// The vCPU's vector registers, which an exit leaves in the CPU.
pub trait VectorFile {
    /// Bits 0 to 255 of a register, lowest first; bits from 128 up are zero where the vCPU has not enabled AVX.
    fn vector(&self, register: u8) -> [u64; 4];
    /// Writes a register. Where the vCPU has not enabled AVX, it is written as by an SSE instruction.
    fn set_vector(&mut self, register: u8, value: [u64; 4], write: VectorWrite);
}
