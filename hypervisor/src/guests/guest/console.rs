// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's console between two images: what waits in it goes along.

use alloc::collections::VecDeque;
use alloc::string::{String, ToString};

use handover::block::{self, BlockMut, Owner};
use handover::state;

use super::{ControlEnds, Guest};

impl ControlEnds {
    /// Bytes that wait.
    pub fn waiting(&self) -> usize {
        self.backlog.len() + self.output.len()
    }

    /// The oldest that waits.
    pub fn next_byte(&mut self) -> Option<u8> {
        self.backlog.pop_front().or_else(|| self.output.dequeue())
    }

    /// Returns what waits, all in one place; where more may come.
    fn gather(&mut self) -> &VecDeque<u8> {
        while let Some(byte) = self.output.dequeue() {
            self.backlog.push_back(byte);
        }
        &self.backlog
    }
}

impl Guest {
    /// Gathers what waits on the console, so that little is left for [`Self::save_console`].
    pub fn gather_console(&self) {
        self.control.lock().gather();
    }

    /// Saves what waits on the console, while no vCPU runs. It stays here as well.
    ///
    /// # Errors
    /// It finds no room.
    pub fn save_console(&self, bytes: &mut [u8], owner: Owner, version: u32) -> Result<(), String> {
        let (mut console, mut ends) = (self.console.lock(), self.control.lock());
        while let Some(byte) = console.input.dequeue() {
            console.typed.push_back(byte);
        }
        let output = ends.gather();
        let mut block = BlockMut::<state::Console>::begin(bytes, owner, version).map_err(|error| error.to_string())?;
        let (into, tail) = block.parts().map_err(|error| error.to_string())?;
        let mut used = 0;
        for part in [output.as_slices(), console.typed.as_slices()].into_iter().flat_map(|(a, b)| [a, b]) {
            tail.get_mut(used..used + part.len()).ok_or("its console finds no room")?.copy_from_slice(part);
            used += part.len();
        }
        into.output_bytes = (output.len() as u32).into();
        into.input_bytes = (console.typed.len() as u32).into();
        block.finish(used).map_err(|error| error.to_string())
    }

    /// Puts what another image has saved before whatever has come since.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn adopt_console(&self, bytes: &[u8]) -> Result<(), String> {
        let owner = Owner { guest: self.number, vcpu: 0 };
        let (from, tail) = block::open::<state::Console>(bytes, owner).map_err(|error| error.to_string())?;
        let (output, typed) = from.split(tail).ok_or("not as many bytes as it says")?;
        self.control.lock().backlog.extend(output);
        self.console.lock().typed.extend(typed);
        self.type_on();
        Ok(())
    }
}
