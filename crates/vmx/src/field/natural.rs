// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fields of natural width: 64 bits on a 64-bit CPU (section B.4).

fields! {
    /// A field of natural width.
    pub enum FieldNatural {
        Cr0GuestHostMask = 0x6000,
        Cr4GuestHostMask = 0x6002,
        Cr0ReadShadow = 0x6004,
        Cr4ReadShadow = 0x6006,
        Cr3TargetValue0 = 0x6008,
        Cr3TargetValue1 = 0x600a,
        Cr3TargetValue2 = 0x600c,
        Cr3TargetValue3 = 0x600e,
        ExitQualification = 0x6400,
        IoRcx = 0x6402,
        IoRsi = 0x6404,
        IoRdi = 0x6406,
        IoRip = 0x6408,
        GuestLinearAddress = 0x640a,
        GuestCr0 = 0x6800,
        GuestCr3 = 0x6802,
        GuestCr4 = 0x6804,
        GuestEsBase = 0x6806,
        GuestCsBase = 0x6808,
        GuestSsBase = 0x680a,
        GuestDsBase = 0x680c,
        GuestFsBase = 0x680e,
        GuestGsBase = 0x6810,
        GuestLdtrBase = 0x6812,
        GuestTrBase = 0x6814,
        GuestGdtrBase = 0x6816,
        GuestIdtrBase = 0x6818,
        GuestDr7 = 0x681a,
        GuestRsp = 0x681c,
        GuestRip = 0x681e,
        GuestRflags = 0x6820,
        GuestPendingDebugExceptions = 0x6822,
        GuestSysenterEsp = 0x6824,
        GuestSysenterEip = 0x6826,
        GuestSCet = 0x6828 [EntryLoadCetState],
        GuestSsp = 0x682a [EntryLoadCetState],
        GuestInterruptSspTable = 0x682c [EntryLoadCetState],
        HostCr0 = 0x6c00,
        HostCr3 = 0x6c02,
        HostCr4 = 0x6c04,
        HostFsBase = 0x6c06,
        HostGsBase = 0x6c08,
        HostTrBase = 0x6c0a,
        HostGdtrBase = 0x6c0c,
        HostIdtrBase = 0x6c0e,
        HostSysenterEsp = 0x6c10,
        HostSysenterEip = 0x6c12,
        HostRsp = 0x6c14,
        HostRip = 0x6c16,
        HostSCet = 0x6c18 [ExitLoadCetState],
        HostSsp = 0x6c1a [ExitLoadCetState],
        HostInterruptSspTable = 0x6c1c [ExitLoadCetState],
    }
}

impl FieldNatural {
    /// Bases of the guest's segments, by [`vm::vcpu::SegmentName`].
    pub const GUEST_BASES: [Self; 8] = [
        Self::GuestEsBase,
        Self::GuestCsBase,
        Self::GuestSsBase,
        Self::GuestDsBase,
        Self::GuestFsBase,
        Self::GuestGsBase,
        Self::GuestLdtrBase,
        Self::GuestTrBase,
    ];
}
