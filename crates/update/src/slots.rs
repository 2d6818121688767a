// SPDX-License-Identifier: MIT OR Apache-2.0
//! The slots that a CPU restores in the new image, in three passes: vCPUs, and devices of guests that it is home to.
//!
//! | pass | source | result |
//! |---|---|---|
//! | verified | drafts | each vCPU is saved again and compared; it stays in its slot |
//! | rehearsed | drafts | vCPUs are taken, and [put back](Slots::put_back) |
//! | restored in the blackout | the state saved last | vCPUs are taken for good |
//!
//! A vCPU that cannot be restored stays in its slot: no CPU ever takes one that is not restored, or takes one twice.

use alloc::vec::Vec;

use handover::layout::guests::BlockPlace;

/// Something that a CPU restores, and the block that it is restored from.
#[derive(Debug)]
pub enum Slot<T, D> {
    /// A vCPU; `None` once the CPU has taken it.
    Vcpu(Option<T>, BlockPlace),
    /// A guest's devices.
    Devices(D, BlockPlace),
}

/// The operations by which slots are restored.
pub trait Restorer<T, D> {
    /// The error of a slot that cannot be restored.
    type Error;

    /// Restores a vCPU.
    ///
    /// # Errors
    /// Why it cannot be.
    fn restore_vcpu(&mut self, vcpu: &mut T, from: &BlockPlace) -> Result<(), Self::Error>;
    /// Restores a guest's devices.
    ///
    /// # Errors
    /// Why they cannot be.
    fn restore_devices(&mut self, devices: &D, from: &BlockPlace) -> Result<(), Self::Error>;
    /// Saves a vCPU that has been restored once more, and compares.
    ///
    /// # Errors
    /// It would be another one.
    fn verify_vcpu(&mut self, vcpu: &mut T, from: &BlockPlace) -> Result<(), Self::Error>;
}

/// All slots of one CPU.
#[derive(Debug)]
pub struct Slots<T, D>(Vec<Slot<T, D>>);

impl<T, D> Default for Slots<T, D> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, D> Slots<T, D> {
    /// Adds one. Allocates.
    pub fn add(&mut self, slot: Slot<T, D>) {
        self.0.push(slot);
    }

    /// Restores each vCPU and compares it with what was saved.
    ///
    /// # Errors
    /// The first that cannot be restored, or would be another one.
    pub fn verify<R: Restorer<T, D>>(&mut self, restorer: &mut R) -> Result<(), R::Error> {
        for slot in &mut self.0 {
            if let Slot::Vcpu(Some(vcpu), place) = slot {
                restorer.restore_vcpu(vcpu, place)?;
                restorer.verify_vcpu(vcpu, place)?;
            }
        }
        Ok(())
    }

    /// Restores everything; `take` takes the vCPUs. Allocates nothing by itself.
    ///
    /// # Errors
    /// The first that cannot be restored. It and those behind it stay here.
    pub fn restore<R: Restorer<T, D>>(&mut self, restorer: &mut R, mut take: impl FnMut(T)) -> Result<(), R::Error> {
        for slot in &mut self.0 {
            match slot {
                Slot::Vcpu(vcpu, place) => {
                    if let Some(vcpu) = vcpu {
                        restorer.restore_vcpu(vcpu, place)?;
                    }
                    vcpu.take().into_iter().for_each(&mut take);
                }
                Slot::Devices(devices, place) => restorer.restore_devices(devices, place)?,
            }
        }
        Ok(())
    }

    /// Puts a vCPU back that was taken in a rehearsal; `owner`: its guest and its number there. Gives it back where no
    /// slot of this CPU is its own and empty.
    ///
    /// # Errors
    /// The vCPU.
    pub fn put_back(&mut self, owner: (u32, u32), vcpu: T) -> Result<(), T> {
        let empty = self.0.iter_mut().find_map(|slot| match slot {
            Slot::Vcpu(empty @ None, place) if (place.guest.get(), place.vcpu.get()) == owner => Some(empty),
            _ => None,
        });
        match empty {
            Some(empty) => {
                *empty = Some(vcpu);
                Ok(())
            }
            None => Err(vcpu),
        }
    }
}
