// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU's architectural state, as the handlers of exits may read and change it.
//!
//! The hypervisor implements [`VcpuState`] over the CPU's control block; tests implement it over plain data
//! (`testing::FakeVcpu`).

mod bits;
mod exception;
mod gpr;
mod refusal;
mod residence;
mod segment;

use handover::state::{ExtensionKind, Registers};

use crate::addr::AccessSize;
use crate::devices::StateError;

pub use bits::{Rflags, cr0, cr4, dr6, efer};
pub use exception::{Event, Exception, Exceptions, vector};
pub use gpr::Gpr;
pub use refusal::Refusal;
pub use residence::{Misplaced, Residence};
pub use segment::{AccessRights, Segment, SegmentName, TableRegister};

/// One vCPU's architectural state.
///
/// Where several types have it, code that is seldom executed takes `dyn VcpuState` ([`Self::erased`]): it exists once
/// for all of them, and costs the others' hot paths nothing.
pub trait VcpuState: 'static {
    /// The same by calls through a table.
    fn erased(&mut self) -> &mut dyn VcpuState;
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
    /// Returns the value that SWAPGS exchanges with the base of GS.
    fn kernel_gs_base(&self) -> u64;
    /// Current privilege level, 0–3.
    fn cpl(&self) -> u8;
    /// Returns the end of the exiting instruction, where the CPU provides it (next-RIP save).
    fn next_rip(&self) -> Option<u64>;
    /// Instruction bytes at RIP as the CPU fetched them (decode assists); empty where it gives none.
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
    /// Returns why the CPU has refused to enter the guest, as far as its state shows it.
    fn refusal(&self) -> Option<Refusal>;
    /// Drops an exception, software interrupt or NMI that waits for the next entry. Returns whether it was an NMI.
    fn drop_event(&mut self) -> bool;
    /// Asks for (or withdraws) an exit as soon as the guest can take an interrupt. One that waits for the next entry
    /// keeps its place: there is no window beside it.
    fn request_interrupt_window(&mut self, wanted: bool);
    /// Asks for (or withdraws) an exit when the guest writes its task priority (CR8).
    fn watch_task_priority(&mut self, wanted: bool);
    /// Asks for (or withdraws) an exit when the handler of an NMI ends, which runs now or is about to be entered: when
    /// the guest is about to execute its IRET, or where the CPU reports the end of the handler, behind it.
    fn watch_interrupt_return(&mut self, wanted: bool);
    /// Asks for (or withdraws) an exit when the guest raises a fault of whatever kind.
    fn watch_faults(&mut self, wanted: bool);
    /// Asks for (or withdraws) an exit before the guest reads its time stamp counter.
    fn watch_clock_reads(&mut self, wanted: bool);
    /// Asks for (or withdraws) the count of the guest's time, for its own counters; it costs nothing while no user
    /// asks.
    fn count_time(&mut self, wanted: bool);
    /// The same for the host's counters.
    fn count_time_for_host(&mut self, wanted: bool);
    /// Ticks of the time stamp counter that have passed in the guest while its time was counted, for whichever user.
    fn guest_ticks(&self) -> u64;
    /// Sets the offset that is added to the time stamp counter as the guest reads it.
    fn set_tsc_offset(&mut self, ticks: u64);
    /// Starts again in `entry`: everything but the page attribute table, XCR0 and the time stamp counter.
    fn reset(&mut self, entry: &EntryState);
    /// The virtualization extension that runs it.
    fn extension(&self) -> ExtensionKind;
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

/// The state that a CPU starts with, as loaders produce it.
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
