// SPDX-License-Identifier: MIT OR Apache-2.0
//! The controls with which guests run, resolved for one CPU.

use crate::capability::Capabilities;
use crate::control::{Control, Controls, Word};
use crate::entry::Bounds;
use crate::request::Request;
use crate::unusable::Unusable;

/// Controls of every guest. Every port is intercepted, so there are no I/O bitmaps; the guest's CR8 is in its
/// virtual-APIC page (TPR shadow); a host's interrupt stays pending across the exit.
const ALWAYS: &[Control] = &[
    Control::ExternalInterruptExiting,
    Control::NmiExiting,
    Control::VirtualNmis,
    Control::UseTscOffsetting,
    Control::HltExiting,
    Control::MwaitExiting,
    Control::MonitorExiting,
    Control::RdpmcExiting,
    Control::UseTprShadow,
    Control::UnconditionalIoExiting,
    Control::UseMsrBitmaps,
    Control::EnableEpt,
    Control::UnrestrictedGuest,
    Control::SaveDebugControls,
    Control::HostAddressSpaceSize,
    Control::SavePat,
    Control::ExitLoadPat,
    Control::SaveEfer,
    Control::ExitLoadEfer,
    Control::LoadDebugControls,
    Control::EntryLoadPat,
    Control::EntryLoadEfer,
];

/// Controls that are 1 for a while: [`crate::Vcpu`] sets and clears them.
const AT_TIMES: &[Control] =
    &[Control::InterruptWindowExiting, Control::NmiWindowExiting, Control::Cr8LoadExiting, Control::RdtscExiting];

/// Controls for instructions that CPUs without them do not have, and for guests that wait for others.
const WHERE_THERE: &[Control] =
    &[Control::EnableRdtscp, Control::EnableInvpcid, Control::WbinvdExiting, Control::PauseLoopExiting];

/// Controls with exits that nothing here answers. The first CPUs with VMX required some of them.
const NEVER: &[Control] = &[
    Control::InvlpgExiting,
    Control::Cr3LoadExiting,
    Control::Cr3StoreExiting,
    Control::Cr8StoreExiting,
    Control::MovDrExiting,
    Control::AcknowledgeInterruptOnExit,
];

/// The settings of a CPU, with which all guests run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The controls of a guest for which nothing is asked beside.
    pub controls: Controls,
    /// The CPU's capabilities, and the widths of its addresses.
    pub bounds: Bounds,
}

impl Settings {
    /// Resolves the settings for a CPU.
    ///
    /// # Errors
    /// [`Unusable`] names what the CPU lacks.
    pub fn for_cpu(bounds: Bounds) -> Result<Self, Unusable> {
        let capabilities = &bounds.capabilities;
        let needed = AT_TIMES.iter().fold(Controls::of(ALWAYS), |all, control| all.with(*control));
        let wanted = if can_flush_tags(capabilities) { Controls::of(&[Control::EnableVpid]) } else { Controls::NONE };
        let wanted = WHERE_THERE.iter().fold(wanted, |all, control| all.with(*control));
        let request = Request { needed, wanted, forbidden: Controls::of(NEVER) };
        let resolved = request.resolve(capabilities)?;
        capabilities.check_ept()?;
        let optional = |control: &Control| capabilities.allowed(control.word()).must & control.bit() == 0;
        if let Some(forced) = AT_TIMES.iter().find(|control| !optional(control)) {
            let msr = capabilities.allowed(forced.word()).msr;
            return Err(Unusable::Forced { control: *forced, msr });
        }
        let controls = AT_TIMES.iter().fold(resolved, |all, control| all.without(*control));
        Ok(Self { controls, bounds })
    }

    /// The capabilities of the CPU.
    pub const fn capabilities(&self) -> &Capabilities {
        &self.bounds.capabilities
    }

    /// Bits of CR0 in the guest that are the host's choice: those that VMX requires, but for what an unrestricted
    /// guest is free to clear. The guest sees its own in the read shadow.
    pub const fn owned_cr0(&self) -> u64 {
        self.bounds.capabilities.cr0.must & !(vm::vcpu::cr0::PE | vm::vcpu::cr0::PG)
    }

    /// The same for CR4: VMXE, which the guest never sees as 1. Machine checks are enabled always: one that comes while
    /// the guest has disabled them would shut the CPU down.
    pub const fn owned_cr4(&self) -> u64 {
        self.bounds.capabilities.cr4.must | MACHINE_CHECKS & self.bounds.capabilities.cr4.may
    }

    /// Bits of CR4 that the guest cannot have, although they are 1.
    pub const fn hidden_cr4(&self) -> u64 {
        self.bounds.capabilities.cr4.must
    }

    /// A word of the controls, as the VMCS holds it.
    pub const fn word(&self, word: Word) -> u32 {
        self.controls.word(word) as u32
    }
}

/// Translations that outlast an exit by their tag are of use where they can be flushed by it.
fn can_flush_tags(capabilities: &Capabilities) -> bool {
    capabilities.ept_vpid.invvpid() && capabilities.ept_vpid.invvpid_single()
}

/// CR4.MCE.
const MACHINE_CHECKS: u64 = 1 << 6;

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
