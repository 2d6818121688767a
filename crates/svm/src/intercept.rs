// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intercepts: the events that make the CPU leave the guest (appendix B, table B-1, offsets 000h–014h).
#![allow(missing_docs, reason = "the names are the manual's")]

use bitflags::bitflags;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Offset 000h, bit 24: a write of CR8.
pub const CR8_WRITE: u32 = 1 << 24;

/// Offset 00Ch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Misc1(u32);

/// Offset 010h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Misc2(u32);

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

/// Intercepts of every guest, beside [`vm::vcpu::Exceptions::ALWAYS`]. Nothing else is intercepted: control registers,
/// descriptor tables, the time stamp counter (but see [`CLOCK_READS`]) and page invalidation belong to the guest. PAUSE
/// is intercepted where the CPU counts them, IRET while an NMI is handled.
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

/// Intercepts of a guest while its reads of the time stamp counter are watched.
pub const CLOCK_READS: (Misc1, Misc2) = (Misc1::RDTSC, Misc2::RDTSCP);
