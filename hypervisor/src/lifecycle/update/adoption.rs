// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that go on: made ready while the old image runs them, restored when it has saved them. [`::update::adoption`]
//! checks a guest, [`::update::slots`] decides what a CPU restores.

mod building;
mod restoring;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use ::update::adoption::Refused;
use ::update::slots::{Slot, Slots};
use handover::state::BlockKind;
use spin::{Mutex, Once};

use self::building::Building;
use self::restoring::Restoring;
use crate::arch::cpu_local;
use crate::arch::virt::Virt;
use crate::guests::configuration;
use crate::guests::guest::Guest;
use crate::guests::instance::Instance;
use crate::guests::slots::GUESTS;
use crate::guests::task::Task;
use crate::kernel::inherited;

/// The slots that one CPU restores.
type CpuSlots = Slots<Box<Task>, Arc<Instance>>;

/// The slots of each CPU; `None` where it restores nothing.
static SLOTS: Once<Box<[Mutex<Option<CpuSlots>>]>> = Once::new();

/// Sets the CPU that each vCPU of a guest belongs to, and is on. Before the guest is shared.
pub fn place_vcpus(guest: &mut Guest) {
    let Some(record) = inherited::record() else { return };
    let wanted = (BlockKind::Vcpu as u32, guest.number);
    for place in record.blocks.iter().filter(|place| (place.kind.get(), place.guest.get()) == wanted) {
        guest.set_placement(place.vcpu.get() as usize, place.own_cpu.get(), place.cpu.get());
    }
}

/// Readies all guests that go on.
///
/// # Errors
/// The problem of one.
pub fn adopt_guests(virt: Virt) -> Result<(), String> {
    let Some(record) = inherited::record() else { return Ok(()) };
    if configuration::bundle().is_none() && !record.guests.is_empty() {
        return Err("its bundle cannot be read; the log names the reason".to_string());
    }
    let guests: Vec<Arc<Guest>> = GUESTS.all().collect();
    let mut building = Building::new(virt, &guests, assign);
    ::update::adoption::adopt_guests(&record, &mut building).map_err(|Refused { guest, problem }| {
        match guest.and_then(|guest| guests.get(guest)) {
            Some(guest) => format!("guest '{}': {problem}", guest.config.name),
            None => problem.to_string(),
        }
    })
}

fn assign(cpu: u32, slot: Slot<Box<Task>, Arc<Instance>>) {
    let all = SLOTS.call_once(|| (0..cpu_local::count()).map(|_| Mutex::new(None)).collect());
    if let Some(slots) = all.get(cpu as usize) {
        slots.lock().get_or_insert_with(CpuSlots::default).add(slot);
    }
}

/// Runs `visit` on the slots of the CPU `index`; `None` if it restores nothing.
fn with_slots<T>(index: u32, visit: impl FnOnce(&mut CpuSlots) -> T) -> Option<T> {
    SLOTS.get()?.get(index as usize)?.lock().as_mut().map(visit)
}

/// Restores each vCPU once from what was saved while guests went on, and sees whether it would go on so.
///
/// # Errors
/// The state that cannot be restored, or would differ.
pub fn verify() -> Result<(), String> {
    carriers().try_for_each(|index| with_slots(index, |slots| slots.verify(&mut Restoring)).unwrap_or(Ok(())))
}

/// CPUs that carry something.
pub fn carriers() -> impl Iterator<Item = u32> {
    let all = SLOTS.get().map_or(&[][..], |all| all);
    (0..).zip(all).filter(|(_, slots)| slots.lock().is_some()).map(|(index, _)| index)
}

/// Restores all that the CPU `index` carries; `take` takes its vCPUs.
///
/// # Errors
/// The state that cannot be restored.
pub fn restore(index: u32, take: impl FnMut(Box<Task>)) -> Result<(), String> {
    with_slots(index, |slots| slots.restore(&mut Restoring, take)).unwrap_or(Ok(()))
}

/// A vCPU that was only tried is restored again, in earnest.
pub fn refill_slot(cpu: u32, task: Box<Task>) {
    let owner = (task.owner().guest, task.owner().vcpu);
    // One without a slot of its own was not taken from this CPU, and is dropped.
    let _ = with_slots(cpu, |slots| slots.put_back(owner, task));
}

/// Everything has been restored, and is its CPUs'.
pub fn drop_slots() {
    for slots in SLOTS.get().into_iter().flatten() {
        drop(slots.lock().take());
    }
}
