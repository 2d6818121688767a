// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU's registers, as no vendor's control block has them: what is intercepted, tagged or cached is
//! each image's own choice and not among them.

use zerocopy::little_endian::{U16, U32, U64};

use crate::macros::{flags, plain};

plain! {
    /// A segment or table register with its hidden part.
    pub struct SegmentRegister since 2 {
        /// The visible selector.
        pub selector: U16 as "register",
        /// Descriptor bits 40–47 and 52–55, packed.
        pub attributes: U16 as "register",
        /// The limit, granularity applied.
        pub limit: U32 as "bytes",
        /// The base.
        pub base: U64 as "linear address",
    }

    /// Registers that the CPU exchanges at an entry, and the state of its next one.
    pub struct Registers since 2 {
        /// RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15.
        pub gprs: [U64; 16] as "register",
        /// Instruction pointer.
        pub rip: U64 as "register",
        /// Flags.
        pub rflags: U64 as "register",
        /// CR0.
        pub cr0: U64 as "register",
        /// CR2.
        pub cr2: U64 as "register",
        /// CR3.
        pub cr3: U64 as "register",
        /// CR4.
        pub cr4: U64 as "register",
        /// XCR0.
        pub xcr0: U64 as "register",
        /// DR6.
        pub dr6: U64 as "register",
        /// DR7.
        pub dr7: U64 as "register",
        /// EFER as the guest sees it.
        pub efer: U64 as "register",
        /// Page attribute table.
        pub pat: U64 as "register",
        /// DebugCtl.
        pub debug_control: U64 as "register",
        /// STAR.
        pub star: U64 as "register",
        /// LSTAR.
        pub lstar: U64 as "register",
        /// CSTAR.
        pub cstar: U64 as "register",
        /// SFMASK.
        pub sfmask: U64 as "register",
        /// KernelGSbase.
        pub kernel_gs_base: U64 as "register",
        /// SYSENTER_CS.
        pub sysenter_cs: U64 as "register",
        /// SYSENTER_ESP.
        pub sysenter_esp: U64 as "register",
        /// SYSENTER_EIP.
        pub sysenter_eip: U64 as "register",
        /// ES, CS, SS, DS, FS, GS, LDTR, TR.
        pub segments: [SegmentRegister; 8] as "register",
        /// Global descriptor table.
        pub gdtr: SegmentRegister as "register",
        /// Interrupt descriptor table.
        pub idtr: SegmentRegister as "register",
        /// Return address of a software interrupt that waits for its delivery.
        pub event_next_rip: U64 as "register",
        /// The event that waits for the next entry: its error code.
        pub event_code: U32 as "register",
        /// Its vector.
        pub event_vector: u8 as "vector",
        /// Its kind: 0 interrupt, 2 NMI, 3 exception, 4 software interrupt.
        pub event_kind: u8 as "number",
        /// Of [`event_flag`]; 0: no event waits.
        pub event_flags: u8 as "flags",
        /// CR8, 0–15.
        pub task_priority: u8 as "register",
        /// Current privilege level.
        pub cpl: u8 as "number",
        /// 1 if interrupts are held back for one instruction (after STI or MOV SS).
        pub interrupt_shadow: u8 as "flag",
        /// Zero.
        pub zero: [u8; 6] as "zero",
    }
}

flags! {
    /// Bits of [`Registers::event_flags`].
    pub mod event_flag: u8, since 2 {
        /// An event waits.
        IS_VALID = 0,
        /// It has an error code.
        HAS_CODE = 1,
    }
}
