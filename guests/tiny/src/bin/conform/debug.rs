// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debug exceptions (AMD APM vol. 2, chapter 13; Intel SDM vol. 3, chapter 18).

use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tiny::answers::{Wrong, expect};
use tiny::interrupts;

const DEBUG: u8 = 1;
const DR6_STEP: u64 = 1 << 14;
const DR6_CAUSES: u64 = 0xe00f;
/// Causes cleared, and what always reads as one.
const DR6_RESET: u64 = 0xffff_0ff0;
const DR7_RESET: u64 = 0x400;

static COUNT: AtomicU32 = AtomicU32::new(0);
static CAUSES: AtomicU64 = AtomicU64::new(0);
static AT: AtomicU64 = AtomicU64::new(0);

/// Notes the exception, and lets no breakpoint be met again.
fn note(rip: u64) {
    let causes: u64;
    // SAFETY: no other code uses the debug registers.
    unsafe {
        asm!("mov {causes}, dr6", "mov dr6, {reset}", "mov dr7, {off}", causes = out(reg) causes,
            reset = in(reg) DR6_RESET, off = in(reg) DR7_RESET, options(nomem, nostack, preserves_flags));
    }
    COUNT.fetch_add(1, Ordering::Relaxed);
    CAUSES.fetch_or(causes & DR6_CAUSES, Ordering::Relaxed);
    AT.store(rip, Ordering::Relaxed);
}

fn begin() {
    COUNT.store(0, Ordering::Relaxed);
    CAUSES.store(0, Ordering::Relaxed);
    interrupts::hook(DEBUG, note);
}

fn ended(count: u64, causes: u64) -> Result<(), Wrong> {
    expect("debug exceptions", causes, COUNT.load(Ordering::Relaxed).into(), count)?;
    expect("DR6 after", count, CAUSES.load(Ordering::Relaxed), causes)
}

/// Each instruction behind the one that sets the trap flag is a step, the one that clears it too.
pub fn single_step() -> Result<(), Wrong> {
    begin();
    // SAFETY: the hook comes back.
    unsafe {
        asm!(
            "pushfq",
            "or qword ptr [rsp], 0x100",
            "popfq",
            "nop",
            "nop",
            "pushfq",
            "and qword ptr [rsp], -0x101",
            "popfq"
        );
    }
    ended(5, DR6_STEP)
}

/// An instruction that a hypervisor carries out is a step like any.
pub fn single_step_over_cpuid() -> Result<(), Wrong> {
    begin();
    // SAFETY: the hook comes back; RBX is put back.
    unsafe {
        asm!("mov {rbx}, rbx", "pushfq", "or qword ptr [rsp], 0x100", "popfq", "cpuid", "cpuid", "pushfq",
            "and qword ptr [rsp], -0x101", "popfq", "mov rbx, {rbx}",
            rbx = out(reg) _, inout("eax") 0 => _, inout("ecx") 0 => _, out("edx") _);
    }
    ended(5, DR6_STEP)
}

/// A watchpoint is a trap: the store has been done.
pub fn data_breakpoint() -> Result<(), Wrong> {
    /// Breakpoint 0 on writes of 4 bytes.
    const WATCH: u64 = DR7_RESET | 1 << 0 | 0b1101 << 16;
    begin();
    let mut watched = 0_u32;
    let behind: u64;
    // SAFETY: the hook comes back; the store is to a local.
    unsafe {
        asm!("mov dr0, {at}", "mov dr7, {watch}", "mov dword ptr [{at}], 7", "5: lea {behind}, [rip + 5b]",
            at = in(reg) &raw mut watched, watch = in(reg) WATCH, behind = out(reg) behind);
    }
    expect("watched", 0, watched.into(), 7)?;
    expect("watchpoint behind", behind, AT.load(Ordering::Relaxed), behind)?;
    ended(1, 1)
}

/// A breakpoint on an instruction is a fault: the frame points to it.
pub fn instruction_breakpoint() -> Result<(), Wrong> {
    /// Breakpoint 1 on execution.
    const BREAK: u64 = DR7_RESET | 1 << 2;
    begin();
    let at: u64;
    // SAFETY: the hook comes back, and disables the breakpoint.
    unsafe {
        asm!("lea {at}, [rip + 5f]", "mov dr1, {at}", "mov dr7, {on}", "5: nop", at = out(reg) at, on = in(reg) BREAK);
    }
    expect("breakpoint at", at, AT.load(Ordering::Relaxed), at)?;
    ended(1, 2)
}
