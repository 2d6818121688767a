// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's state, without its segments.

area! {
    /// The guest's state that entries check, without its segments.
    pub struct GuestFields {
        cr0: FieldNatural GuestCr0,
        cr3: FieldNatural GuestCr3,
        cr4: FieldNatural GuestCr4,
        dr7: FieldNatural GuestDr7,
        rip: FieldNatural GuestRip,
        rsp: FieldNatural GuestRsp,
        rflags: FieldNatural GuestRflags,
        gdtr_base: FieldNatural GuestGdtrBase,
        gdtr_limit: Field32 GuestGdtrLimit,
        idtr_base: FieldNatural GuestIdtrBase,
        idtr_limit: Field32 GuestIdtrLimit,
        debug_control: Field64 GuestDebugctl,
        sysenter_cs: Field32 GuestSysenterCs,
        sysenter_esp: FieldNatural GuestSysenterEsp,
        sysenter_eip: FieldNatural GuestSysenterEip,
        pat: Field64 GuestPat,
        efer: Field64 GuestEfer,
        perf_global_ctrl: Field64 GuestPerfGlobalCtrl,
        activity: Field32 GuestActivityState,
        interruptibility: Field32 GuestInterruptibilityState,
        pending_debug: FieldNatural GuestPendingDebugExceptions,
        link_pointer: Field64 VmcsLinkPointer,
        preemption_timer: Field32 GuestPreemptionTimerValue,
        interrupt_status: Field16 GuestInterruptStatus,
        pdpte_0: Field64 GuestPdpte0,
        pdpte_1: Field64 GuestPdpte1,
        pdpte_2: Field64 GuestPdpte2,
        pdpte_3: Field64 GuestPdpte3,
    }
}
