// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single steps over instructions that a host may carry out in the CPU's stead (AMD APM vol. 2, section 13.1.4).

use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tiny::interrupts::hook;

use crate::answers::{Wrong, expect};

const DEBUG: u8 = 1;
const SINGLE_STEP: u64 = 1 << 14;

static STEPS: AtomicU32 = AtomicU32::new(0);
/// Bits that DR6 had at each step, and the addresses of the steps added up.
static STATUS: AtomicU64 = AtomicU64::new(0);
static PLACES: AtomicU64 = AtomicU64::new(0);

/// CPUID, OUT, RDMSR and their neighbours: each one ends in a debug exception that reports its cause.
pub fn each_instruction_is_one(_cpus: usize) -> Result<(), Wrong> {
    hook(DEBUG, |rip| {
        STEPS.fetch_add(1, Ordering::Relaxed);
        PLACES.fetch_add(rip, Ordering::Relaxed);
        STATUS.fetch_and(take_status(), Ordering::Relaxed);
    });
    STATUS.store(u64::MAX, Ordering::Relaxed);
    let first: u64;
    // SAFETY: sets the trap flag and clears it; the handler keeps all registers.
    unsafe {
        asm!(
            "mov r9, rbx", // which LLVM keeps to itself
            "lea r8, [rip + 2f]",
            "pushfq",
            "or qword ptr [rsp], 0x100",
            "popfq",
            "nop",
            "2: cpuid",                    // 2 bytes
            "out 0x80, al",                // 2
            "mov ecx, 0x1b",               // 5
            "rdmsr",                       // 2
            "pushfq",                      // 1
            "and qword ptr [rsp], -0x101", // 8
            "popfq",                       // 1
            "mov rbx, r9",
            out("r8") first,
            out("r9") _,
            inout("eax") 0 => _,
            inout("ecx") 0 => _,
            out("edx") _,
            clobber_abi("C"),
        );
    }
    let ends = [0, 2, 4, 9, 11, 12, 20, 21];
    expect("steps", DEBUG.into(), STEPS.load(Ordering::Relaxed).into(), ends.len() as u64)?;
    let places = ends.iter().map(|end| first + end).sum();
    expect("addresses of steps", first, PLACES.load(Ordering::Relaxed), places)?;
    expect("DR6", SINGLE_STEP, STATUS.load(Ordering::Relaxed) & SINGLE_STEP, SINGLE_STEP)
}

/// Reads DR6, and clears it as handlers do.
fn take_status() -> u64 {
    let status;
    // SAFETY: no breakpoint is set.
    unsafe { asm!("mov {0}, dr6", "mov dr6, {1}", out(reg) status, in(reg) 0xffff_0ff0_u64, options(nostack)) };
    status
}
