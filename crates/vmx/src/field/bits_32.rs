// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fields of 32 bits (section B.3).

fields! {
    /// A field of 32 bits.
    pub enum Field32 {
        PinControls = 0x4000,
        PrimaryControls = 0x4002,
        ExceptionBitmap = 0x4004,
        PageFaultErrorCodeMask = 0x4006,
        PageFaultErrorCodeMatch = 0x4008,
        Cr3TargetCount = 0x400a,
        ExitControls = 0x400c,
        ExitMsrStoreCount = 0x400e,
        ExitMsrLoadCount = 0x4010,
        EntryControls = 0x4012,
        EntryMsrLoadCount = 0x4014,
        EntryInterruptionInformation = 0x4016,
        EntryExceptionErrorCode = 0x4018,
        EntryInstructionLength = 0x401a,
        TprThreshold = 0x401c [UseTprShadow],
        SecondaryControls = 0x401e [ActivateSecondaryControls],
        PleGap = 0x4020 [PauseLoopExiting],
        PleWindow = 0x4022 [PauseLoopExiting],
        InstructionTimeoutControl = 0x4024 [InstructionTimeout],
        VmInstructionError = 0x4400,
        ExitReason = 0x4402,
        ExitInterruptionInformation = 0x4404,
        ExitInterruptionErrorCode = 0x4406,
        IdtVectoringInformation = 0x4408,
        IdtVectoringErrorCode = 0x440a,
        ExitInstructionLength = 0x440c,
        ExitInstructionInformation = 0x440e,
        GuestEsLimit = 0x4800,
        GuestCsLimit = 0x4802,
        GuestSsLimit = 0x4804,
        GuestDsLimit = 0x4806,
        GuestFsLimit = 0x4808,
        GuestGsLimit = 0x480a,
        GuestLdtrLimit = 0x480c,
        GuestTrLimit = 0x480e,
        GuestGdtrLimit = 0x4810,
        GuestIdtrLimit = 0x4812,
        GuestEsAccessRights = 0x4814,
        GuestCsAccessRights = 0x4816,
        GuestSsAccessRights = 0x4818,
        GuestDsAccessRights = 0x481a,
        GuestFsAccessRights = 0x481c,
        GuestGsAccessRights = 0x481e,
        GuestLdtrAccessRights = 0x4820,
        GuestTrAccessRights = 0x4822,
        GuestInterruptibilityState = 0x4824,
        GuestActivityState = 0x4826,
        GuestSmbase = 0x4828,
        GuestSysenterCs = 0x482a,
        GuestPreemptionTimerValue = 0x482e [ActivateVmxPreemptionTimer],
        HostSysenterCs = 0x4c00,
    }
}

impl Field32 {
    /// Limits of the guest's segments, by [`vm::vcpu::SegmentName`].
    pub const GUEST_LIMITS: [Self; 8] = [
        Self::GuestEsLimit,
        Self::GuestCsLimit,
        Self::GuestSsLimit,
        Self::GuestDsLimit,
        Self::GuestFsLimit,
        Self::GuestGsLimit,
        Self::GuestLdtrLimit,
        Self::GuestTrLimit,
    ];

    /// Access rights of the guest's segments, by [`vm::vcpu::SegmentName`].
    pub const GUEST_ACCESS_RIGHTS: [Self; 8] = [
        Self::GuestEsAccessRights,
        Self::GuestCsAccessRights,
        Self::GuestSsAccessRights,
        Self::GuestDsAccessRights,
        Self::GuestFsAccessRights,
        Self::GuestGsAccessRights,
        Self::GuestLdtrAccessRights,
        Self::GuestTrAccessRights,
    ];
}
