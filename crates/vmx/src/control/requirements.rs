// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controls that may be 1 only with another one (sections 27.2.1.1 and 27.2.1.2).

use super::list::Control;

/// A control that depends on another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The control.
    pub control: Control,
    /// The one that must be 1 with it.
    pub requires: Control,
    /// The same in words, for the report of a failed entry.
    pub words: &'static str,
}

const fn requires(control: Control, requires: Control, words: &'static str) -> Requirement {
    Requirement { control, requires, words }
}

/// Every such pair.
pub const REQUIREMENTS: &[Requirement] = &[
    requires(Control::VirtualNmis, Control::NmiExiting, "is 1 without \"NMI exiting\""),
    requires(Control::NmiWindowExiting, Control::VirtualNmis, "is 1 without \"virtual NMIs\""),
    requires(Control::VirtualizeX2apicMode, Control::UseTprShadow, "is 1 without \"use TPR shadow\""),
    requires(Control::ApicRegisterVirtualization, Control::UseTprShadow, "is 1 without \"use TPR shadow\""),
    requires(Control::VirtualInterruptDelivery, Control::UseTprShadow, "is 1 without \"use TPR shadow\""),
    requires(
        Control::VirtualInterruptDelivery,
        Control::ExternalInterruptExiting,
        "is 1 without \"external-interrupt exiting\"",
    ),
    requires(
        Control::ProcessPostedInterrupts,
        Control::VirtualInterruptDelivery,
        "is 1 without \"virtual-interrupt delivery\"",
    ),
    requires(
        Control::ProcessPostedInterrupts,
        Control::AcknowledgeInterruptOnExit,
        "is 1 without \"acknowledge interrupt on exit\"",
    ),
    requires(Control::IpiVirtualization, Control::UseTprShadow, "is 1 without \"use TPR shadow\""),
    requires(Control::EnablePml, Control::EnableEpt, "is 1 without \"enable EPT\""),
    requires(Control::UnrestrictedGuest, Control::EnableEpt, "is 1 without \"enable EPT\""),
    requires(Control::ModeBasedExecuteControlForEpt, Control::EnableEpt, "is 1 without \"enable EPT\""),
    requires(Control::SubPageWritePermissionsForEpt, Control::EnableEpt, "is 1 without \"enable EPT\""),
    requires(Control::IntelPtUsesGuestPhysicalAddresses, Control::EnableEpt, "is 1 without \"enable EPT\""),
    requires(
        Control::SaveVmxPreemptionTimerValue,
        Control::ActivateVmxPreemptionTimer,
        "is 1 without \"activate VMX-preemption timer\"",
    ),
];
