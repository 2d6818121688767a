// SPDX-License-Identifier: MIT OR Apache-2.0
//! The VMCS's fields that entries check, as plain data.

#[macro_use]
mod area;
mod controls;
mod guest;
mod host;
mod segment;

use crate::control::Controls;
use crate::field::Vmcs;

pub use controls::ControlFields;
pub use guest::GuestFields;
pub use host::HostFields;
pub use segment::GuestSegment;

/// The fields that a VM entry checks. Those that a CPU does not have are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Control fields.
    pub controls: ControlFields,
    /// The host's state.
    pub host: HostFields,
    /// The guest's state without its segments.
    pub guest: GuestFields,
    /// The guest's segments, by [`vm::vcpu::SegmentName`].
    pub segments: [GuestSegment; 8],
}

impl State {
    /// Reads the fields that exist on a CPU with `allowed` controls.
    pub fn load(vmcs: &impl Vmcs, allowed: Controls) -> Self {
        Self {
            controls: ControlFields::load(vmcs, allowed),
            host: HostFields::load(vmcs, allowed),
            guest: GuestFields::load(vmcs, allowed),
            segments: core::array::from_fn(|at| GuestSegment::load(vmcs, at)),
        }
    }

    /// Writes them.
    pub fn store(&self, vmcs: &mut impl Vmcs, allowed: Controls) {
        self.controls.store(vmcs, allowed);
        self.host.store(vmcs, allowed);
        self.guest.store(vmcs, allowed);
        self.segments.iter().enumerate().for_each(|(at, segment)| segment.store(vmcs, at));
    }
}
