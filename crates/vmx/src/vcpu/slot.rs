// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU's copies, in memory of its own, of its VMCS and of registers that stay in the CPU.

use vm::vcpu::SegmentName;

use super::loaded::{Live, Loaded};
use crate::control::Control;
use crate::field::{Field, Field16, Field32, Field64, FieldNatural};

macro_rules! slots {
    ($($slot:ident: $place:ident $name:ident,)*) => {
        /// A field of the VMCS, or a register that entries and exits leave alone.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Slot {
            $($slot,)*
        }

        /// A slot is a field of whatever width: the instructions that access them are the same.
        impl Field for Slot {
            const ALL: &'static [Self] = &[$(Self::$slot,)*];

            fn encoding(self) -> u32 {
                match self {
                    $(Self::$slot => slots!(encoding $place $name),)*
                }
            }

            fn controls(self) -> &'static [Control] {
                match self {
                    $(Self::$slot => slots!(controls $place $name),)*
                }
            }
        }
    };
    (encoding Live $name:ident) => { Live::$name as u32 };
    (encoding $field:ident $name:ident) => { $field::$name as u32 };
    (controls Live $name:ident) => { &[] };
    (controls $field:ident $name:ident) => { $field::$name.controls() };
}

slots! {
    // Software's: no exit changes them.
    PrimaryControls: Field32 PrimaryControls,
    ExceptionBitmap: Field32 ExceptionBitmap,
    EntryControls: Field32 EntryControls,
    TscOffset: Field64 TscOffset,
    Cr0ReadShadow: FieldNatural Cr0ReadShadow,
    Cr4ReadShadow: FieldNatural Cr4ReadShadow,
    // The guest's.
    Rip: FieldNatural GuestRip,
    Rsp: FieldNatural GuestRsp,
    Rflags: FieldNatural GuestRflags,
    Cr0: FieldNatural GuestCr0,
    Cr3: FieldNatural GuestCr3,
    Cr4: FieldNatural GuestCr4,
    Dr7: FieldNatural GuestDr7,
    Efer: Field64 GuestEfer,
    Pat: Field64 GuestPat,
    DebugControl: Field64 GuestDebugctl,
    SysenterCs: Field32 GuestSysenterCs,
    SysenterEsp: FieldNatural GuestSysenterEsp,
    SysenterEip: FieldNatural GuestSysenterEip,
    GdtrBase: FieldNatural GuestGdtrBase,
    GdtrLimit: Field32 GuestGdtrLimit,
    IdtrBase: FieldNatural GuestIdtrBase,
    IdtrLimit: Field32 GuestIdtrLimit,
    Interruptibility: Field32 GuestInterruptibilityState,
    PendingDebug: FieldNatural GuestPendingDebugExceptions,
    EsSelector: Field16 GuestEsSelector,
    CsSelector: Field16 GuestCsSelector,
    SsSelector: Field16 GuestSsSelector,
    DsSelector: Field16 GuestDsSelector,
    FsSelector: Field16 GuestFsSelector,
    GsSelector: Field16 GuestGsSelector,
    LdtrSelector: Field16 GuestLdtrSelector,
    TrSelector: Field16 GuestTrSelector,
    EsRights: Field32 GuestEsAccessRights,
    CsRights: Field32 GuestCsAccessRights,
    SsRights: Field32 GuestSsAccessRights,
    DsRights: Field32 GuestDsAccessRights,
    FsRights: Field32 GuestFsAccessRights,
    GsRights: Field32 GuestGsAccessRights,
    LdtrRights: Field32 GuestLdtrAccessRights,
    TrRights: Field32 GuestTrAccessRights,
    EsLimit: Field32 GuestEsLimit,
    CsLimit: Field32 GuestCsLimit,
    SsLimit: Field32 GuestSsLimit,
    DsLimit: Field32 GuestDsLimit,
    FsLimit: Field32 GuestFsLimit,
    GsLimit: Field32 GuestGsLimit,
    LdtrLimit: Field32 GuestLdtrLimit,
    TrLimit: Field32 GuestTrLimit,
    EsBase: FieldNatural GuestEsBase,
    CsBase: FieldNatural GuestCsBase,
    SsBase: FieldNatural GuestSsBase,
    DsBase: FieldNatural GuestDsBase,
    FsBase: FieldNatural GuestFsBase,
    GsBase: FieldNatural GuestGsBase,
    LdtrBase: FieldNatural GuestLdtrBase,
    TrBase: FieldNatural GuestTrBase,
    // The guest's, in the CPU.
    Cr2: Live Cr2,
    Dr6: Live Dr6,
    Star: Live Star,
    Lstar: Live Lstar,
    Cstar: Live Cstar,
    Sfmask: Live Sfmask,
    KernelGsBase: Live KernelGsBase,
}

/// The first slot of each part of segments, which [`SegmentName`] counts on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Selector = Slot::EsSelector as isize,
    Rights = Slot::EsRights as isize,
    Limit = Slot::EsLimit as isize,
    Base = Slot::EsBase as isize,
}

impl Slot {
    /// The number of them.
    pub(super) const COUNT: usize = <Self as Field>::ALL.len();

    /// Reads it from the loaded VMCS, or from the CPU.
    pub(super) fn read(self, cpu: &impl Loaded) -> u64 {
        match self.live() {
            Some(register) => cpu.live(register),
            None => cpu.vmread(self),
        }
    }

    /// Writes it there.
    pub(super) fn write(self, cpu: &mut impl Loaded, value: u64) {
        match self.live() {
            Some(register) => cpu.set_live(register, value),
            None => cpu.vmwrite(self, value),
        }
    }

    /// Slots that belong to the host: what is in them stays.
    pub(super) const SOFTWARES: u64 = (1 << Slot::Rip as u32) - 1;

    /// Slots in the CPU: those of the vCPU that is loaded.
    pub(super) const LIVE: u64 = u64::MAX << Slot::Cr2 as u32;

    /// A part of a segment.
    pub(super) fn of(name: SegmentName, part: Part) -> Self {
        Self::ALL[part as usize + name as usize]
    }

    /// The register in the CPU that it is, if it is none of the VMCS's.
    fn live(self) -> Option<Live> {
        Live::ALL.get((self as usize).checked_sub(Self::Cr2 as usize)?).copied()
    }

    /// Its bit in a set of slots.
    pub(super) const fn bit(self) -> u64 {
        1 << self as u32
    }
}

const _: () = assert!(Slot::COUNT == u64::BITS as usize, "a set of slots is a word, all of whose bits are slots");
const _: () = assert!(SegmentName::Tr as usize == 7, "the segments are in this order");
