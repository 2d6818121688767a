// SPDX-License-Identifier: MIT OR Apache-2.0
//! The transport in the words of the hand-over.

use ::virtio::{Addresses, Options, Progress, Queue, feature, status};
use handover::Full;
use handover::state::{self, virtio_flag};
use zerocopy::FromBytes as _;

use super::transport::{ISR_CONFIG, ISR_QUEUE, NO_VECTOR, Slot, Transport};
use crate::devices::{StateError, piece};

/// Bytes that [`save`] writes.
pub(super) fn bytes(transport: &Transport) -> usize {
    size_of::<state::Virtio>() + transport.slots.len() * size_of::<state::VirtioQueue>()
}

/// Writes the state that the driver has set up, and how far each queue is; returns the bytes used.
///
/// # Errors
/// [`Full`] if there is no room.
pub(super) fn save(transport: &Transport, into: &mut [u8]) -> Result<usize, Full> {
    let head = state::Virtio {
        features: transport.accepted.into(),
        device_feature_select: transport.device_feature_select.into(),
        driver_feature_select: transport.driver_feature_select.into(),
        config_vector: transport.config_vector.into(),
        queue_select: transport.queue_select.into(),
        queues: (transport.slots.len() as u16).into(),
        status: transport.status,
        interrupt_status: transport.isr,
        generation: transport.generation,
        flags: if transport.has_reported { virtio_flag::FAULT_REPORTED } else { 0 },
        zero: [0; 6],
    };
    let mut used = piece::save(&head, into)?;
    for slot in &transport.slots {
        used += piece::save(&saved(slot), into.get_mut(used..).ok_or(Full)?)?;
    }
    Ok(used)
}

fn saved(slot: &Slot) -> state::VirtioQueue {
    let progress = slot.queue.as_ref().map(Queue::progress).unwrap_or_default();
    state::VirtioQueue {
        descriptors: slot.addresses.descriptors.into(),
        driver: slot.addresses.driver.into(),
        device: slot.addresses.device.into(),
        size: slot.size.into(),
        vector: slot.vector.into(),
        taken: progress.taken.into(),
        used: progress.used.into(),
        is_enabled: u32::from(slot.queue.is_some()).into(),
        zero: 0.into(),
    }
}

fn refused(field: &'static str, reason: &'static str) -> StateError {
    StateError { field, reason }
}

/// A transport like this one in a saved state, and what follows.
///
/// # Errors
/// [`StateError`] if this one cannot be in it.
pub(super) fn restored<'a>(own: &Transport, from: &'a [u8]) -> Result<(Transport, &'a [u8]), StateError> {
    let cut = refused("virtio", "its state is cut off");
    let (head, mut rest) = state::Virtio::read_from_prefix(from).map_err(|_| cut)?;
    let mut new = own.clone();
    new.accepted = head.features.get();
    new.device_feature_select = head.device_feature_select.get();
    new.driver_feature_select = head.driver_feature_select.get();
    (new.status, new.isr, new.generation) = (head.status, head.interrupt_status, head.generation);
    (new.config_vector, new.queue_select) = (head.config_vector.get(), head.queue_select.get());
    new.has_reported = head.flags & virtio_flag::FAULT_REPORTED != 0;
    check(&new, &head)?;
    let options = Options::of(new.accepted);
    let vectors = new.vectors();
    for slot in &mut new.slots {
        let (queue, behind) = state::VirtioQueue::read_from_prefix(rest).map_err(|_| cut)?;
        rest = behind;
        restore(slot, &queue, options)?;
        if !is_vector(slot.vector, vectors) {
            return Err(refused("virtio.queues.vector", "there is no such vector"));
        }
    }
    let has_queue = new.slots.iter().any(|slot| slot.queue.is_some());
    if has_queue && new.status & status::FEATURES_OK == 0 {
        return Err(refused("virtio.queues", "one is enabled without features"));
    }
    Ok((new, rest))
}

fn check(new: &Transport, head: &state::Virtio) -> Result<(), StateError> {
    let is_accepted = new.status & status::FEATURES_OK != 0;
    let known = status::DRIVERS | status::DEVICE_NEEDS_RESET;
    if usize::from(head.queues.get()) != new.slots.len() {
        return Err(refused("virtio.queues", "not as many as this device has"));
    }
    if is_accepted && (new.accepted & !new.offered != 0 || new.accepted & feature::VERSION_1 == 0) {
        return Err(refused("virtio.features", "the driver uses some that this image does not offer"));
    }
    if new.status & !known != 0 || !is_accepted && new.status & status::DRIVER_OK != 0 {
        return Err(refused("virtio.status", "no driver can have made this status"));
    }
    if new.isr & !(ISR_QUEUE | ISR_CONFIG) != 0 || head.flags & !virtio_flag::ALL != 0 {
        return Err(refused("virtio.interrupt_status", "a bit is unknown"));
    }
    if !is_vector(new.config_vector, new.vectors()) {
        return Err(refused("virtio.config_vector", "there is no such vector"));
    }
    Ok(())
}

fn is_vector(vector: u16, vectors: u16) -> bool {
    vector == NO_VECTOR || vector < vectors
}

fn restore(slot: &mut Slot, from: &state::VirtioQueue, options: Options) -> Result<(), StateError> {
    let (descriptors, driver, device) = (from.descriptors.get(), from.driver.get(), from.device.get());
    slot.addresses = Addresses { descriptors, driver, device };
    (slot.size, slot.vector) = (from.size.get(), from.vector.get());
    let progress = Progress { taken: from.taken.get(), used: from.used.get() };
    slot.queue = match from.is_enabled.get() {
        0 => None,
        1 if slot.size <= slot.most => {
            let queue = Queue::resume(slot.addresses, slot.size, options, progress);
            Some(queue.map_err(|_| refused("virtio.queues", "no queue can be in this state"))?)
        }
        _ => return Err(refused("virtio.queues.size", "more descriptors than this image offers")),
    };
    Ok(())
}
