// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common configuration structure (section 4.1.4.3).

use ::virtio::{Fault, status};

use super::transport::{NO_VECTOR, Slot, Transport};
use crate::addr::AccessSize;

const DEVICE_FEATURE_SELECT: u32 = 0;
const DEVICE_FEATURE: u32 = 4;
const DRIVER_FEATURE_SELECT: u32 = 8;
const DRIVER_FEATURE: u32 = 12;
const CONFIG_VECTOR: u32 = 16;
const QUEUES: u32 = 18;
const STATUS: u32 = 20;
const GENERATION: u32 = 21;
const QUEUE_SELECT: u32 = 22;
const QUEUE_SIZE: u32 = 24;
const QUEUE_VECTOR: u32 = 26;
const QUEUE_ENABLE: u32 = 28;
const QUEUE_NOTIFY_OFFSET: u32 = 30;
const QUEUE_DESCRIPTORS: u32 = 32;
const QUEUE_DRIVER: u32 = 40;
const QUEUE_DEVICE: u32 = 48;
const QUEUE_RESET: u32 = 58;
const BYTES: usize = 64;

/// The action of the rest of the device after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    Nothing,
    /// It is reset.
    Reset,
    /// This queue is reset.
    ResetQueue(u16),
}

impl Transport {
    /// Reads some bytes; those past the last field are zero. The status of a device that is not ready after its
    /// reset is not zero yet (4.1.4.3.1).
    pub fn read_common(&self, at: u32, size: AccessSize, is_ready: bool) -> u64 {
        let is_resetting = self.status == 0 && !is_ready;
        let mut all = [0; BYTES + 8];
        let mut put = |at: u32, bytes: &[u8]| all[at as usize..][..bytes.len()].copy_from_slice(bytes);
        put(DEVICE_FEATURE_SELECT, &self.device_feature_select.to_le_bytes());
        put(DEVICE_FEATURE, &half(self.offered, self.device_feature_select).to_le_bytes());
        put(DRIVER_FEATURE_SELECT, &self.driver_feature_select.to_le_bytes());
        put(DRIVER_FEATURE, &half(self.accepted, self.driver_feature_select).to_le_bytes());
        put(CONFIG_VECTOR, &self.config_vector.to_le_bytes());
        put(QUEUES, &(self.slots.len() as u16).to_le_bytes());
        put(STATUS, &[if is_resetting { status::DEVICE_NEEDS_RESET } else { self.status }]);
        put(GENERATION, &[self.generation]);
        put(QUEUE_SELECT, &self.queue_select.to_le_bytes());
        // A queue that is not there has no descriptors.
        if let Some(slot) = self.slots.get(usize::from(self.queue_select)) {
            put(QUEUE_SIZE, &slot.size.to_le_bytes());
            put(QUEUE_VECTOR, &slot.vector.to_le_bytes());
            put(QUEUE_ENABLE, &u16::from(slot.queue.is_some()).to_le_bytes());
            put(QUEUE_NOTIFY_OFFSET, &self.queue_select.to_le_bytes());
            put(QUEUE_DESCRIPTORS, &slot.addresses.descriptors.to_le_bytes());
            put(QUEUE_DRIVER, &slot.addresses.driver.to_le_bytes());
            put(QUEUE_DEVICE, &slot.addresses.device.to_le_bytes());
        } else {
            put(QUEUE_VECTOR, &NO_VECTOR.to_le_bytes());
        }
        let from = all.get(at as usize..).and_then(|bytes| bytes.first_chunk::<8>()).copied().unwrap_or_default();
        u64::from_le_bytes(from) & size.mask()
    }

    /// Writes a field. Drivers access each by its own width, fields of eight bytes by halves or whole (4.1.3.1).
    ///
    /// # Errors
    /// The driver's [`Fault`] where it enables a queue that cannot be.
    pub fn write_common(&mut self, at: u32, size: AccessSize, value: u64) -> Result<Effect, Fault> {
        match (at, size) {
            (QUEUE_DESCRIPTORS..QUEUE_RESET, AccessSize::Qword) if at.is_multiple_of(8) => {
                self.write_dword(at, value as u32);
                self.write_dword(at + 4, (value >> 32) as u32);
            }
            (_, AccessSize::Dword) => self.write_dword(at, value as u32),
            (_, AccessSize::Word) => return self.write_word(at, value as u16),
            (STATUS, AccessSize::Byte) if value == 0 => return Ok(Effect::Reset),
            (STATUS, AccessSize::Byte) => self.add_status(value as u8),
            _ => {}
        }
        Ok(Effect::Nothing)
    }

    fn write_dword(&mut self, at: u32, value: u32) {
        let select = self.driver_feature_select;
        match at {
            DEVICE_FEATURE_SELECT => self.device_feature_select = value,
            DRIVER_FEATURE_SELECT => self.driver_feature_select = value,
            // Once the device has accepted them they stay (3.1.1).
            DRIVER_FEATURE if self.status & status::FEATURES_OK == 0 => set_half(&mut self.accepted, select, value),
            QUEUE_DESCRIPTORS..QUEUE_RESET => self.write_address(at, value),
            _ => {}
        }
    }

    fn write_address(&mut self, at: u32, value: u32) {
        let Some(slot) = self.idle_slot() else { return };
        let address = match at & !4 {
            QUEUE_DESCRIPTORS => &mut slot.addresses.descriptors,
            QUEUE_DRIVER => &mut slot.addresses.driver,
            QUEUE_DEVICE => &mut slot.addresses.device,
            _ => return,
        };
        set_half(address, u32::from(at & 4 != 0), value);
    }

    fn write_word(&mut self, at: u32, value: u16) -> Result<Effect, Fault> {
        match (at, value) {
            (CONFIG_VECTOR, _) => self.config_vector = self.vector(value),
            (QUEUE_SELECT, _) => self.queue_select = value,
            (QUEUE_SIZE, _) => _ = self.idle_slot().map(|slot| slot.size = value),
            (QUEUE_VECTOR, _) => {
                let vector = self.vector(value);
                _ = self.slots.get_mut(usize::from(self.queue_select)).map(|slot| slot.vector = vector);
            }
            (QUEUE_ENABLE, 1) => self.enable_queue()?,
            (QUEUE_RESET, 1) => return Ok(self.reset_queue().map_or(Effect::Nothing, Effect::ResetQueue)),
            _ => {}
        }
        Ok(Effect::Nothing)
    }

    /// The selected queue, unless it is enabled: then nothing of it changes.
    fn idle_slot(&mut self) -> Option<&mut Slot> {
        self.slots.get_mut(usize::from(self.queue_select)).filter(|slot| slot.queue.is_none())
    }

    /// A vector that is not there reads back as none (4.1.5.1.2).
    fn vector(&self, value: u16) -> u16 {
        if value < self.vectors() { value } else { NO_VECTOR }
    }
}

/// Half of 64 bits; there are no others.
fn half(bits: u64, select: u32) -> u32 {
    match select {
        0 => bits as u32,
        1 => (bits >> 32) as u32,
        _ => 0,
    }
}

fn set_half(bits: &mut u64, select: u32, value: u32) {
    match select {
        0 => *bits = *bits & !0xffff_ffff | u64::from(value),
        1 => *bits = *bits & 0xffff_ffff | u64::from(value) << 32,
        _ => {}
    }
}
