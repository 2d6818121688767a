// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many virtual functions a guest may enable of its physical one: as many as its configuration states, if the
//! function has them.

use alloc::format;
use alloc::string::{String, ToString as _};

use ::pci::Bdf;
use vm::devices::pci::assigned::{Description, VirtualFunctions as Known};

use crate::guests::pci;

/// Reads what a function that is to have so many states of its virtual ones.
///
/// # Errors
/// It cannot have so many.
pub fn known(place: Bdf, description: &Description, number: u8) -> Result<Known, String> {
    let refused = |reason: &str| format!("sriov = {number}: {reason}");
    if !description.has_express {
        return Err(refused("it is no PCI Express function"));
    }
    let read = pci::sriov::read(place).ok_or_else(|| refused("it has no virtual functions"))?;
    let read = read.map_err(|problem| refused(&problem.to_string()))?;
    if read.total < number.into() {
        return Err(format!("sriov = {number}: it has {} virtual functions", read.total));
    }
    Ok(Known { device: read.device, ..Known::default() })
}
