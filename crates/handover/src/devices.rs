// SPDX-License-Identifier: MIT OR Apache-2.0
//! The states of a guest's devices: tagged blocks of any number and size, one behind the other, in the tail of a block
//! of [`crate::state::Devices`]. Each is a [`DeviceBlock`] and a payload, padded to eight bytes.

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::state::DeviceBlock;
use crate::write::Full;

/// Payloads are padded to this.
const PADDING_BYTES: usize = 8;
const HEADER_BYTES: usize = size_of::<DeviceBlock>();

/// Bytes that a state of `payload` bytes takes with header and padding.
pub const fn block_bytes(payload: usize) -> usize {
    HEADER_BYTES + payload.next_multiple_of(PADDING_BYTES)
}

/// Appends the states of devices to a tail.
#[derive(Debug)]
pub struct DeviceWriter<'a> {
    bytes: &'a mut [u8],
    used: usize,
    blocks: u32,
}

impl<'a> DeviceWriter<'a> {
    /// A writer into a tail that holds nothing yet.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, used: 0, blocks: 0 }
    }

    /// Appends a state. `save` fills the place behind the header from its start and returns the bytes that it has used.
    ///
    /// # Errors
    /// [`Full`] if the tail has no room for it, or if `save` returns it.
    pub fn add(
        &mut self,
        (kind, instance, version): (u32, u32, u32),
        save: impl FnOnce(&mut [u8]) -> Result<usize, Full>,
    ) -> Result<(), Full> {
        let block = self.bytes.get_mut(self.used..).ok_or(Full)?;
        let (header, payload) = block.split_at_mut_checked(HEADER_BYTES).ok_or(Full)?;
        let used = save(payload)?;
        let padded = used.checked_next_multiple_of(PADDING_BYTES).ok_or(Full)?;
        let padding = payload.get_mut(used..padded).ok_or(Full)?;
        if !padding.is_empty() {
            padding.fill(0);
        }
        let bytes = U32::new(u32::try_from(used).map_err(|_| Full)?);
        let tag = DeviceBlock { kind: kind.into(), instance: instance.into(), version: version.into(), bytes };
        header.copy_from_slice(tag.as_bytes());
        self.used += HEADER_BYTES + padded;
        self.blocks += 1;
        Ok(())
    }

    /// The number of blocks, and the bytes in use.
    pub fn finish(self) -> (u32, usize) {
        (self.blocks, self.used)
    }
}

/// The states of devices in a tail, which is checked to be made of whole blocks.
#[derive(Clone, Copy, Debug)]
pub struct DeviceBlocks<'a>(&'a [u8]);

impl<'a> DeviceBlocks<'a> {
    /// The blocks in a tail; `None` unless it is exactly `count` of them.
    pub fn open(count: u32, bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes;
        // A tail too short for the count ends the loop.
        for _ in 0..count {
            take(&mut rest)?;
        }
        rest.is_empty().then_some(Self(bytes))
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (DeviceBlock, &'a [u8])> + Clone + use<'a> {
        let mut rest = self.0;
        core::iter::from_fn(move || take(&mut rest))
    }
}

/// Takes the first block off `bytes`.
fn take<'a>(bytes: &mut &'a [u8]) -> Option<(DeviceBlock, &'a [u8])> {
    let (header, behind) = DeviceBlock::read_from_prefix(bytes).ok()?;
    let used = usize::try_from(header.bytes.get()).ok()?;
    let payload = behind.get(..used)?;
    *bytes = behind.get(used.checked_next_multiple_of(PADDING_BYTES)?..)?;
    Some((header, payload))
}

#[cfg(test)]
#[path = "devices_tests.rs"]
mod tests;
