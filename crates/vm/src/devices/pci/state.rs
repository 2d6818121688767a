// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of the bus is kept across a change of the hypervisor.

use alloc::vec::Vec;

use super::{CONFIG_BYTES, Function, Slot};

/// Everything about the bus that outlives a hypervisor image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PciState {
    /// The address register of configuration mechanism 1.
    pub address: u32,
    /// Every function.
    pub functions: Vec<FunctionState>,
}

/// One function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionState {
    /// Where it is: [`Slot`]'s number.
    pub slot: u8,
    /// Its registers.
    pub config: [u8; CONFIG_BYTES],
}

impl FunctionState {
    pub(super) fn of(slot: Slot, function: &Function) -> Self {
        Self { slot: slot.0, config: *function.config() }
    }
}
