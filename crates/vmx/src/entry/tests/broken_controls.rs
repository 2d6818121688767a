// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules for controls, each violated.

use super::{Broken, clear, set};
use crate::control::Control;

const MISALIGNED: &str = "is not aligned to 4 KiB";
const TOO_WIDE: &str = "has a bit beyond the CPU's physical addresses";
const TOO_LARGE: &str = "or its list's end has a bit beyond the CPU's physical addresses";
const BEYOND: u64 = 1 << 46;
const INFORMATION: &str = "VM-entry interruption information";
const NO_SHADOW: &str = "is 1 without \"use TPR shadow\"";
const NO_EPT: &str = "is 1 without \"enable EPT\"";
const LACKING: &str = "lack a bit that the CPU requires to be 1";
const REFUSED: &str = "have a bit that the CPU does not allow to be 1";

pub const ALL: &[Broken] = &[
    (|it| it.controls.pin &= !2, "27.2.1.1", "pin-based VM-execution controls", LACKING),
    (|it| it.controls.pin |= 1 << 8, "27.2.1.1", "pin-based VM-execution controls", REFUSED),
    (|it| it.controls.primary &= !2, "27.2.1.1", "primary processor-based VM-execution controls", LACKING),
    (|it| it.controls.primary |= 1, "27.2.1.1", "primary processor-based VM-execution controls", REFUSED),
    (|it| it.controls.secondary |= 1 << 29, "27.2.1.1", "secondary processor-based VM-execution controls", REFUSED),
    (
        |it| {
            set(it, Control::ActivateTertiaryControls);
            it.controls.tertiary = 1 << 40;
        },
        "27.2.1.1",
        "tertiary processor-based VM-execution controls",
        REFUSED,
    ),
    (|it| it.controls.exit &= !1, "27.2.1.2", "VM-exit controls", LACKING),
    (|it| it.controls.entry &= !1, "27.2.1.3", "VM-entry controls", LACKING),
    (|it| it.controls.entry |= 1 << 31, "27.2.1.3", "VM-entry controls", REFUSED),
    (|it| clear(it, Control::NmiExiting), "27.2.1.1", "virtual NMIs", "is 1 without \"NMI exiting\""),
    (
        |it| {
            clear(it, Control::VirtualNmis);
            set(it, Control::NmiWindowExiting);
        },
        "27.2.1.1",
        "NMI-window exiting",
        "is 1 without \"virtual NMIs\"",
    ),
    (
        |it| {
            clear(it, Control::UseTprShadow);
            set(it, Control::VirtualizeX2apicMode);
        },
        "27.2.1.1",
        "virtualize x2APIC mode",
        NO_SHADOW,
    ),
    (
        |it| {
            clear(it, Control::UseTprShadow);
            set(it, Control::ApicRegisterVirtualization);
        },
        "27.2.1.1",
        "APIC-register virtualization",
        NO_SHADOW,
    ),
    (
        |it| {
            clear(it, Control::ExternalInterruptExiting);
            set(it, Control::VirtualInterruptDelivery);
        },
        "27.2.1.1",
        "virtual-interrupt delivery",
        "is 1 without \"external-interrupt exiting\"",
    ),
    (
        |it| set(it, Control::ProcessPostedInterrupts),
        "27.2.1.1",
        "process posted interrupts",
        "is 1 without \"virtual-interrupt delivery\"",
    ),
    (
        |it| {
            set(it, Control::VirtualInterruptDelivery);
            set(it, Control::ProcessPostedInterrupts);
        },
        "27.2.1.1",
        "process posted interrupts",
        "is 1 without \"acknowledge interrupt on exit\"",
    ),
    (|it| clear(it, Control::EnableEpt), "27.2.1.1", "unrestricted guest", NO_EPT),
    (
        |it| {
            clear(it, Control::EnableEpt);
            set(it, Control::EnablePml);
        },
        "27.2.1.1",
        "enable PML",
        NO_EPT,
    ),
    (
        |it| clear(it, Control::ActivateVmxPreemptionTimer),
        "27.2.1.2",
        "save VMX-preemption timer value",
        "is 1 without \"activate VMX-preemption timer\"",
    ),
    (|it| it.controls.cr3_target_count = 5, "27.2.1.1", "CR3-target count", "is more than the CPU has"),
    (
        |it| {
            set(it, Control::VirtualizeX2apicMode);
            set(it, Control::VirtualizeApicAccesses);
        },
        "27.2.1.1",
        "virtualize x2APIC mode",
        "is 1 together with \"virtualize APIC accesses\"",
    ),
    (|it| it.controls.tpr_threshold = 0x10, "27.2.1.1", "TPR threshold", "has a reserved bit"),
    (|it| it.controls.vpid = 0, "27.2.1.1", "VPID", "is 0"),
    (|it| it.controls.tsc_multiplier = 0, "27.2.1.1", "TSC multiplier", "is 0"),
    (|it| it.controls.io_bitmap_a |= 8, "27.2.1.1", "address of I/O bitmap A", MISALIGNED),
    (|it| it.controls.io_bitmap_b |= BEYOND, "27.2.1.1", "address of I/O bitmap B", TOO_WIDE),
    (|it| it.controls.msr_bitmap |= 1, "27.2.1.1", "MSR-bitmap address", MISALIGNED),
    (|it| it.controls.virtual_apic |= BEYOND, "27.2.1.1", "virtual-APIC address", TOO_WIDE),
    (
        |it| {
            set(it, Control::VirtualizeApicAccesses);
            it.controls.apic_access = 0x10;
        },
        "27.2.1.1",
        "APIC-access address",
        MISALIGNED,
    ),
    (
        |it| {
            set(it, Control::EnablePml);
            it.controls.pml_address = 0x10;
        },
        "27.2.1.1",
        "PML address",
        MISALIGNED,
    ),
    (
        |it| {
            set(it, Control::VmcsShadowing);
            it.controls.vmread_bitmap = 0x10;
        },
        "27.2.1.1",
        "VMREAD-bitmap address",
        MISALIGNED,
    ),
    (
        |it| {
            set(it, Control::VmcsShadowing);
            it.controls.vmwrite_bitmap = BEYOND;
        },
        "27.2.1.1",
        "VMWRITE-bitmap address",
        TOO_WIDE,
    ),
    (
        |it| {
            set(it, Control::EptViolationVirtualizationException);
            it.controls.virtualization_exception = 0x10;
        },
        "27.2.1.1",
        "virtualization-exception information address",
        MISALIGNED,
    ),
    (
        |it| {
            post(it);
            it.controls.notification_vector = 0x100;
        },
        "27.2.1.1",
        "posted-interrupt notification vector",
        "is above 255",
    ),
    (
        |it| {
            post(it);
            it.controls.posted_interrupt_descriptor = 0x20;
        },
        "27.2.1.1",
        "posted-interrupt descriptor address",
        "is not aligned to 64 bytes",
    ),
    (
        |it| {
            post(it);
            it.controls.posted_interrupt_descriptor = BEYOND;
        },
        "27.2.1.1",
        "posted-interrupt descriptor address",
        TOO_WIDE,
    ),
    (
        |it| {
            set(it, Control::IpiVirtualization);
            it.controls.pid_pointer_table = 4;
        },
        "27.2.1.1",
        "PID-pointer table address",
        "is not aligned to 8 bytes",
    ),
    (
        |it| {
            clear(it, Control::UseTprShadow);
            set(it, Control::IpiVirtualization);
        },
        "27.2.1.1",
        "IPI virtualization",
        NO_SHADOW,
    ),
    (
        |it| {
            set(it, Control::IpiVirtualization);
            it.controls.pid_pointer_table = (1 << 46) - 8;
            it.controls.last_pid_pointer_index = 1;
        },
        "27.2.1.1",
        "PID-pointer table address",
        TOO_WIDE,
    ),
    (|it| it.controls.ept_pointer = 0x5018 | 4, "27.2.1.1", "EPTP", "has a memory type that the CPU does not have"),
    (
        |it| it.controls.ept_pointer = 0x5026,
        "27.2.1.1",
        "EPTP",
        "has a length of page walks that the CPU does not have",
    ),
    (
        |it| it.controls.ept_pointer |= 1 << 7,
        "27.2.1.1",
        "EPTP",
        "enables shadow-stack control, which the CPU does not have",
    ),
    (|it| it.controls.ept_pointer |= 1 << 8, "27.2.1.1", "EPTP", "has a reserved bit"),
    (
        |it| {
            it.controls.exit_msr_store_count = 1;
            it.controls.exit_msr_store = 8;
        },
        "27.2.1.2",
        "VM-exit MSR-store address",
        "is not aligned to 16 bytes",
    ),
    (
        |it| {
            it.controls.exit_msr_load_count = 2;
            it.controls.exit_msr_load = (1 << 46) - 16;
        },
        "27.2.1.2",
        "VM-exit MSR-load address",
        TOO_LARGE,
    ),
    (
        |it| {
            it.controls.entry_msr_load_count = u32::MAX;
            it.controls.entry_msr_load = !0xf;
        },
        "27.2.1.3",
        "VM-entry MSR-load address",
        TOO_LARGE,
    ),
    (|it| set(it, Control::EntryToSmm), "27.2.1.3", "entry to SMM", "is 1 outside SMM"),
    (
        |it| set(it, Control::DeactivateDualMonitorTreatment),
        "27.2.1.3",
        "deactivate dual-monitor treatment",
        "is 1 outside SMM",
    ),
    (|it| it.controls.interruption = 0x8000_0100, "27.2.1.3", INFORMATION, "has a reserved type"),
    (|it| it.controls.interruption = 0x8000_0203, "27.2.1.3", INFORMATION, "has a vector that its type does not have"),
    (
        |it| it.controls.interruption = 0x8000_0b06,
        "27.2.1.3",
        INFORMATION,
        "delivers an error code that the event does not have",
    ),
    (
        |it| it.controls.interruption = 0x8000_030d,
        "27.2.1.3",
        INFORMATION,
        "delivers no error code, and the event has one",
    ),
    (|it| it.controls.interruption = 0x8000_1202, "27.2.1.3", INFORMATION, "has a reserved bit"),
    (
        |it| {
            it.controls.interruption = 0x8000_0b0d;
            it.controls.error_code = 1 << 16;
        },
        "27.2.1.3",
        "VM-entry exception error code",
        "has a reserved bit",
    ),
    (
        |it| {
            it.controls.interruption = 0x8000_0603;
            it.controls.instruction_length = 16;
        },
        "27.2.1.3",
        "VM-entry instruction length",
        "is that of no instruction",
    ),
];

/// Has posted interrupts processed, as they may be.
fn post(state: &mut crate::entry::State) {
    set(state, Control::VirtualInterruptDelivery);
    set(state, Control::AcknowledgeInterruptOnExit);
    set(state, Control::ProcessPostedInterrupts);
}
