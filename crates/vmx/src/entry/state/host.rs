// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's state.

area! {
    /// The host's state that entries check.
    pub struct HostFields {
        cr0: FieldNatural HostCr0,
        cr3: FieldNatural HostCr3,
        cr4: FieldNatural HostCr4,
        rip: FieldNatural HostRip,
        rsp: FieldNatural HostRsp,
        es: Field16 HostEsSelector,
        cs: Field16 HostCsSelector,
        ss: Field16 HostSsSelector,
        ds: Field16 HostDsSelector,
        fs: Field16 HostFsSelector,
        gs: Field16 HostGsSelector,
        tr: Field16 HostTrSelector,
        fs_base: FieldNatural HostFsBase,
        gs_base: FieldNatural HostGsBase,
        tr_base: FieldNatural HostTrBase,
        gdtr_base: FieldNatural HostGdtrBase,
        idtr_base: FieldNatural HostIdtrBase,
        sysenter_cs: Field32 HostSysenterCs,
        sysenter_esp: FieldNatural HostSysenterEsp,
        sysenter_eip: FieldNatural HostSysenterEip,
        pat: Field64 HostPat,
        efer: Field64 HostEfer,
        perf_global_ctrl: Field64 HostPerfGlobalCtrl,
    }
}
