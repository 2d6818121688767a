// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end of a guest's run: an event that it interrupted is delivered again, and its cause is one that the guest's
//! machine answers, or is answered here.

use vm::exit::Exit;
use vm::vcpu::{Event, Exception, VcpuState};

use super::Vcpu;
use super::bits::BLOCKED_NMI;
use super::left::{Left, Way};
use super::loaded::Loaded;
use super::slot::Slot;
use crate::event::{self, Injection, kind};
use crate::exit::{self, Cause, ControlRegisterAccess};
use crate::field::Field32;
use crate::reason;

impl<C: Loaded> Vcpu<C> {
    /// Returns what the last run of the guest ended with. Once after each entry.
    #[inline]
    pub fn after_exit(&mut self, way: Way) -> Left {
        self.cache.invalidate();
        self.instruction_bytes = None;
        self.was_delivering = false;
        if way == Way::Failed {
            return self.fail();
        }
        self.injection = None;
        let code = self.cpu.read_32(Field32::ExitReason);
        if code & reason::ENTRY_FAILED == 0 {
            self.recover_interrupted(code as u16);
        } else {
            self.clear_injection();
        }
        self.answer(exit::decode(&self.cpu), code as u16)
    }

    #[cold]
    fn fail(&mut self) -> Left {
        self.entry_error = Some(self.cpu.read_32(Field32::VmInstructionError));
        Left::For(Exit::EntryRefused)
    }

    /// An event whose delivery the exit interrupted is delivered again; an IRET that had ended the blocking of NMIs is
    /// executed again, and ends it again.
    #[inline]
    fn recover_interrupted(&mut self, number: u16) {
        if is_for_instruction(number) {
            self.instruction_bytes = Some(self.cpu.read_32(Field32::ExitInstructionLength));
        }
        if let Some(interrupted) = Injection::interrupted(&self.cpu) {
            self.redeliver(interrupted);
        } else if matches!(number, reason::EXCEPTION_OR_NMI | reason::EPT_VIOLATION)
            && event::has_unblocked_nmi(&self.cpu)
        {
            self.change(Slot::Interruptibility, self.slot(Slot::Interruptibility) | BLOCKED_NMI);
        }
    }

    #[cold]
    fn redeliver(&mut self, interrupted: Injection) {
        self.was_delivering = true;
        if interrupted.interruption.kind() == kind::NMI {
            // Its delivery blocks them again.
            self.change(Slot::Interruptibility, self.slot(Slot::Interruptibility) & !BLOCKED_NMI);
        }
        self.injection = Some(interrupted);
    }

    #[inline]
    fn answer(&mut self, cause: Cause, number: u16) -> Left {
        match cause {
            Cause::Machine(exit) => Left::For(exit),
            other => self.answer_own(other, number),
        }
    }

    #[cold]
    fn answer_own(&mut self, cause: Cause, number: u16) -> Left {
        match cause {
            Cause::Debug { causes } => {
                self.change(Slot::Dr6, event::dr6(self.slot(Slot::Dr6), causes));
                Left::For(Exit::Exception(Exception::Debug))
            }
            Cause::Nmi => Left::ForNmi,
            // No CPU waits for it: a CPU in VMX operation takes none but in a guest.
            Cause::Init => Left::For(Exit::HostInterrupt),
            Cause::NmiWindow => Left::For(Exit::NmiWindow),
            Cause::TaskSwitch(_) => Left::For(Exit::TaskSwitch),
            Cause::EntryFailed(failure) => Left::For(failure.into()),
            Cause::ControlRegister(ControlRegisterAccess::Write { register, source }) => {
                self.write_control_register(register, self.gpr(source));
                Left::GoesOn
            }
            _ => Left::For(Exit::Unknown { code: number.into() }),
        }
    }

    /// The guest changes a bit of CR0 or CR4 that it only sees in the read shadow. The shadow follows, and the guest
    /// executes the instruction again: now nothing is left that would exit, and the CPU carries the rest out, from the
    /// change of mode to the load of PDPTEs. Rejected: to emulate all that here. An instruction that then faults has
    /// changed NE or MCE as the guest sees it, and nothing else.
    fn write_control_register(&mut self, register: u8, value: u64) {
        let settings = self.settings;
        match register {
            0 => self.follow(Slot::Cr0ReadShadow, settings.owned_cr0(), value),
            _ if value & settings.hidden_cr4() != 0 => self.inject(Event::Exception(Exception::GeneralProtection(0))),
            _ => self.follow(Slot::Cr4ReadShadow, settings.owned_cr4(), value),
        }
    }

    fn follow(&mut self, shadow: Slot, owned: u64, value: u64) {
        self.change(shadow, self.slot(shadow) & !owned | value & owned);
    }
}

/// Returns whether the VMCS has the length of the instruction that such an exit is for, which the guest has not
/// executed (section 28.2.5).
fn is_for_instruction(number: u16) -> bool {
    matches!(
        number,
        reason::CPUID
            | reason::HLT
            | reason::INVD
            | reason::RDPMC
            | reason::RDTSC
            | reason::RDTSCP
            | reason::VMCALL
            | reason::CONTROL_REGISTER
            | reason::RDMSR
            | reason::WRMSR
            | reason::PAUSE
            | reason::WBINVD
            | reason::XSETBV
    )
}
