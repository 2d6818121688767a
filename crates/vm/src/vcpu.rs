// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU's architectural state, as the handlers of exits may read and change it.
//!
//! The hypervisor implements [`VcpuState`] over the CPU's control block; tests implement it over plain data
//! (`testing::FakeVcpu`).

use bitflags::bitflags;
use handover::state::{Registers, SegmentRegister};

use crate::addr::AccessSize;
use crate::devices::StateError;

/// General purpose registers, numbered as instructions encode them (AMD APM vol. 3, section 1.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Gpr {
    Rax,
    Rcx,
    Rdx,
    Rbx,
    Rsp,
    Rbp,
    Rsi,
    Rdi,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
}

impl Gpr {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 16] = [
        Self::Rax,
        Self::Rcx,
        Self::Rdx,
        Self::Rbx,
        Self::Rsp,
        Self::Rbp,
        Self::Rsi,
        Self::Rdi,
        Self::R8,
        Self::R9,
        Self::R10,
        Self::R11,
        Self::R12,
        Self::R13,
        Self::R14,
        Self::R15,
    ];
}

/// Segment registers and descriptor tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SegmentName {
    Es,
    Cs,
    Ss,
    Ds,
    Fs,
    Gs,
    Ldtr,
    Tr,
}

/// A segment register with its hidden part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Segment {
    /// The visible selector.
    pub selector: u16,
    /// Attributes: bits 0–7 are descriptor bits 40–47 (type, S, DPL, P), bits 8–11 are descriptor bits 52–55 (AVL, L,
    /// D/B, G): the VMCB's packed form (AMD APM vol. 2, section 15.5.1).
    pub attributes: u16,
    /// Limit in bytes, granularity applied.
    pub limit: u32,
    /// Linear base address.
    pub base: u64,
}

/// A descriptor table register (GDTR, IDTR).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TableRegister {
    /// Linear address of the table.
    pub base: u64,
    /// Its size in bytes less one.
    pub limit: u16,
}

impl From<Segment> for SegmentRegister {
    fn from(Segment { selector, attributes, limit, base }: Segment) -> Self {
        Self { selector: selector.into(), attributes: attributes.into(), limit: limit.into(), base: base.into() }
    }
}

impl From<SegmentRegister> for Segment {
    fn from(SegmentRegister { selector, attributes, limit, base }: SegmentRegister) -> Self {
        Self { selector: selector.get(), attributes: attributes.get(), limit: limit.get(), base: base.get() }
    }
}

impl From<TableRegister> for SegmentRegister {
    fn from(TableRegister { base, limit }: TableRegister) -> Self {
        Segment { limit: limit.into(), base, ..Segment::default() }.into()
    }
}

/// Exceptions that handlers raise in the guest. The error code, where there is one, comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exception {
    /// #DB whose causes DR6 already has.
    Debug,
    /// #DB of a single step over an emulated instruction: DR6.BS is set with it.
    SingleStep,
    /// #DE: a division by zero, or one whose quotient does not fit.
    DivideError,
    /// #UD: the instruction does not exist here.
    InvalidOpcode,
    /// #SS with its error code.
    StackFault(u32),
    /// #GP with its error code.
    GeneralProtection(u32),
    /// #PF with its error code and the address for CR2.
    PageFault {
        /// The error code (AMD APM vol. 2, section 8.4.2).
        code: u32,
        /// The linear address that faulted.
        address: u64,
    },
    /// Another fault that the guest raised by itself, with its error code if it has one.
    Fault {
        /// The vector.
        vector: u8,
        /// The error code.
        code: Option<u32>,
    },
}

impl Exception {
    /// Returns whether it is a fault for certain: the instruction is executed again after it (AMD APM vol. 2, section
    /// 8.2). #DB can be either.
    pub const fn is_fault(self) -> bool {
        !matches!(self, Self::Debug | Self::SingleStep)
    }
}

/// What is put into the guest at its next entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An external interrupt with its vector.
    Interrupt(u8),
    /// A non-maskable interrupt.
    Nmi,
    /// An exception.
    Exception(Exception),
}

bitflags! {
    /// RFLAGS bits that handlers check.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Rflags: u64 {
        /// Trap flag: single step.
        const TRAP = 1 << 8;
        /// Interrupts enabled.
        const INTERRUPT = 1 << 9;
        /// Direction: string instructions count down.
        const DIRECTION = 1 << 10;
        /// Nested task: IRET switches tasks.
        const NESTED_TASK = 1 << 14;
        /// Virtual-8086 mode.
        const VIRTUAL_8086 = 1 << 17;
        /// Alignment checks; with SMAP: supervisor code may access user pages.
        const ALIGNMENT_CHECK = 1 << 18;
        /// Resume flag.
        const RESUME = 1 << 16;
        const _ = !0;
    }
}

