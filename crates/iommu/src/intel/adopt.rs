// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adopting a unit from an image before this one: it is read and checked, and nothing is written.

use units::{PAGE_BYTES, PhysAddr};

use crate::hardware::{Memory, Registers};
use crate::intel::capabilities::Capabilities;
use crate::intel::coherence::Stores;
use crate::intel::interrupts::{self, Remapping};
use crate::intel::queue::{self, Queue};
use crate::intel::registers::{
    COMPATIBILITY_INTERRUPTS, EXTENDED_INTERRUPTS, INTERRUPT_REMAPPING, INTERRUPT_TABLE, QUEUE_ADDRESS,
    QUEUED_INVALIDATION, ROOT_TABLE, TRANSLATION, status,
};
use crate::intel::start::Place;
use crate::intel::tables::{Context, Contexts};
use crate::intel::unit::Unit;
use crate::problem::Problem;

/// The addresses of an image's tables, for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The root table.
    pub root: PhysAddr,
    /// The invalidation queue.
    pub queue: PhysAddr,
    /// The interrupt remapping table, if interrupts are remapped.
    pub interrupts: Option<PhysAddr>,
}

impl Left {
    /// Reads the addresses of the tables from the unit's registers. `is_ours` states whether a range (address and
    /// bytes) is memory that the host had for such tables.
    ///
    /// # Errors
    /// [`Problem::NotAdopted`] if one of them is elsewhere.
    pub fn found(registers: &mut impl Registers, is_ours: impl Fn(PhysAddr, u64) -> bool) -> Result<Self, Problem> {
        let has_interrupts = status(registers)? & INTERRUPT_REMAPPING != 0;
        let mut at = |register, bytes, reason| {
            let at = PhysAddr(registers.read64(register)).align_down(PAGE_BYTES);
            if is_ours(at, bytes) { Ok(at) } else { Err(Problem::NotAdopted { reason }) }
        };
        let root = at(ROOT_TABLE, PAGE_BYTES, "the root table is not in the tables' memory")?;
        let queue = at(QUEUE_ADDRESS, queue::BYTES, "the invalidation queue is not in the tables' memory")?;
        let interrupts = has_interrupts
            .then(|| at(INTERRUPT_TABLE, interrupts::BYTES, "the interrupt table is not in the tables' memory"));
        Ok(Self { root, queue, interrupts: interrupts.transpose()? })
    }
}

impl<R: Registers> Unit<R> {
    /// Returns the addresses of the tables, for [`adopt`](Self::adopt).
    pub fn left(&self) -> Left {
        Left {
            root: self.contexts.root(),
            queue: self.queue.at(),
            interrupts: self.remapping.as_ref().map(Remapping::at),
        }
    }

    /// Adopts the unit as the image before has `left` it. Neither registers nor tables are written.
    ///
    /// # Errors
    /// [`Problem::Absurd`], [`Problem::Lacks`], or [`Problem::NotAdopted`] with the reason.
    pub fn adopt(mut registers: R, memory: &impl Memory, place: Place, left: Left) -> Result<Self, Problem> {
        let capabilities = Capabilities::read(&mut registers, place.window_bytes)?;
        let status = status(&mut registers)?;
        check_registers(&mut registers, status, left).map_err(not_adopted)?;
        let stores = Stores { is_coherent: capabilities.is_coherent() };
        let contexts = Contexts::adopt(left.root, stores);
        let has_four_levels = capabilities.has_four_levels();
        let is_ours = |context: Context| context.is_ours(has_four_levels) && capabilities.has_domain(context.domain());
        contexts.check(memory, is_ours).map_err(not_adopted)?;
        let queue = Queue::adopt(&mut registers, memory, left.queue).map_err(not_adopted)?;
        let remapping = match left.interrupts {
            Some(at) => Some(remapping(&mut registers, memory, at, stores).map_err(not_adopted)?),
            None => None,
        };
        Ok(Self { registers, capabilities, segment: place.segment, contexts, queue, remapping })
    }
}

fn check_registers(registers: &mut impl Registers, status: u32, left: Left) -> Result<(), &'static str> {
    if status & TRANSLATION == 0 {
        return Err("translation is disabled");
    }
    if registers.read64(ROOT_TABLE) != left.root.0 {
        return Err("the root table is elsewhere or in another mode");
    }
    if status & QUEUED_INVALIDATION == 0 {
        return Err("queued invalidation is disabled");
    }
    if (status & INTERRUPT_REMAPPING != 0) != left.interrupts.is_some() {
        return Err("interrupt remapping is enabled without a table, or disabled");
    }
    if left.interrupts.is_some() && status & COMPATIBILITY_INTERRUPTS != 0 {
        return Err("interrupts in compatibility format are not blocked");
    }
    Ok(())
}

fn remapping(
    registers: &mut impl Registers,
    memory: &impl Memory,
    at: PhysAddr,
    stores: Stores,
) -> Result<Remapping, &'static str> {
    let register = registers.read64(INTERRUPT_TABLE);
    let remapping = Remapping::adopt(memory, at, register & EXTENDED_INTERRUPTS != 0, stores)?;
    match remapping.register() == register & !EXTENDED_INTERRUPTS {
        true => Ok(remapping),
        false => Err("the interrupt remapping table is elsewhere or of another size"),
    }
}

fn not_adopted(reason: &'static str) -> Problem {
    Problem::NotAdopted { reason }
}
