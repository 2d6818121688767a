// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that go on: made ready while the old image runs them, restored when it has saved them.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use handover::block::{self, Owner};
use handover::layout::guests::{BlockPlace, Guest as GuestRecord, GuestState, MemoryUse, guest_flag};
use handover::layout::unpadded;
use handover::record::Record;
use handover::state::{self, BlockKind};
use spin::{Mutex, Once};
use units::{PhysAddr, PhysRange};
use wire::VmState;

use crate::arch::guest_memory::GuestRam;
use crate::arch::virt::Virt;
use crate::arch::{cpu_local, fault};
use crate::guests::guest::{GUESTS, Guest, Guests, Status};
use crate::guests::instance::Instance;
use crate::guests::leases;
use crate::guests::task::Task;
use crate::kernel::inherited;
use crate::kernel::ledger::guests::FRAME_SOURCE;
use crate::kernel::places;

/// What each CPU restores.
static SLOTS: Once<Box<[Mutex<Vec<Slot>>]>> = Once::new();

/// Something that a CPU restores.
enum Slot {
    Vcpu(Option<Box<Task>>, BlockPlace),
    Devices(Arc<Instance>, BlockPlace),
}

/// Sets the CPU that each vCPU belongs to, and is on. Before the guests are anybody's.
pub fn place_vcpus(guests: &mut Guests) {
    let Some(record) = inherited::record() else { return };
    for place in record.blocks.iter().filter(|place| place.kind.get() == BlockKind::Vcpu as u32) {
        if let Some(guest) = guests.all.get_mut(place.guest.get() as usize) {
            guest.set_placement(place.vcpu.get() as usize, place.own_cpu.get(), place.cpu.get());
        }
    }
}

/// Readies all guests that go on.
///
/// # Errors
/// What is wrong with one.
pub fn adopt_guests(virt: Virt) -> Result<(), String> {
    let (Some(record), Some(guests)) = (inherited::record(), GUESTS.get()) else { return Ok(()) };
    if record.guests.len() != guests.all.len() {
        return Err("the bundle has other guests than the image before told of".to_string());
    }
    record.guests.iter().zip(&guests.all).try_for_each(|(from, guest)| {
        adopt(virt, &record, &from, guest).map_err(|problem| format!("guest '{}': {problem}", guest.config.name))
    })
}

fn adopt(virt: Virt, record: &Record<'_>, from: &GuestRecord, guest: &'static Guest) -> Result<(), String> {
    if unpadded(&from.name) != guest.config.name || from.config_digest.get() != guest.config.digest() {
        return Err("the bundle says something else of it than the image before was told".to_string());
    }
    guest.adopt_status(status(from.state.get(), from.since_ns.get(), from), before_pause(from));
    if from.flags.get() & guest_flag::HAS_RUN == 0 {
        return Ok(());
    }
    let number = guest.number;
    let pieces = record.memory_of(number, MemoryUse::Memory).filter_map(|piece| {
        Some((PhysRange::from_start(PhysAddr(piece.start.get()), piece.bytes.get())?, piece.guest_address.get()))
    });
    let mut rising: Vec<(PhysRange, u64)> = Vec::new();
    for piece in pieces {
        rising.insert(rising.partition_point(|other| other.1 < piece.1), piece);
    }
    let memory =
        GuestRam::adopt(&FRAME_SOURCE, rising.into_iter()).ok_or("its memory does not begin at its address 0")?;
    let place = record.block_of(BlockKind::Policy, number, 0).ok_or("it has no policy")?;
    let owner = Owner { guest: number, vcpu: 0 };
    let adopted = inherited::with_block(place.start.get(), place.bytes.get(), |bytes| {
        let (policy, leaves) = block::open::<state::Policy>(bytes, owner).map_err(|error| error.to_string())?;
        Instance::adopt(virt, guest, memory, (&policy, leaves))
    });
    let (instance, tasks) = adopted.ok_or("its policy is nowhere")??;
    if from.flags.get() & guest_flag::STANDS_STILL != 0 {
        instance.begin_paused();
        guest.frozen.put(instance.clone());
    }
    if from.flags.get() & guest_flag::IS_HELD != 0 {
        leases::inherit(guest);
    }
    guest.set_run(Arc::downgrade(&instance));
    fill_slots(record, number, &instance, tasks)
}

fn fill_slots(record: &Record<'_>, number: u32, instance: &Arc<Instance>, tasks: Vec<Task>) -> Result<(), String> {
    for mut task in tasks {
        task.note_handed_over();
        let place = record.block_of(BlockKind::Vcpu, number, task.index() as u32);
        let place = place.ok_or("a vCPU has no state")?;
        places::occupy(place.cpu.get(), task.weight());
        fill_slot(place.cpu.get(), Slot::Vcpu(Some(Box::new(task)), place));
    }
    let place = record.block_of(BlockKind::Devices, number, 0).ok_or("its devices have no state")?;
    fill_slot(place.cpu.get(), Slot::Devices(instance.clone(), place));
    Ok(())
}