/// Control register 0 bits.
pub mod cr0 {
    /// Protected mode enable.
    pub const PE: u64 = 1 << 0;
    /// Extension type: always one.
    pub const ET: u64 = 1 << 4;
    /// Write protect.
    pub const WP: u64 = 1 << 16;
    /// Paging.
    pub const PG: u64 = 1 << 31;
}

/// Control register 4 bits.
pub mod cr4 {
    /// Page size extension.
    pub const PSE: u64 = 1 << 4;
    /// Physical address extension.
    pub const PAE: u64 = 1 << 5;
    /// RDPMC in user mode.
    pub const PCE: u64 = 1 << 8;
    /// Five-level paging.
    pub const LA57: u64 = 1 << 12;
    /// XSAVE enabled by the operating system.
    pub const OSXSAVE: u64 = 1 << 18;
    /// Supervisor mode access prevention.
    pub const SMAP: u64 = 1 << 21;
}

/// Debug status register bits (AMD APM vol. 2, section 13.1.1.3).
pub mod dr6 {
    /// Breakpoints 0 to 3.
    pub const BREAKPOINTS: u64 = 0xf;
    /// A debug register was accessed.
    pub const BD: u64 = 1 << 13;
    /// Single step.
    pub const BS: u64 = 1 << 14;
    /// A task switch.
    pub const BT: u64 = 1 << 15;
}

/// EFER bits.
pub mod efer {
    /// SYSCALL enable.
    pub const SCE: u64 = 1 << 0;
    /// Long mode enable.
    pub const LME: u64 = 1 << 8;
    /// Long mode active.
    pub const LMA: u64 = 1 << 10;
    /// No-execute enable.
    pub const NXE: u64 = 1 << 11;
    /// Secure virtual machine enable: never visible to a guest.
    pub const SVME: u64 = 1 << 12;
    /// Fast FXSAVE/FXRSTOR.
    pub const FFXSR: u64 = 1 << 14;
}

