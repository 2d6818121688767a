// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which side wants to be notified of what (sections 2.7.7 and 2.7.10).

use core::sync::atomic::{Ordering, fence};

use super::Queue;
use crate::fault::Fault;
use crate::memory::Memory;
use crate::rings::{read_u16, write_u16};

/// Available ring: the driver wants no interrupt.
pub(crate) const NO_INTERRUPT: u16 = 1;
/// Used ring: the device wants no notification.
pub(crate) const NO_NOTIFY: u16 = 1;

impl Queue {
    /// Asks the driver to notify the device of the next chain. Returns whether there is one already: then the device
    /// goes on with it, since the driver may not have seen this in time.
    ///
    /// # Errors
    /// [`Fault::Outside`] if a ring is not memory; [`Fault::IndexJumped`].
    pub fn enable_notifications<M: Memory + ?Sized>(&self, memory: &M) -> Result<bool, Fault> {
        match self.options.has_event_index {
            true => write_u16(memory, self.addresses.available_event(self.size), self.progress.taken)?,
            false => write_u16(memory, self.addresses.used_flags(), 0)?,
        }
        // Pairs with the driver's barrier between its index and its read of this: one side sees the other's write.
        fence(Ordering::SeqCst);
        Ok(self.available(memory)? != self.progress.taken)
    }

    /// Asks the driver not to notify the device: it polls, or has no use for chains. A driver may notify nonetheless.
    ///
    /// # Errors
    /// [`Fault::Outside`] if a ring is not memory.
    pub fn disable_notifications<M: Memory + ?Sized>(&self, memory: &M) -> Result<(), Fault> {
        match self.options.has_event_index {
            // An index that the driver has passed: it does not come again for 2^16 chains.
            true => write_u16(memory, self.addresses.available_event(self.size), self.progress.taken.wrapping_sub(1))?,
            false => write_u16(memory, self.addresses.used_flags(), NO_NOTIFY)?,
        }
        Ok(())
    }

    /// Returns whether the driver wants an interrupt for what was published since the used index was `before`.
    pub(super) fn wants_interrupt<M: Memory + ?Sized>(&self, memory: &M, before: u16) -> Result<bool, Fault> {
        // The driver writes what it wants and then reads the index; the device writes the index and then reads that.
        fence(Ordering::SeqCst);
        if self.options.has_event_index {
            let event = read_u16(memory, self.addresses.used_event(self.size))?;
            return Ok(is_passed(event, before, self.progress.used));
        }
        Ok(read_u16(memory, self.addresses.available_flags())? & NO_INTERRUPT == 0)
    }
}

/// Returns whether an index went past `event` on its way from `before` to `now`.
pub(crate) fn is_passed(event: u16, before: u16, now: u16) -> bool {
    now.wrapping_sub(event).wrapping_sub(1) < now.wrapping_sub(before)
}
