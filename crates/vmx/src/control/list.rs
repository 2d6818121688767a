// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every control with its word, its bit and the manual's name (sections 25.6.1, 25.6.2, 25.7.1 and 25.8.1).

use super::word::Word;

macro_rules! controls {
    ($($word:ident { $($bit:literal $control:ident $name:literal,)* })*) => {
        /// A control. Those of one name in two words have their word before it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are the manual's")]
        pub enum Control {
            $($($control,)*)*
        }

        impl Control {
            /// All of them.
            pub const ALL: &[Self] = &[$($(Self::$control,)*)*];

            /// Its word.
            pub const fn word(self) -> Word {
                match self {
                    $($(Self::$control => Word::$word,)*)*
                }
            }

            /// Its bit in that word.
            pub const fn bit(self) -> u64 {
                match self {
                    $($(Self::$control => 1 << $bit,)*)*
                }
            }

            /// The manual's name.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Self::$control => $name,)*)*
                }
            }
        }
    };
}

controls! {
    Pin {
        0 ExternalInterruptExiting "external-interrupt exiting",
        3 NmiExiting "NMI exiting",
        5 VirtualNmis "virtual NMIs",
        6 ActivateVmxPreemptionTimer "activate VMX-preemption timer",
        7 ProcessPostedInterrupts "process posted interrupts",
    }
    Primary {
        2 InterruptWindowExiting "interrupt-window exiting",
        3 UseTscOffsetting "use TSC offsetting",
        7 HltExiting "HLT exiting",
        9 InvlpgExiting "INVLPG exiting",
        10 MwaitExiting "MWAIT exiting",
        11 RdpmcExiting "RDPMC exiting",
        12 RdtscExiting "RDTSC exiting",
        15 Cr3LoadExiting "CR3-load exiting",
        16 Cr3StoreExiting "CR3-store exiting",
        17 ActivateTertiaryControls "activate tertiary controls",
        19 Cr8LoadExiting "CR8-load exiting",
        20 Cr8StoreExiting "CR8-store exiting",
        21 UseTprShadow "use TPR shadow",
        22 NmiWindowExiting "NMI-window exiting",
        23 MovDrExiting "MOV-DR exiting",
        24 UnconditionalIoExiting "unconditional I/O exiting",
        25 UseIoBitmaps "use I/O bitmaps",
        27 MonitorTrapFlag "monitor trap flag",
        28 UseMsrBitmaps "use MSR bitmaps",
        29 MonitorExiting "MONITOR exiting",
        30 PauseExiting "PAUSE exiting",
        31 ActivateSecondaryControls "activate secondary controls",
    }
    Secondary {
        0 VirtualizeApicAccesses "virtualize APIC accesses",
        1 EnableEpt "enable EPT",
        2 DescriptorTableExiting "descriptor-table exiting",
        3 EnableRdtscp "enable RDTSCP",
        4 VirtualizeX2apicMode "virtualize x2APIC mode",
        5 EnableVpid "enable VPID",
        6 WbinvdExiting "WBINVD exiting",
        7 UnrestrictedGuest "unrestricted guest",
        8 ApicRegisterVirtualization "APIC-register virtualization",
        9 VirtualInterruptDelivery "virtual-interrupt delivery",
        10 PauseLoopExiting "PAUSE-loop exiting",
        11 RdrandExiting "RDRAND exiting",
        12 EnableInvpcid "enable INVPCID",
        13 EnableVmFunctions "enable VM functions",
        14 VmcsShadowing "VMCS shadowing",
        15 EnableEnclsExiting "enable ENCLS exiting",
        16 RdseedExiting "RDSEED exiting",
        17 EnablePml "enable PML",
        18 EptViolationVirtualizationException "EPT-violation #VE",
        19 SecondaryConcealVmxFromPt "conceal VMX from PT",
        20 EnableXsaves "enable XSAVES/XRSTORS",
        21 PasidTranslation "PASID translation",
        22 ModeBasedExecuteControlForEpt "mode-based execute control for EPT",
        23 SubPageWritePermissionsForEpt "sub-page write permissions for EPT",
        24 IntelPtUsesGuestPhysicalAddresses "Intel PT uses guest physical addresses",
        25 UseTscScaling "use TSC scaling",
        26 EnableUserWaitAndPause "enable user wait and pause",
        27 EnablePconfig "enable PCONFIG",
        28 EnableEnclvExiting "enable ENCLV exiting",
        30 VmmBusLockDetection "VMM bus-lock detection",
        31 InstructionTimeout "instruction timeout",
    }
    Tertiary {
        0 LoadiwkeyExiting "LOADIWKEY exiting",
        1 EnableHlat "enable HLAT",
        2 EptPagingWriteControl "EPT paging-write control",
        3 GuestPagingVerification "guest-paging verification",
        4 IpiVirtualization "IPI virtualization",
        6 EnableMsrListInstructions "enable MSR-list instructions",
        7 VirtualizeSpecCtrl "virtualize IA32_SPEC_CTRL",
    }
    Exit {
        2 SaveDebugControls "save debug controls",
        9 HostAddressSpaceSize "host address-space size",
        12 ExitLoadPerfGlobalCtrl "load IA32_PERF_GLOBAL_CTRL",
        15 AcknowledgeInterruptOnExit "acknowledge interrupt on exit",
        18 SavePat "save IA32_PAT",
        19 ExitLoadPat "load IA32_PAT",
        20 SaveEfer "save IA32_EFER",
        21 ExitLoadEfer "load IA32_EFER",
        22 SaveVmxPreemptionTimerValue "save VMX-preemption timer value",
        23 ClearBndcfgs "clear IA32_BNDCFGS",
        24 ExitConcealVmxFromPt "conceal VMX from PT",
        25 ClearRtitCtl "clear IA32_RTIT_CTL",
        26 ClearLbrCtl "clear IA32_LBR_CTL",
        27 ClearUinv "clear UINV",
        28 ExitLoadCetState "load CET state",
        29 ExitLoadPkrs "load PKRS",
        30 SavePerfGlobalCtrl "save IA32_PERF_GLOBAL_CTRL",
        31 ExitActivateSecondaryControls "activate secondary controls",
    }
    Entry {
        2 LoadDebugControls "load debug controls",
        9 Ia32eModeGuest "IA-32e mode guest",
        10 EntryToSmm "entry to SMM",
        11 DeactivateDualMonitorTreatment "deactivate dual-monitor treatment",
        13 EntryLoadPerfGlobalCtrl "load IA32_PERF_GLOBAL_CTRL",
        14 EntryLoadPat "load IA32_PAT",
        15 EntryLoadEfer "load IA32_EFER",
        16 LoadBndcfgs "load IA32_BNDCFGS",
        17 EntryConcealVmxFromPt "conceal VMX from PT",
        18 LoadRtitCtl "load IA32_RTIT_CTL",
        19 LoadUinv "load UINV",
        20 EntryLoadCetState "load CET state",
        21 LoadGuestLbrCtl "load guest IA32_LBR_CTL",
        22 EntryLoadPkrs "load PKRS",
    }
}
