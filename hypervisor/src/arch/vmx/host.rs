// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host state that exits load: the calling CPU's registers as they are (section 25.5).

use core::arch::asm;

use vmx::entry::HostFields;
use x86_64::instructions::tables::{sgdt, sidt};

use super::switch;
use crate::arch::cpu;

const MSR_EFER: u32 = 0xc000_0080;
const MSR_FS_BASE: u32 = 0xc000_0100;
const MSR_GS_BASE: u32 = 0xc000_0101;
const MSR_PAT: u32 = 0x277;

/// The calling CPU's registers. The stack pointer is the world switch's; SYSENTER is for no one.
pub fn fields() -> HostFields {
    let (cr0, cr3, cr4, [cs, ss, tr]) = control_registers_and_selectors();
    // SAFETY: every CPU with VMX has the register; reading it has no effect.
    let msr = |number| unsafe { cpu::read_msr(number) };
    HostFields {
        cr0,
        cr3,
        cr4,
        cs,
        ss,
        ds: ss,
        es: ss,
        tr,
        rip: switch::exit_address(),
        fs_base: msr(MSR_FS_BASE),
        gs_base: msr(MSR_GS_BASE),
        tr_base: task_state_base(tr),
        gdtr_base: sgdt().base.as_u64(),
        idtr_base: sidt().base.as_u64(),
        pat: msr(MSR_PAT),
        efer: msr(MSR_EFER),
        ..HostFields::default()
    }
}

fn control_registers_and_selectors() -> (u64, u64, u64, [u16; 3]) {
    let (cr0, cr3): (u64, u64);
    let (cs, ss, tr): (u64, u64, u64);
    // SAFETY: reading them has no effect.
    unsafe {
        asm!("mov {}, cr0", "mov {}, cr3", out(reg) cr0, out(reg) cr3, options(nomem, nostack, preserves_flags));
        asm!("mov {:r}, cs", "mov {:r}, ss", "str {:r}", out(reg) cs, out(reg) ss, out(reg) tr,
            options(nomem, nostack, preserves_flags));
    }
    (cr0, cr3, cpu::read_cr4(), [cs, ss, tr].map(|selector| selector as u16))
}

/// The base in the task state segment's descriptor (section 7.2.3).
fn task_state_base(selector: u16) -> u64 {
    let at = (sgdt().base.as_u64() + u64::from(selector & !7)) as *const u64;
    // SAFETY: the selector in TR is of a descriptor of 16 bytes in the GDT of this CPU, which lives for ever.
    let (low, high) = unsafe { (at.read_volatile(), at.add(1).read_volatile()) };
    low >> 16 & 0xff_ffff | (low >> 56) << 24 | high << 32
}