fn fill_slot(cpu: u32, what: Slot) {
    let all = SLOTS.call_once(|| (0..cpu_local::count()).map(|_| Mutex::default()).collect());
    if let Some(slots) = all.get(cpu as usize) {
        slots.lock().push(what);
    }
}

/// Restores each vCPU once from what was saved while guests went on, and sees whether it would go on so.
///
/// # Errors
/// What cannot be restored, or would be another one.
pub fn verify() -> Result<(), String> {
    for slots in SLOTS.get().into_iter().flatten() {
        for slot in slots.lock().iter_mut() {
            slot.verify()?;
        }
    }
    Ok(())
}

/// CPUs that carry something.
pub fn carriers() -> impl Iterator<Item = u32> {
    let all = SLOTS.get().map_or(&[][..], |all| all);
    (0..).zip(all).filter(|(_, slots)| !slots.lock().is_empty()).map(|(index, _)| index)
}

/// Restores all that the CPU `index` carries; `take` takes its vCPUs.
///
/// # Errors
/// What cannot be restored.
pub fn restore(index: u32, mut take: impl FnMut(Box<Task>)) -> Result<(), String> {
    let Some(slots) = SLOTS.get().and_then(|all| all.get(index as usize)) else { return Ok(()) };
    for slot in slots.lock().iter_mut() {
        slot.restore()?;
        if let Slot::Vcpu(task, _) = slot {
            task.take().into_iter().for_each(&mut take);
        }
    }
    Ok(())
}

/// A vCPU that was only tried is restored again, in earnest.
pub fn refill_slot(cpu: u32, task: Box<Task>) {
    let Some(slots) = SLOTS.get().and_then(|all| all.get(cpu as usize)) else { return };
    for slot in slots.lock().iter_mut() {
        if let Slot::Vcpu(empty @ None, place) = slot
            && (place.guest.get(), place.vcpu.get()) == (task.owner().guest, task.owner().vcpu)
        {
            *empty = Some(task);
            return;
        }
    }
}

/// Everything has been restored, and is its CPUs'.
pub fn drop_slots() {
    for slots in SLOTS.get().into_iter().flatten() {
        drop(core::mem::take(&mut *slots.lock()));
    }
}

impl Slot {
    fn restore(&mut self) -> Result<(), String> {
        match self {
            Self::Vcpu(None, _) => Ok(()),
            Self::Vcpu(Some(task), place) => {
                let restored = shown(place, |bytes| {
                    fault::point!(
                        crate::lifecycle::faults::update::with_saved(bytes, |bytes| task.restore(bytes)),
                        else task.restore(bytes)
                    )
                });
                restored.map_err(|problem| told(&task.instance().guest.config.name, place.vcpu.get(), &problem))
            }
            Self::Devices(instance, place) => {
                let owner = Owner { guest: instance.guest.number, vcpu: 0 };
                let restored = shown(place, |bytes| {
                    let (from, tail) =
                        block::open::<state::Devices>(bytes, owner).map_err(|error| error.to_string())?;
                    instance.machine.restore_devices(&from, tail).map_err(|error| error.to_string())
                });
                restored.map_err(|problem| format!("guest '{}', devices: {problem}", instance.guest.config.name))
            }
        }
    }

    /// Whether it would go on with what was saved.
    fn verify(&mut self) -> Result<(), String> {
        let Self::Vcpu(Some(_), _) = self else { return Ok(()) };
        self.restore()?;
        let Self::Vcpu(Some(task), place) = self else { return Ok(()) };
        fault::point!(if crate::lifecycle::faults::update::is_astray() {
            task.stray()
        });
        let mut scratch = vec![0; place.bytes.get() as usize];
        let verified = shown(place, |bytes| task.verify(bytes, &mut scratch));
        verified.map_err(|problem| told(&task.instance().guest.config.name, place.vcpu.get(), &problem))
    }
}

fn shown(place: &BlockPlace, restore: impl FnOnce(&[u8]) -> Result<(), String>) -> Result<(), String> {
    inherited::with_block(place.start.get(), place.bytes.get(), restore).unwrap_or_else(|| Err("it is nowhere".into()))
}

fn told(guest: &str, vcpu: u32, problem: &str) -> String {
    format!("guest '{guest}', vCPU {vcpu}: {problem}")
}

fn status(number: u32, since_ns: u64, from: &GuestRecord) -> Status {
    let state = match GuestState::from_number(number) {
        Some(GuestState::Running) => VmState::Running,
        Some(GuestState::Paused) => VmState::Paused,
        Some(GuestState::Panicked) => VmState::Panicked,
        Some(GuestState::Hung) => VmState::Hung,
        Some(GuestState::Stopped) => VmState::Stopped,
        Some(GuestState::Failed) | None => VmState::Failed,
    };
    let reason = unpadded(&from.reason);
    Status { state, since_ns, reason: (!reason.is_empty()).then(|| reason.to_string()) }
}

fn before_pause(from: &GuestRecord) -> Option<Status> {
    let number = from.state_before_pause.get();
    (number != 0).then(|| status(number, from.since_before_pause_ns.get(), from))
}
