// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's devices in the hand-over's words: a tagged block for each, whatever it is.

use handover::devices::{DeviceBlocks, DeviceWriter, block_bytes};
use handover::image::Reader;
use handover::schema::Described as _;
use handover::state;
use zerocopy::FromZeros as _;

use super::{Full, version_3};
use crate::devices::StateError;
use crate::devices::device::{Device, Tag};
use crate::machine::Machine;
use crate::memory::GuestMemory;

impl<M: GuestMemory> Machine<M> {
    /// The most bytes that [`save_devices`](Self::save_devices) puts behind the structure, in any version.
    pub fn devices_tail_bytes(&self) -> usize {
        self.bus.devices().map(|device| block_bytes(device.lock().state_bytes())).sum()
    }

    /// Saves the devices for a reader, once all vCPUs have stopped. Returns the bytes of
    /// `tail` that are in use.
    ///
    /// # Errors
    /// [`Full`] if `tail` is too short, or the reader knows nothing of a device
    /// ([`can_be_read_by`](Self::can_be_read_by)).
    pub fn save_devices(&self, into: &mut state::Devices, tail: &mut [u8], reader: Reader) -> Result<usize, Full> {
        into.zero();
        if reader.version < state::DeviceBlock::SINCE {
            return version_3::save(&self.bus, into, tail).map_err(|_| Full);
        }
        let mut writer = DeviceWriter::new(tail);
        for device in self.bus.devices() {
            let device = device.lock();
            let Tag { kind, instance } = device.tag();
            if !reader.knows(kind) {
                // The reader's machine has no such device.
                if device.is_dispensable() { continue } else { return Err(Full) }
            }
            writer.add((kind, instance, device.state_version()), |place| device.save(place)).map_err(|_| Full)?;
        }
        let (blocks, used) = writer.finish();
        into.blocks = blocks.into();
        Ok(used)
    }

    /// Puts the devices into a saved state.
    ///
    /// # Errors
    /// [`StateError`] if this machine's devices cannot be in it; then the machine must not run.
    pub fn restore_devices(&self, from: &state::Devices, tail: &[u8]) -> Result<(), StateError> {
        match from.blocks.get() {
            // There is no machine without devices: version 3 wrote it.
            0 => version_3::restore(&self.bus, from, tail)?,
            count => self.restore_blocks(count, tail)?,
        }
        self.bus.place_functions();
        Ok(())
    }

    /// Restores each device from its block. Blocks come in the order of the devices where both images know the same
    /// ones: guests wait meanwhile, and to search all blocks for each device took a fifth of an update's blackout.
    fn restore_blocks(&self, count: u32, tail: &[u8]) -> Result<(), StateError> {
        let blocks = DeviceBlocks::open(count, tail)
            .ok_or(refused("their number differs from the header, or they are cut off"))?;
        let mut in_order = blocks.iter();
        let mut devices = 0;
        for device in self.bus.devices() {
            let own = device.lock().tag();
            let next = in_order.next().filter(|(header, _)| tag_of(header) == own);
            let found = next.or_else(|| blocks.iter().find(|(header, _)| tag_of(header) == own));
            match found {
                Some((header, payload)) => {
                    devices += 1;
                    restore(&mut *device.lock(), header.version.get(), payload)?;
                }
                None if device.lock().restore_nothing() => {}
                None => return Err(self.mismatch(&blocks)),
            }
        }
        // No two devices have one tag. So as many blocks as devices that have one are one for each.
        if devices == count { Ok(()) } else { Err(self.mismatch(&blocks)) }
    }

    /// Returns the reason why blocks are not one for each device. The caller has locked no device.
    #[cold]
    fn mismatch(&self, blocks: &DeviceBlocks<'_>) -> StateError {
        match blocks.iter().all(|(header, _)| self.bus.has(tag_of(&header))) {
            true => refused("not one for each device of this machine"),
            false => refused("this machine has no such device"),
        }
    }
}

fn refused(reason: &'static str) -> StateError {
    StateError { field: "devices.blocks", reason }
}

fn tag_of(header: &state::DeviceBlock) -> Tag {
    Tag { kind: header.kind.get(), instance: header.instance.get() }
}

fn restore(device: &mut dyn Device, version: u32, from: &[u8]) -> Result<(), StateError> {
    if !(1..=device.state_version()).contains(&version) {
        return Err(StateError { field: "devices.version", reason: "this image reads no such version of the device" });
    }
    device.restore(version, from)
}
