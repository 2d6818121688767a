// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device that an access has found.

use alloc::sync::Arc;
use core::ops::Deref;

use spin::Mutex;

use crate::devices::device::Device;

/// A device that was found. One that may leave the bus stays for as long as this does.
#[derive(Clone)]
pub enum Found<'a> {
    /// It is there for as long as the machine.
    Fixed(&'a Mutex<dyn Device>),
    /// A PCI function that may leave.
    Plugged(Arc<Mutex<dyn Device>>),
}

impl Deref for Found<'_> {
    type Target = Mutex<dyn Device>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Fixed(device) => device,
            Self::Plugged(device) => device,
        }
    }
}