/// One vCPU's architectural state.
pub trait VcpuState {
    /// A general purpose register.
    fn gpr(&self, register: Gpr) -> u64;
    /// Sets a general purpose register, all 64 bits.
    fn set_gpr(&mut self, register: Gpr, value: u64);
    /// The instruction pointer (offset in CS).
    fn rip(&self) -> u64;
    /// Sets the instruction pointer behind an instruction that was carried out; ends an interrupt shadow and RFLAGS.RF.
    fn set_rip(&mut self, rip: u64);
    /// RFLAGS.
    fn rflags(&self) -> Rflags;
    /// Sets RFLAGS.
    fn set_rflags(&mut self, rflags: Rflags);
    /// CR0.
    fn cr0(&self) -> u64;
    /// CR2.
    fn cr2(&self) -> u64;
    /// CR3.
    fn cr3(&self) -> u64;
    /// CR4.
    fn cr4(&self) -> u64;
    /// DR6.
    fn dr6(&self) -> u64;
    /// Sets DR6.
    fn set_dr6(&mut self, value: u64);
    /// DR7.
    fn dr7(&self) -> u64;
    /// EFER as the guest sees it (without SVME).
    fn efer(&self) -> u64;
    /// Sets EFER as the guest sees it.
    fn set_efer(&mut self, value: u64);
    /// The page attribute table register (nested paging keeps it per guest).
    fn pat(&self) -> u64;
    /// Sets the page attribute table register; the value has been checked.
    fn set_pat(&mut self, value: u64);
    /// A segment register.
    fn segment(&self, name: SegmentName) -> Segment;
    /// The global descriptor table's register.
    fn gdtr(&self) -> TableRegister;
    /// The interrupt descriptor table's register.
    fn idtr(&self) -> TableRegister;
    /// Returns what SWAPGS exchanges with the base of GS.
    fn kernel_gs_base(&self) -> u64;
    /// Current privilege level, 0–3.
    fn cpl(&self) -> u8;
    /// Where the exiting instruction ends, where the CPU states this (next-RIP save).
    fn next_rip(&self) -> Option<u64>;
    /// Instruction bytes at RIP as the CPU fetched them (decode assists); empty where it states none.
    fn instruction_bytes(&self) -> &[u8];
    /// Puts an event into the guest at its next entry. #DB clears DR7.GD, as its delivery does. One at a time: the
    /// caller has checked [`Self::event_pending`].
    fn inject(&mut self, event: Event);
    /// Returns whether an event already waits for the next entry.
    fn event_pending(&self) -> bool;
    /// Returns whether it left while an event was being delivered. One that only waits for its delivery does not count.
    fn was_delivering(&self) -> bool;
    /// Returns whether the guest would take an external interrupt at its next entry (IF set, no shadow, nothing
    /// pending).
    fn can_take_interrupt(&self) -> bool;
    /// Returns whether interrupts are held back for one instruction: the guest has just executed STI or loaded SS.
    fn is_in_interrupt_shadow(&self) -> bool;
    /// The guest's task priority (CR8), 0–15.
    fn task_priority(&self) -> u8;
    /// Sets the guest's task priority (CR8), as when it writes its local APIC's register.
    fn set_task_priority(&mut self, priority: u8);
    /// The external interrupt that waits for the next entry, which does not deliver it any more.
    fn withdraw_interrupt(&mut self) -> Option<u8>;
    /// Returns why the CPU has refused to enter the guest, as far as its state reports.
    fn refusal(&self) -> Option<&'static str>;
    /// Drops an exception, software interrupt or NMI that waits for the next entry. Returns whether it was an NMI.
    fn drop_event(&mut self) -> bool;
    /// Asks for (or withdraws) an exit as soon as the guest can take an interrupt. One that waits for the next entry
    /// keeps its place: there is no window beside it.
    fn request_interrupt_window(&mut self, wanted: bool);
    /// Asks for (or withdraws) an exit when the guest writes its task priority (CR8).
    fn watch_task_priority(&mut self, wanted: bool);
    /// Asks for (or withdraws) an exit when the guest is about to execute IRET.
    fn watch_interrupt_return(&mut self, wanted: bool);
    /// Asks for (or withdraws) an exit when the guest raises a fault of whatever kind.
    fn watch_faults(&mut self, wanted: bool);
    /// Asks for (or withdraws) an exit before the guest reads its time stamp counter.
    fn watch_clock_reads(&mut self, wanted: bool);
    /// Asks for (or withdraws) the count of the guest's time, for its own counters; so long as nobody asks it costs
    /// nothing.
    fn count_time(&mut self, wanted: bool);
    /// The same for the host's counters.
    fn count_time_for_host(&mut self, wanted: bool);
    /// Ticks of the time stamp counter that have passed in the guest while its time was counted, for whomever.
    fn guest_ticks(&self) -> u64;
    /// Sets what is added to the time stamp counter as the guest reads it.
    fn set_tsc_offset(&mut self, ticks: u64);
    /// Starts again in `entry`: everything but the page attribute table, XCR0 and the time stamp counter.
    fn reset(&mut self, entry: &EntryState);
    /// Fills the hand-over's registers: all that an entry loads and an exit stores.
    fn save(&self, into: &mut Registers);
    /// Takes all of them over.
    ///
    /// # Errors
    /// [`StateError`] if no CPU can enter a guest with them; then nothing has changed.
    fn restore(&mut self, from: &Registers) -> Result<(), StateError>;
    /// SPEC_CTRL as the guest has it.
    fn spec_ctrl(&self) -> u64;
    /// Sets SPEC_CTRL as the guest sees it; the value has been checked.
    fn set_spec_ctrl(&mut self, value: u64);
    /// XCR0 as the guest has it.
    fn xcr0(&self) -> u64;
    /// Sets XCR0 as the guest's XSETBV asked; the value has been checked.
    fn set_xcr0(&mut self, value: u64);

    /// The low `size` bits of a register.
    fn gpr_sized(&self, register: Gpr, size: AccessSize) -> u64 {
        self.gpr(register) & size.mask()
    }
}

/// Everything a CPU starts with; what loaders produce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryState {
    /// Instruction pointer.
    pub rip: u64,
    /// Stack pointer.
    pub rsp: u64,
    /// RFLAGS.
    pub rflags: u64,
    /// General purpose registers by [`Gpr`] number (RSP's slot is unused).
    pub gprs: [u64; 16],
    /// CR0.
    pub cr0: u64,
    /// CR3.
    pub cr3: u64,
    /// CR4.
    pub cr4: u64,
    /// EFER without SVME.
    pub efer: u64,
    /// Code segment.
    pub cs: Segment,
    /// Data segments ES, SS, DS, FS and GS.
    pub data: Segment,
    /// Task register.
    pub tr: Segment,
    /// Global descriptor table.
    pub gdtr: TableRegister,
    /// Interrupt descriptor table.
    pub idtr: TableRegister,
}
