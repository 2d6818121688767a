// SPDX-License-Identifier: MIT OR Apache-2.0
//! A step over one instruction that holds an NMI back: the IRET of an NMI's handler, or the instruction behind STI or a
//! load of SS.
//!
//! The guest is entered with RFLAGS.TF, so that #DB exits behind the instruction, where the NMI belongs (AMD APM vol.
//! 2, sections
//! 8.5 and 13.1.4, 15.20). The guest never sees the flag:
//!
//! - A step ends with the next exit, whatever that is for. RFLAGS and DR6 are then what they are without the step, so
//!   it is never part of what is handed over.
//! - A fault of the instruction would push the flag. Faults exit during a step, and are put into the guest without it.
//! - An instruction that itself pushes or saves the flag (PUSHF, INT, SYSCALL, …) is not stepped over: see [`over`].
//!
//! A guest that steps by itself gets its #DB, with the causes that DR6 has then.

use iced_x86::{Instruction, Mnemonic, Register};

use super::Cpu;
use super::stepping::Step;
use crate::exit::Exit;
use crate::machine::instruction;
use crate::memory::GuestMemory;
use crate::vcpu::{Exception, Rflags, VcpuState, dr6};

/// Bits of DR6 that name a cause.
const CAUSES: u64 = dr6::BREAKPOINTS | dr6::BD | dr6::BS | dr6::BT;

/// Kind of the instruction at RIP, by the way to step over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// An instruction that leaves the trap flag as it is.
    Usual,
    /// One that loads it.
    LoadsFlags,
    /// One that would show it to the guest.
    Impossible,
}

impl Cpu {
    /// The next entry executes one instruction and exits. Returns false if the instruction cannot be stepped over.
    #[cold]
    pub(super) fn begin_step(&mut self, vcpu: &mut (impl VcpuState + ?Sized), memory: &impl GuestMemory) -> bool {
        let loads_flags = match over(vcpu, memory, self.nmi.is_returning()) {
            Over::Usual => false,
            Over::LoadsFlags => true,
            Over::Impossible => return false,
        };
        let flags = vcpu.rflags();
        let causes = vcpu.dr6() & CAUSES;
        self.step = Some(Step { causes, is_guests: flags.contains(Rflags::TRAP), loads_flags });
        vcpu.set_dr6(vcpu.dr6() & !CAUSES);
        vcpu.set_rflags(flags | Rflags::TRAP);
        vcpu.watch_faults(true);
        true
    }

    /// The entry with the step is over. Returns what the exit is without the step: nothing, if the guest has only made
    /// its step.
    #[cold]
    pub(super) fn end_step(&mut self, exit: Exit, vcpu: &mut (impl VcpuState + ?Sized)) -> Option<Exit> {
        let Some(step) = self.step.take() else { return Some(exit) };
        vcpu.watch_faults(false);
        let found = vcpu.dr6() & CAUSES;
        let is_debug = exit == Exit::Exception(Exception::Debug);
        let is_done = is_debug && found & dr6::BS != 0;
        let is_loaded = is_done && step.loads_flags;
        if !step.is_guests && !is_loaded {
            vcpu.set_rflags(vcpu.rflags() - Rflags::TRAP);
        }
        let shown = if step.is_guests { found } else { found & !dr6::BS };
        vcpu.set_dr6(vcpu.dr6() & !CAUSES | step.causes | shown);
        // An IRET that faults has ended the handler too.
        if is_done || matches!(exit, Exit::Exception(fault) if fault.is_fault()) {
            self.nmi.returned();
        }
        let is_guests_too = step.is_guests || has_breakpoint(shown, vcpu.dr7()) || shown & (dr6::BD | dr6::BT) != 0;
        if is_done && !is_guests_too { None } else { Some(exit) }
    }
}

/// Returns whether one of the breakpoints that were met is enabled (DR7, bits 0 to 7): the others are noted in DR6 and
/// raise nothing.
fn has_breakpoint(met: u64, dr7: u64) -> bool {
    (0..4).any(|number| met >> number & 1 != 0 && dr7 >> (2 * number) & 0b11 != 0)
}

