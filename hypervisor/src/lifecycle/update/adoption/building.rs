// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's run, built from what the old image hands over of it.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use ::update::adoption::{Builder, Built, Known, Mismatch, Plan};
use ::update::slots::Slot;
use handover::block::{self, Owner};
use handover::layout::guests::Guest as GuestRecord;
use handover::state::{self, BlockKind};

use crate::arch::guest_memory::GuestRam;
use crate::arch::virt::Virt;
use crate::guests::guest::Guest;
use crate::guests::instance::Instance;
use crate::guests::leases;
use crate::guests::task::Task;
use crate::kernel::inherited;
use crate::kernel::ledger::guests::FRAME_SOURCE;
use crate::kernel::places;
use crate::lifecycle::update::{guest_state, on_demand};

/// The reason why a guest cannot be built, as text.
pub struct Problem(String);

impl From<Mismatch> for Problem {
    fn from(mismatch: Mismatch) -> Self {
        Self(mismatch.to_string())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A slot that a CPU of this number is given.
type Assign = fn(u32, Slot<Box<Task>, Arc<Instance>>);

/// The guests of the bundle, as they are built.
pub struct Building<'a> {
    virt: Virt,
    guests: &'a [Arc<Guest>],
    assign: Assign,
}

impl<'a> Building<'a> {
    /// Builds these guests.
    pub fn new(virt: Virt, guests: &'a [Arc<Guest>], assign: Assign) -> Self {
        Self { virt, guests, assign }
    }
}

impl Builder for Building<'_> {
    type Run = Arc<Instance>;
    type Vcpu = Box<Task>;
    type Error = Problem;

    fn guests(&self) -> usize {
        self.guests.len()
    }

    fn known(&self, guest: usize) -> Known<'_> {
        let config = &self.guests[guest].config;
        Known { name: &config.name, digest: config.digest() }
    }

    fn set_status(&mut self, guest: usize, from: &GuestRecord) {
        self.guests[guest].adopt_status(guest_state::status(from), guest_state::before_pause(from));
    }

    fn build(&mut self, guest: usize, plan: &Plan) -> Result<Built<Self>, Problem> {
        let guest = &self.guests[guest];
        let memory = match on_demand::adopt(guest).map_err(Problem)? {
            Some(memory) => memory,
            None => GuestRam::adopt(&FRAME_SOURCE, plan.memory.iter().copied())
                .ok_or_else(|| Problem("its memory does not begin at its address 0".into()))?,
        };
        let owner = Owner { guest: guest.number, vcpu: 0 };
        let (start, bytes) = (plan.policy.start.get(), plan.policy.bytes.get());
        let adopted = inherited::with_block(start, bytes, |bytes| {
            let (policy, leaves) = block::open::<state::Policy>(bytes, owner).map_err(|error| error.to_string())?;
            let functions = functions_of(owner)?;
            Instance::adopt(self.virt, guest, memory, (&policy, leaves), &functions)
        });
        let adopted = adopted.unwrap_or_else(|| Err("its policy is nowhere".into()));
        let (run, tasks) = adopted.map_err(Problem)?;
        run.plug();
        Ok((run, tasks.into_iter().map(Box::new).collect()))
    }

    fn number_of(&self, task: &Self::Vcpu) -> u32 {
        task.index() as u32
    }

    fn pause(&mut self, guest: usize, run: &Self::Run) {
        run.begin_paused();
        self.guests[guest].frozen.hold(run.clone());
    }

    fn hold(&mut self, guest: usize) {
        leases::inherit(&self.guests[guest]);
    }

    fn set_run(&mut self, guest: usize, run: &Self::Run) {
        self.guests[guest].set_run(Arc::downgrade(run));
    }

    fn assign(&mut self, cpu: u32, mut slot: Slot<Self::Vcpu, Self::Run>) {
        if let Slot::Vcpu(Some(task), _) = &mut slot {
            task.note_handed_over();
            places::occupy(cpu, task.weight());
        }
        (self.assign)(cpu, slot);
    }
}

/// The packed states of a guest's physical functions.
fn functions_of(owner: Owner) -> Result<Vec<u8>, String> {
    let place = inherited::record().and_then(|record| record.block_of(BlockKind::Functions, owner.guest, 0));
    let Some(place) = place else { return Ok(Vec::new()) };
    let read = inherited::with_block(place.start.get(), place.bytes.get(), |bytes| {
        let opened = block::open::<state::Functions>(bytes, owner);
        let (head, tail) = opened.map_err(|error| format!("its functions: {error}"))?;
        let is_whole = tail.len() == head.count.get() as usize * size_of::<state::AssignedFunction>();
        is_whole.then(|| tail.to_vec()).ok_or_else(|| "its functions are not as many as they should be".to_string())
    });
    read.unwrap_or_else(|| Err("its functions are nowhere".to_string()))
}
