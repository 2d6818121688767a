// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fields of 16 bits (section B.1).

fields! {
    /// A field of 16 bits.
    pub enum Field16 {
        Vpid = 0x0000 [EnableVpid],
        PostedInterruptNotificationVector = 0x0002 [ProcessPostedInterrupts],
        EptpIndex = 0x0004 [EptViolationVirtualizationException],
        HlatPrefixSize = 0x0006 [EnableHlat],
        LastPidPointerIndex = 0x0008 [IpiVirtualization],
        GuestEsSelector = 0x0800,
        GuestCsSelector = 0x0802,
        GuestSsSelector = 0x0804,
        GuestDsSelector = 0x0806,
        GuestFsSelector = 0x0808,
        GuestGsSelector = 0x080a,
        GuestLdtrSelector = 0x080c,
        GuestTrSelector = 0x080e,
        GuestInterruptStatus = 0x0810 [VirtualInterruptDelivery],
        GuestPmlIndex = 0x0812 [EnablePml],
        GuestUinv = 0x0814 [LoadUinv ClearUinv],
        HostEsSelector = 0x0c00,
        HostCsSelector = 0x0c02,
        HostSsSelector = 0x0c04,
        HostDsSelector = 0x0c06,
        HostFsSelector = 0x0c08,
        HostGsSelector = 0x0c0a,
        HostTrSelector = 0x0c0c,
    }
}

impl Field16 {
    /// Selectors of the guest, by [`vm::vcpu::SegmentName`].
    pub const GUEST_SELECTORS: [Self; 8] = [
        Self::GuestEsSelector,
        Self::GuestCsSelector,
        Self::GuestSsSelector,
        Self::GuestDsSelector,
        Self::GuestFsSelector,
        Self::GuestGsSelector,
        Self::GuestLdtrSelector,
        Self::GuestTrSelector,
    ];
}
