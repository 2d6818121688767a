// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions that this CPU does not have, and bytes that are none.

use core::arch::asm;
use tiny::answers::{Wrong, expect_exception};
use tiny::attempt::{GENERAL_PROTECTION, INVALID_OPCODE, attempt};
use tiny::random::Random;

/// Longest instruction of the architecture.
const LONGEST: usize = 15;

/// Of SVM, of VMX, and those that a guest is not given: VMRUN, VMLOAD, VMSAVE, STGI, CLGI, SKINIT, INVLPGA; VMLAUNCH,
/// VMRESUME, VMXOFF; MONITOR, MWAIT; RSM.
const ABSENT: [[u8; 3]; 13] = [
    [0x0f, 0x01, 0xd8],
    [0x0f, 0x01, 0xda],
    [0x0f, 0x01, 0xdb],
    [0x0f, 0x01, 0xdc],
    [0x0f, 0x01, 0xdd],
    [0x0f, 0x01, 0xde],
    [0x0f, 0x01, 0xdf],
    [0x0f, 0x01, 0xc2],
    [0x0f, 0x01, 0xc3],
    [0x0f, 0x01, 0xc4],
    [0x0f, 0x01, 0xc8],
    [0x0f, 0x01, 0xc9],
    [0x0f, 0xaa, 0x90],
];

/// Bytes that are no instruction, or one too long, and the exception each raises.
const NONE: [(&[u8], u8); 8] = [
    (&[0x0f, 0x0b], INVALID_OPCODE),
    (&[0x0f, 0xff, 0xc0], INVALID_OPCODE),
    (&[0x06], INVALID_OPCODE),
    (&[0xd6], INVALID_OPCODE),
    (&[0xff, 0xff], INVALID_OPCODE),
    (&[0xf0, 0x89, 0xc0], INVALID_OPCODE),
    (&[0x0f, 0x04], INVALID_OPCODE),
    (&[0x66; LONGEST + 5], GENERAL_PROTECTION),
];

/// Every instruction the CPU does not have is an invalid one; an unknown hypercall is that, or an error.
pub fn absent() -> Result<(), Wrong> {
    for bytes in ABSENT {
        expect_exception("instruction", number(&bytes), INVALID_OPCODE, || execute(&bytes))?;
    }
    unknown_hypercall()
}

/// KVM's answer to a hypercall it does not know is −1000 (its ENOSYS); a machine without hypercalls has no such
/// instruction.
fn unknown_hypercall() -> Result<(), Wrong> {
    const NO_SUCH_CALL: u64 = (-1000_i64) as u64;
    let called = attempt(|| {
        let answer: u64;
        // SAFETY: hypercalls return their answer in RAX and change nothing else.
        unsafe { asm!("vmmcall", inlateout("rax") 0xdead_beef_u64 => answer, options(nostack)) };
        answer
    });
    match called {
        Ok(NO_SUCH_CALL) => Ok(()),
        Ok(other) => Err(Wrong::new("hypercall", 0xdead_beef, other)),
        Err(exception) if exception.vector == INVALID_OPCODE => Ok(()),
        Err(exception) => Err(Wrong::new("hypercall", 0xdead_beef, exception.vector.into())),
    }
}

/// Bytes that are no instruction raise an exception.
pub fn garbage() -> Result<(), Wrong> {
    NONE.iter().try_for_each(|&(bytes, vector)| expect_exception("bytes", number(bytes), vector, || execute(bytes)))
}

/// Executes bytes without order until the guest is dead, or for a while. Whatever comes of it is the guest's own
/// affair; the host must not mind.
pub fn noise() -> Result<(), Wrong> {
    let mut random = Random::new(1);
    for _ in 0..100_000 {
        let mut bytes = [0; LONGEST];
        bytes.fill_with(|| random.draw() as u8);
        let _ = attempt(|| execute(&bytes));
    }
    Ok(())
}

/// Executes bytes, and an invalid instruction behind them.
fn execute(bytes: &[u8]) {
    const INVALID: [u8; 2] = [0x0f, 0x0b];
    let mut code = [0x90_u8; 64];
    code[..bytes.len()].copy_from_slice(bytes);
    code[62..].copy_from_slice(&INVALID);
    // RAX is 0, a control block's possible address, and RCX is 0, no extension of MONITOR's: for impossible ones the
    // instructions raise #GP before they exit (in QEMU, and on CPUs), whatever the guest was informed of them.
    // SAFETY: all memory may be executed. Whatever the bytes do happens to a guest that is made to be broken; the
    // callee of an attempt may change any register.
    unsafe {
        asm!("call {}", in(reg) code.as_ptr(), inout("rax") 0_u64 => _, inout("rcx") 0_u64 => _,
        clobber_abi("C"))
    };
}

/// The first bytes as a number, to name them by: `0f 01 d8` is 0xd8010f.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
