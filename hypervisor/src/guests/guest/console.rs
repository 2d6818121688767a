// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's console: written and read by its vCPUs, saved for the next image.

use alloc::string::{String, ToString};
use core::sync::atomic::Ordering;

use handover::block::{self, BlockMut, Owner};
use handover::state;
use wire::ConsoleOutput;

use super::Guest;
use crate::arch::{cpu, percpu, timer};
use crate::guests::console::{ControlEnds, OUTPUT_BATCH, WAKE_INTERVAL_US};

impl Guest {
    /// Takes output to its console. The control channel is notified at most every few milliseconds, at the end of a
    /// line; the rest is flushed when the guest waits.
    pub fn console_output(&self, bytes: &[u8]) {
        let mut console = self.console.guest.lock();
        for byte in bytes {
            // A byte that finds no room is lost: the guest is never held up by the reader of its console.
            if console.output.enqueue(*byte).is_err() {
                console.written.lost_bytes += 1;
            }
        }
        console.written.bytes += bytes.len() as u64;
        console.waiting += bytes.len() as u32;
        let is_line_due =
            bytes.contains(&b'\n') && cpu::tsc() - console.last_wake_tsc > timer::us_to_ticks(WAKE_INTERVAL_US);
        if is_line_due || console.waiting >= OUTPUT_BATCH {
            console.wake_control();
        }
    }

    /// Returns the number of bytes that it has written to its console.
    pub fn console_written(&self) -> ConsoleOutput {
        self.console.guest.lock().written
    }

    /// Notifies the control channel of output that waits.
    pub fn flush_console(&self) {
        let mut console = self.console.guest.lock();
        if console.waiting > 0 {
            console.wake_control();
        }
    }

    /// The next byte that was typed on its console, for COM1: nothing while its virtio console takes input.
    pub fn console_typed(&self) -> Option<u8> {
        if self.virtio_takes_input.load(Ordering::Relaxed) {
            return None;
        }
        self.console.guest.lock().next_typed()
    }

    /// Fills a buffer with what was typed, for its virtio console; returns how many bytes there were.
    pub fn virtio_console_typed(&self, into: &mut [u8]) -> usize {
        let mut console = self.console.guest.lock();
        into.iter_mut().map_while(|byte| console.next_typed().map(|typed| *byte = typed)).count()
    }

    /// Sets whether its virtio console takes input, or COM1 does. Input that COM1 holds already stays there.
    pub fn set_virtio_takes_input(&self, takes_input: bool) {
        self.virtio_takes_input.store(takes_input, Ordering::Relaxed);
    }

    /// The console's ends for the control channel.
    pub fn control_ends(&self) -> spin::MutexGuard<'_, ControlEnds> {
        self.console.control.lock()
    }

    /// The same if they are not locked: a CPU that was stopped may hold the lock for good.
    pub fn free_control_ends(&self) -> Option<spin::MutexGuard<'_, ControlEnds>> {
        self.console.control.try_lock()
    }

    /// Orders a poll of its devices: there is console input, or more work than one access may cost. Its first vCPU
    /// polls them.
    pub fn poll_devices(&self) {
        self.wants_poll.store(true, Ordering::Release);
        percpu::wake(self.cpu_to_notify(0));
    }

    /// Returns whether that is so, once. For the CPU that holds the first virtual one.
    pub fn take_wanted_poll(&self) -> bool {
        self.wants_poll.load(Ordering::Relaxed) && self.wants_poll.swap(false, Ordering::AcqRel)
    }

    /// Gathers what waits on the console, so that little is left for [`Self::save_console`].
    pub fn gather_console(&self) {
        self.console.control.lock().gather();
    }

    /// Saves what waits on the console, while no vCPU runs. It stays here as well.
    ///
    /// # Errors
    /// It finds no room.
    pub fn save_console(&self, bytes: &mut [u8], owner: Owner, version: u32) -> Result<(), String> {
        let (mut console, mut ends) = (self.console.guest.lock(), self.console.control.lock());
        while let Some(byte) = console.input.dequeue() {
            console.typed.push_back(byte);
        }
        let output = ends.gather();
        let mut block = BlockMut::<state::Console>::begin(bytes, owner, version).map_err(|error| error.to_string())?;
        let (into, tail) = block.parts().map_err(|error| error.to_string())?;
        let mut used = 0;
        let ((written, more_written), (typed, more_typed)) = (output.as_slices(), console.typed.as_slices());
        for part in [written, more_written, typed, more_typed] {
            tail.get_mut(used..used + part.len())
                .ok_or("its console does not fit into its block")?
                .copy_from_slice(part);
            used += part.len();
        }
        into.output_bytes = (output.len() as u32).into();
        into.input_bytes = (console.typed.len() as u32).into();
        block.finish(used).map_err(|error| error.to_string())
    }

    /// Puts what another image has saved before whatever has come since.
    ///
    /// # Errors
    /// The problem with it.
    pub fn adopt_console(&self, bytes: &[u8]) -> Result<(), String> {
        let owner = Owner { guest: self.number, vcpu: 0 };
        let (from, tail) = block::open::<state::Console>(bytes, owner).map_err(|error| error.to_string())?;
        let (output, typed) = from.split(tail).ok_or("its length differs from its header")?;
        self.console.control.lock().backlog.extend(output);
        self.console.guest.lock().typed.extend(typed);
        self.poll_devices();
        Ok(())
    }
}
