// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of a machine's core file (vmcore).

use serde::{Deserialize, Serialize};

/// The most bytes of memory in one answer.
pub const MAX_MEMORY_BYTES: usize = 3840;

/// Memory without a hole in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRange {
    /// Guest-physical address of its first byte.
    pub gpa: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A CPU's registers where it stands still.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct VcpuRegisters {
    /// In the order of instructions' register numbers: RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15.
    pub gprs: [u64; 16],
    pub rip: u64,
    pub rflags: u64,
    pub cr0: u64,
    pub cr2: u64,
    pub cr3: u64,
    pub cr4: u64,
    pub efer: u64,
    /// ES, CS, SS, DS, FS, GS, LDTR, TR.
    pub segments: [SegmentRegister; 8],
    pub gdtr: DescriptorTable,
    pub idtr: DescriptorTable,
    pub kernel_gs_base: u64,
}

/// A segment register with its hidden part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentRegister {
    /// The visible part.
    pub selector: u16,
    /// Bits 0–7: type, S, DPL, P; bits 8–11: AVL, L, D/B, G.
    pub attributes: u16,
    /// In bytes, granularity applied.
    pub limit: u32,
    /// Linear.
    pub base: u64,
}

/// GDTR or IDTR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescriptorTable {
    /// Linear.
    pub base: u64,
    /// Bytes less one.
    pub limit: u16,
}
