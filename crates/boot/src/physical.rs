// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading the loader's information from memory.

use arrayvec::{ArrayString, ArrayVec};
use units::{PAGE_BYTES, PhysAddr, PhysRange};

/// Physical memory as far as it can be read: the hypervisor's boot mapping, or a test's array.
pub trait PhysicalMemory {
    /// The `bytes` bytes from `start` on; `None` unless all of them can be read.
    fn bytes(&self, start: PhysAddr, bytes: usize) -> Option<&[u8]>;
}

/// The devices of every PC below 4 GiB that reading could disturb: the VGA's window, and from the I/O APICs to the
/// local APICs' messages.
const DEVICES: [(u64, u64); 2] = [(0xa_0000, 0xc_0000), (0xfec0_0000, 0xff00_0000)];

/// Returns whether a structure that a loader or firmware places at `range` may be read there: not at 0, which means
/// nowhere, not in the image itself, which changes while it is read, and not in a PC's devices. The memory map, which
/// states more, is itself one of these structures.
pub fn may_be_read(range: PhysRange, image: PhysRange) -> bool {
    let overlaps = |other: PhysRange| range.intersection(other).is_some();
    let devices = DEVICES.iter().filter_map(|&(start, end)| PhysRange::new(PhysAddr(start), PhysAddr(end)));
    range.start() != PhysAddr(0) && !overlaps(image) && !devices.into_iter().any(overlaps)
}

/// A little-endian field of a structure; `None` past its end.
pub(crate) fn u32_at(structure: &[u8], offset: usize) -> Option<u32> {
    structure.get(offset..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// A little-endian field of a structure; `None` past its end.
pub(crate) fn u64_at(structure: &[u8], offset: usize) -> Option<u64> {
    structure.get(offset..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// A little-endian field with its upper half elsewhere; bytes past the end count as 0.
pub(crate) fn wide(structure: &[u8], low: usize, high: usize) -> u64 {
    u64::from(u32_at(structure, high).unwrap_or_default()) << 32 | u64::from(u32_at(structure, low).unwrap_or_default())
}

/// A zero-terminated string, and whether it was cut to fit.
pub(crate) struct Terminated<const BYTES: usize> {
    pub(crate) text: ArrayString<BYTES>,
    pub(crate) cut: bool,
}

/// Reads a zero-terminated string, never beyond the page where it ends; bytes that are no UTF-8 become `?`. An address
/// of zero is no string. `None` if some of it cannot be read.
pub(crate) fn terminated<const BYTES: usize>(
    memory: &impl PhysicalMemory,
    start: PhysAddr,
) -> Option<Terminated<BYTES>> {
    let mut collected = ArrayVec::<u8, BYTES>::new();
    let mut at = start;
    while at != PhysAddr(0) {
        let to_page_end = (PAGE_BYTES - at.0 % PAGE_BYTES) as usize;
        // One byte more than fits, to see whether the string ends there.
        let chunk = memory.bytes(at, to_page_end.min(collected.remaining_capacity() + 1))?;
        let length = chunk.iter().position(|byte| *byte == 0);
        let part = &chunk[..length.unwrap_or(chunk.len())];
        let fits = part.len().min(collected.remaining_capacity());
        collected.extend(part[..fits].iter().copied());
        if length.is_some() || fits < part.len() {
            return Some(Terminated { text: text_of(collected), cut: fits < part.len() });
        }
        at = at.checked_add(chunk.len() as u64)?;
    }
    Some(Terminated { text: ArrayString::new(), cut: false })
}

/// The zero-terminated string that `bytes` begins with; without a zero, all of it.
pub(crate) fn text_within<const BYTES: usize>(bytes: &[u8]) -> Terminated<BYTES> {
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let kept = bytes[..length.min(BYTES)].iter().copied().collect();
    Terminated { text: text_of(kept), cut: length > BYTES }
}

fn text_of<const BYTES: usize>(mut bytes: ArrayVec<u8, BYTES>) -> ArrayString<BYTES> {
    if core::str::from_utf8(&bytes).is_err() {
        bytes.iter_mut().filter(|byte| !byte.is_ascii()).for_each(|byte| *byte = b'?');
    }
    // Valid now, and no longer than the array: neither step can fail.
    core::str::from_utf8(&bytes).ok().and_then(|text| ArrayString::from(text).ok()).unwrap_or_default()
}