/// Returns what the instruction at RIP is to a step. `is_return`: the exit before was for an IRET there.
fn over(vcpu: &(impl VcpuState + ?Sized), memory: &impl GuestMemory, is_return: bool) -> Over {
    if vcpu.rflags().contains(Rflags::NESTED_TASK) {
        // IRET would save RFLAGS in the task that it leaves.
        return Over::Impossible;
    }
    if is_return {
        return Over::LoadsFlags;
    }
    let Ok(bytes) = instruction::fetch(vcpu, memory) else { return Over::Impossible };
    instruction::decode(vcpu, &bytes).map_or(Over::Impossible, |instruction| over_instruction(&instruction))
}

fn over_instruction(instruction: &Instruction) -> Over {
    use Mnemonic::{
        Int, Int1, Int3, Into, Iret, Iretd, Iretq, Mov, Pop, Popf, Popfd, Popfq, Pushf, Pushfd, Pushfq, Syscall,
        Sysenter, Sysret, Sysretq,
    };
    let is_far = instruction.is_jmp_far()
        || instruction.is_jmp_far_indirect()
        || instruction.is_call_far()
        || instruction.is_call_far_indirect();
    match instruction.mnemonic() {
        Iret | Iretd | Iretq | Popf | Popfd | Popfq => Over::LoadsFlags,
        Pushf | Pushfd | Pushfq | Int | Int1 | Int3 | Into | Syscall | Sysenter | Sysret | Sysretq => Over::Impossible,
        // A load of SS holds the trap back, and debug registers are the step's.
        Mov | Pop if writes_held(instruction.op0_register()) || instruction.op1_register().is_dr() => Over::Impossible,
        // A gate of a task would save RFLAGS.
        _ if is_far => Over::Impossible,
        _ => Over::Usual,
    }
}

fn writes_held(register: Register) -> bool {
    register == Register::SS || register.is_dr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over_bytes(bytes: &[u8]) -> Over {
        let mut decoder = iced_x86::Decoder::with_ip(64, bytes, 0, iced_x86::DecoderOptions::NONE);
        over_instruction(&decoder.decode())
    }

    #[test]
    fn instructions_that_would_show_the_trap_flag_are_not_stepped_over() {
        // PUSHF, INT 80h, INT3, INT1, SYSCALL, SYSRET, MOV SS, MOV DR7, MOV from DR6, far CALL, far JMP.
        let shown: [&[u8]; 11] = [
            &[0x9c],
            &[0xcd, 0x80],
            &[0xcc],
            &[0xf1],
            &[0x0f, 0x05],
            &[0x48, 0x0f, 0x07],
            &[0x8e, 0xd0],
            &[0x0f, 0x23, 0xf8],
            &[0x0f, 0x21, 0xf0],
            &[0xff, 0x1b],
            &[0xff, 0x2b],
        ];
        for bytes in shown {
            assert_eq!(over_bytes(bytes), Over::Impossible, "{bytes:02x?}");
        }
        for bytes in [&[0x90][..], &[0xc3], &[0x8e, 0xd8], &[0xf4], &[0x48, 0x89, 0xc4], &[0xff, 0xd0]] {
            assert_eq!(over_bytes(bytes), Over::Usual, "{bytes:02x?}");
        }
        for bytes in [&[0x48, 0xcf][..], &[0xcf], &[0x9d]] {
            assert_eq!(over_bytes(bytes), Over::LoadsFlags, "{bytes:02x?}");
        }
    }

    #[test]
    fn a_breakpoint_that_is_not_enabled_raises_nothing() {
        assert!(!has_breakpoint(0b0001, 0x400));
        assert!(has_breakpoint(0b0001, 0x402));
        assert!(!has_breakpoint(0b0010, 0x402));
        assert!(has_breakpoint(0b1000, 0x440));
    }
}
