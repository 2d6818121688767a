// SPDX-License-Identifier: MIT OR Apache-2.0
//! The physical functions of a run of a guest, by the device numbers of their slots. They come and go while it runs.

use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;

use spin::{Mutex, RwLock};
use vm::devices::hot_plug::DEVICES;
use vm::devices::pci::Endpoint;
use vm::devices::pci::assigned::Assigned;

use super::function::HostFunction;

/// A function on its guest's bus.
pub type Function = Arc<Mutex<Endpoint<Assigned<HostFunction>>>>;

const SLOTS: usize = DEVICES.end as usize;

/// The functions of a run.
pub struct Functions {
    /// Read at each interrupt of one. Nothing is done under this lock but reading and writing a place.
    slots: RwLock<[Option<Function>; SLOTS]>,
    /// Held while one comes or goes, with all that belongs to it: attached to its IOMMU, put on the bus, listed.
    change: Mutex<Change>,
}

/// States whether functions may come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Possible,
    /// The run has ended.
    Over,
}

impl Functions {
    /// None.
    pub fn new() -> Self {
        Self { slots: RwLock::new([const { None }; SLOTS]), change: Mutex::new(Change::Possible) }
    }

    /// The function in a device.
    pub fn get(&self, device: u16) -> Option<Function> {
        self.slots.read().get(usize::from(device))?.clone()
    }

    /// All functions, by rising device number.
    pub fn all(&self) -> Vec<Function> {
        self.slots.read().iter().flatten().cloned().collect()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.slots.read().iter().all(Option::is_none)
    }

    /// Returns whether their devices have the numbers from 1 on, none of which is free between them.
    pub fn are_consecutive(&self) -> bool {
        let slots = self.slots.read();
        let count = slots.iter().flatten().count();
        slots.iter().skip(1).take(count).all(Option::is_some)
    }

    /// Adds the function that `connect` makes.
    ///
    /// # Errors
    /// The error of `connect`, or that the run has ended; then it was not called.
    pub fn add(&self, device: u8, connect: impl FnOnce() -> Result<Function, String>) -> Result<(), String> {
        let change = self.change.lock();
        if *change == Change::Over {
            return Err("the guest has ended meanwhile".to_string());
        }
        let function = connect()?;
        let mut slots = self.slots.write();
        let slot = slots.get_mut(usize::from(device)).ok_or("a bus has no such device")?;
        *slot = Some(function);
        Ok(())
    }

    /// Removes the function in a device, and calls `disconnect` with it. `None` if there is none, or the run has ended:
    /// then all are withdrawn.
    pub fn remove<T>(&self, device: u8, disconnect: impl FnOnce(Function) -> T) -> Option<T> {
        let change = self.change.lock();
        if *change == Change::Over {
            return None;
        }
        let function = self.slots.write().get_mut(usize::from(device))?.take()?;
        Some(disconnect(function))
    }

    /// The run has ended: none comes or goes any more. Returns all.
    pub fn close(&self) -> Vec<Function> {
        *self.change.lock() = Change::Over;
        self.all()
    }
}
