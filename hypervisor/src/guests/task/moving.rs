// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU between two images: saved by the old one, restored by the new one; or between two runs of its guest. Nothing
//! here allocates.

use alloc::format;
use alloc::string::{String, ToString};

use handover::block::{self, BlockMut, Owner};
use handover::schema::{Described as _, Field};
use handover::{VERSION, state};

use zerocopy::IntoBytes as _;

use super::Task;
use crate::arch::cpu;

impl Task {
    /// Returns the owner of its block.
    pub fn owner(&self) -> Owner {
        Owner { guest: self.instance.guest.rank(), vcpu: self.index as u32 }
    }

    /// Saves it, while it is not loaded and no sender leaves it messages. `stolen_ticks` others had the CPU while it
    /// wanted to run, and until it goes on it waits, if it `wants_to_run`.
    ///
    /// # Errors
    /// The problem of the block.
    pub fn save(&self, bytes: &mut [u8], version: u32, stolen_ticks: u64, wants_to_run: bool) -> Result<(), String> {
        self.save_as(self.owner(), bytes, version, (stolen_ticks, wants_to_run)).map(drop)
    }

    /// Saves it as this owner's; returns the bytes in use behind the first page.
    pub(super) fn save_as(
        &self,
        owner: Owner,
        bytes: &mut [u8],
        version: u32,
        (stolen_ticks, wants_to_run): (u64, bool),
    ) -> Result<usize, String> {
        let mut block = BlockMut::<state::Vcpu>::begin(bytes, owner, version).map_err(|error| error.to_string())?;
        let (into, tail) = block.parts().map_err(|error| error.to_string())?;
        self.instance.machine.save_vcpu(&*self.vcpu, &self.cpu, into);
        self.instance.machine.save_mailbox(self.index, into);
        let used = self
            .vcpu
            .save_extended(&mut into.extended, tail)
            .map_err(|_| "its registers do not fit into their block")?;
        into.turn = state::Turn {
            stolen_ticks: self.stolen_before.saturating_add(stolen_ticks).into(),
            left_at: cpu::tsc().into(),
            wants_to_run: u32::from(wants_to_run).into(),
            zero: 0.into(),
        };
        block.finish(used).map_err(|error| error.to_string())?;
        Ok(used)
    }

    /// Takes over what was saved.
    ///
    /// # Errors
    /// The problem of it: it must not run.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut widened = None;
        let opened = block::open_in_place::<state::Vcpu>(bytes, self.owner(), &mut widened);
        let (from, tail) = opened.map_err(|error| error.to_string())?;
        self.take_over(from, tail)
    }

    /// Takes over a saved state.
    ///
    /// # Errors
    /// The problem of it: it must not run.
    pub fn take_over(&mut self, from: &state::Vcpu, tail: &[u8]) -> Result<(), String> {
        let machine = &self.instance.machine;
        let restored = machine.restore_vcpu(from, &mut *self.vcpu, &mut self.cpu);
        restored.map_err(|error| error.to_string())?;
        self.vcpu.restore_extended(&from.extended, tail).map_err(|error| error.to_string())?;
        self.stolen_before = from.turn.stolen_ticks.get();
        self.left_at = (from.turn.wants_to_run.get() == 1).then_some(from.turn.left_at.get());
        Ok(())
    }

    /// Checks that it would go on with the saved state: it is saved once more, into `scratch`, and compared. State that
    /// the moment decides is left out: its share of the CPU, and the counts of its performance counters.
    ///
    /// # Errors
    /// The difference.
    pub fn verify(&self, bytes: &[u8], scratch: &mut [u8]) -> Result<(), String> {
        let text = |error: block::BlockError| error.to_string();
        self.save(scratch, VERSION, 0, false)?;
        let (from, from_tail) = block::open::<state::Vcpu>(bytes, self.owner()).map_err(text)?;
        let (mut again, again_tail) = block::open::<state::Vcpu>(scratch, self.owner()).map_err(text)?;
        (again.turn, again.pmu.values) = (from.turn, from.pmu.values);
        let differs = |field: &&Field| {
            let bytes = field.offset..field.offset + field.bytes;
            from.as_bytes().get(bytes.clone()) != again.as_bytes().get(bytes)
        };
        match state::Vcpu::FIELDS.iter().find(differs) {
            Some(field) => Err(format!("it would go on with other {} than it was saved with", field.name)),
            None if from_tail != again_tail => Err("its extended registers are not what was saved".to_string()),
            None => Ok(()),
        }
    }

    /// A self-test: it would go on elsewhere.
    #[cfg(feature = "faults")]
    pub fn stray(&mut self) {
        let rip = self.vcpu.rip();
        self.vcpu.set_rip(rip ^ 1);
    }
}
