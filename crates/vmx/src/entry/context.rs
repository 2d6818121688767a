// SPDX-License-Identifier: MIT OR Apache-2.0
//! A state with what its checks depend on.

use vm::vcpu::{Rflags, cr0};

use super::state::State;
use crate::capability::Capabilities;
use crate::control::{Control, Controls};
use crate::event::Interruption;

/// The data on which a CPU's checks depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Its capability MSRs.
    pub capabilities: Capabilities,
    /// Width of physical addresses in bits (CPUID 8000_0008H, EAX 7:0).
    pub physical_bits: u8,
    /// Width of linear addresses in bits (EAX 15:8).
    pub linear_bits: u8,
    /// Bits of IA32_PERF_GLOBAL_CTRL that are not reserved.
    pub perf_global_ctrl: u64,
}

impl Bounds {
    /// Bits 63 to the linear width less one are equal.
    pub const fn is_canonical(&self, address: u64) -> bool {
        let bits = self.linear_bits as u32;
        let unused = 64
            - if bits == 0 {
                1
            } else if bits > 64 {
                64
            } else {
                bits
            };
        ((address << unused) as i64 >> unused) as u64 == address
    }
}

pub(super) struct Context<'a> {
    pub(super) state: &'a State,
    pub(super) bounds: &'a Bounds,
    pub(super) controls: Controls,
}

impl<'a> Context<'a> {
    pub(super) fn new(state: &'a State, bounds: &'a Bounds) -> Self {
        Self { state, bounds, controls: state.controls.set() }
    }

    pub(super) fn has(&self, control: Control) -> bool {
        self.controls.has(control)
    }

    /// The guest will be in IA-32e mode.
    pub(super) fn is_long(&self) -> bool {
        self.has(Control::Ia32eModeGuest)
    }

    pub(super) fn is_virtual_8086(&self) -> bool {
        self.state.guest.rflags & Rflags::VIRTUAL_8086.bits() != 0
    }

    pub(super) fn is_unrestricted(&self) -> bool {
        self.has(Control::UnrestrictedGuest)
    }

    pub(super) fn is_protected(&self) -> bool {
        self.state.guest.cr0 & cr0::PE != 0
    }

    /// The event that is injected, if there is one.
    pub(super) fn event(&self) -> Option<Interruption> {
        let event = Interruption::from_bits(self.state.controls.interruption);
        event.is_valid().then_some(event)
    }

    pub(super) fn is_canonical(&self, address: u64) -> bool {
        self.bounds.is_canonical(address)
    }

    /// No bit is set beyond the physical width.
    pub(super) fn fits(&self, address: u64) -> bool {
        address.checked_shr(self.bounds.physical_bits.into()).unwrap_or(0) == 0
    }

    /// The same for an address in the VMCS, which has 32 bits on some CPUs.
    pub(super) fn fits_in_vmcs(&self, address: u64) -> bool {
        let is_narrow = self.bounds.capabilities.basic.has_narrow_addresses();
        self.fits(address) && (!is_narrow || address >> 32 == 0)
    }
}
