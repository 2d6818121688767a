// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers that are not there, and values that existing ones do not take.

use tiny::answers::{Wrong, expect_exception};
use tiny::attempt::{GENERAL_PROTECTION, INVALID_OPCODE};
use tiny::cpu;

/// The ends of the ranges that are numbered, unassigned numbers, SVM's VM_CR, IGNNE and VM_HSAVE_PA, VMX's control and
/// capability registers.
const UNKNOWN_MSRS: [u32; 12] = [
    0x0000_1fff,
    0x0000_2000,
    0x2bad_b002,
    0x4000_0200,
    0xbfff_ffff,
    0xc000_1fff,
    0xc000_2000,
    0xc001_1fff,
    0xffff_ffff,
    0xc001_0117,
    0x0000_0480,
    0x0000_048b,
];

const EFER: u32 = 0xc000_0080;
const EFER_SVME: u64 = 1 << 12;
const EFER_RESERVED: u64 = 1 << 40;

/// Reading or writing what is not there is a general protection fault, and so is turning SVM on in a machine without
/// it.
pub fn unknown_msrs() -> Result<(), Wrong> {
    for number in UNKNOWN_MSRS {
        expect_exception("read of MSR", number.into(), GENERAL_PROTECTION, || cpu::read_msr(number))?;
        expect_exception("write of MSR", number.into(), GENERAL_PROTECTION, || cpu::write_msr(number, u64::MAX))?;
    }
    let efer = cpu::read_msr(EFER);
    for junk in [EFER_SVME, EFER_RESERVED] {
        expect_exception("EFER with", junk, GENERAL_PROTECTION, || cpu::write_msr(EFER, efer | junk))?;
    }
    Ok(())
}

/// Reserved bits of CR4. Not among those that come back: QEMU's emulated CPU (seen with 7.2 and 10.0) stays at
/// such an instruction for ever.
pub fn cr4_junk() -> Result<(), Wrong> {
    [1 << 31, 1 << 63]
        .into_iter()
        .try_for_each(|bit| expect_exception("CR4 with", bit, GENERAL_PROTECTION, || cpu::set_cr4(cpu::cr4() | bit)))
}

/// XCR0 must have the x87 bit, and only bits that CPUID lists. Without XSAVE there is no such register.
pub fn xcr0_junk() -> Result<(), Wrong> {
    let has_xsave = cpu::cpuid(1)[2] & 1 << 26 != 0;
    if !has_xsave {
        return expect_exception("XSETBV of", 1, INVALID_OPCODE, || cpu::set_xcr(0, 1));
    }
    cpu::set_cr4(cpu::cr4() | cpu::CR4_OSXSAVE);
    for (register, junk) in [(0, 0), (0, 2), (0, 1 | 1 << 62), (7, 1)] {
        expect_exception("XSETBV of", junk, GENERAL_PROTECTION, || cpu::set_xcr(register, junk))?;
    }
    Ok(())
}
