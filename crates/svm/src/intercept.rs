// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intercepts: what makes the CPU leave the guest (appendix B, table B-1, offsets 000h–014h).
#![allow(missing_docs, reason = "the names are the manual's")]

use bitflags::bitflags;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Offset 000h, bit 24: a write of CR8.
pub const CR8_WRITE: u32 = 1 << 24;

/// Offset 008h: exceptions, bit N for vector N.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Exceptions(u32);

/// Offset 00Ch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Misc1(u32);

/// Offset 010h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Misc2(u32);

bitflags! {
    impl Exceptions: u32 {
        const DE = 1 << 0;
        const DB = 1 << 1;
        const BR = 1 << 5;
        const UD = 1 << 6;
        const NM = 1 << 7;
        const TS = 1 << 10;
        const NP = 1 << 11;
        const SS = 1 << 12;
        const GP = 1 << 13;
        const PF = 1 << 14;
        const MF = 1 << 16;
        const AC = 1 << 17;
        const MC = 1 << 18;
        const XF = 1 << 19;
    }
}

bitflags! {
    impl Misc1: u32 {
        const INTR = 1 << 0;
        const NMI = 1 << 1;
        const SMI = 1 << 2;
        const INIT = 1 << 3;
        const VINTR = 1 << 4;
        const RDTSC = 1 << 14;
        const RDPMC = 1 << 15;
        const CPUID = 1 << 18;
        const RSM = 1 << 19;
        const IRET = 1 << 20;
        const INVD = 1 << 22;
        const PAUSE = 1 << 23;
        const HLT = 1 << 24;
        const INVLPGA = 1 << 26;
        const IOIO = 1 << 27;
        const MSR = 1 << 28;
        const FERR_FREEZE = 1 << 30;
        const SHUTDOWN = 1 << 31;
    }
}

bitflags! {
    impl Misc2: u32 {
        const VMRUN = 1 << 0;
        const VMMCALL = 1 << 1;
        const VMLOAD = 1 << 2;
        const VMSAVE = 1 << 3;
        const STGI = 1 << 4;
        const CLGI = 1 << 5;
        const SKINIT = 1 << 6;
        const RDTSCP = 1 << 7;
        const WBINVD = 1 << 9;
        const MONITOR = 1 << 10;
        const MWAIT = 1 << 11;
        const MWAIT_ARMED = 1 << 12;
        const XSETBV = 1 << 13;
        const RDPRU = 1 << 14;
    }
}

/// The exceptions that every guest leaves for. Delivery of #DB and #AC can raise the same exception again, without end
/// and without an instruction boundary at which the CPU would take an interrupt (CVE-2015-8104, CVE-2015-5307,
/// XSA-156). With an exit for each, the host gets its CPU back; it puts the exception into the guest again. A
/// machine check is the machine's, not the guest's that it interrupts.
pub const EXCEPTIONS: Exceptions = Exceptions::DB.union(Exceptions::AC).union(Exceptions::MC);

/// Faults that a guest leaves for while one of its instructions is stepped over: their frames would show the trap
/// flag. #AC is among [`EXCEPTIONS`]; #CP, #HV, #VC and #SX belong to features that no guest has.
pub const FAULTS: Exceptions = Exceptions::DE
    .union(Exceptions::BR)
    .union(Exceptions::UD)
    .union(Exceptions::NM)
    .union(Exceptions::TS)
    .union(Exceptions::NP)
    .union(Exceptions::SS)
    .union(Exceptions::GP)
    .union(Exceptions::PF)
    .union(Exceptions::MF)
    .union(Exceptions::XF);

/// What every guest leaves for, beside [`EXCEPTIONS`]. Nothing else is intercepted: control registers, descriptor
/// tables, the time stamp counter (but see [`CLOCK_READS`]) and page invalidation belong to the guest. PAUSE is
/// intercepted where the CPU counts them, IRET while an NMI is handled.
pub const MISC1: Misc1 = Misc1::INTR
    .union(Misc1::NMI)
    .union(Misc1::SMI)
    .union(Misc1::INIT)
    .union(Misc1::RDPMC)
    .union(Misc1::CPUID)
    .union(Misc1::RSM)
    .union(Misc1::INVD)
    .union(Misc1::HLT)
    .union(Misc1::INVLPGA)
    .union(Misc1::IOIO)
    .union(Misc1::MSR)
    .union(Misc1::FERR_FREEZE)
    .union(Misc1::SHUTDOWN);

/// See [`MISC1`].
pub const MISC2: Misc2 = Misc2::all().difference(CLOCK_READS.1);

/// What a guest leaves for when it is to be seen where it reads its time stamp counter.
pub const CLOCK_READS: (Misc1, Misc2) = (Misc1::RDTSC, Misc2::RDTSCP);
