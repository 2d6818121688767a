// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory on demand: frames for its blocks, and their bytes.

use demand::{Blocks, Claim, Layout, Outside, Source};
use frames::{FrameRange, Node};
use units::{PhysAddr, PhysRange};
use vm::addr::Gpa;
use vm::memory::OutOfRange;
use vm::platform::layout;

use super::copying::{clear, copy};
use super::source::FrameSource;
use crate::arch::address::DIRECT_MAP;

/// Where a guest sees its blocks.
const LAYOUT: Layout = Layout { low_end: layout::LOW_MEMORY_END.0, high_start: layout::HIGH_MEMORY.0 };

/// The blocks of a guest.
pub type GuestBlocks = Blocks<BlockSource>;

/// The source of one guest's blocks.
#[derive(Debug)]
pub struct BlockSource {
    frames: &'static FrameSource,
    node: Option<Node>,
}

impl Source for BlockSource {
    fn take(&self, claim: Claim) -> Option<u64> {
        let frames = (self.frames.block)(claim, self.node)?;
        frames.dirty.iter().for_each(|part| clear(&frames.range, *part));
        Some(frames.range.leak().start().0)
    }

    fn release(&self, physical: u64) {
        let range = PhysRange::from_start(PhysAddr(physical), demand::BLOCK_BYTES);
        range.and_then(FrameRange::adopt).into_iter().for_each(self.frames.release);
    }

    fn may_be_parted(&self) -> bool {
        (self.frames.may_be_parted)()
    }

    fn change_assured(&self, bytes: u64, is_more: bool) {
        (self.frames.change_assured)(bytes, is_more);
    }
}

/// Blocks of which none is there. The source has assured some of them.
pub(super) fn empty(frames: &'static FrameSource, bytes: u64, assured_bytes: u64, node: Option<Node>) -> GuestBlocks {
    Blocks::new(BlockSource { frames, node }, LAYOUT, bytes, assured_bytes)
}

/// Blocks from the image before.
pub(super) fn adopt(
    frames: &'static FrameSource,
    blocks: impl Iterator<Item = u64>,
    spares: impl Iterator<Item = u64>,
    assured_bytes: u64,
) -> GuestBlocks {
    Blocks::adopt(BlockSource { frames, node: None }, LAYOUT, blocks, spares, assured_bytes)
}

/// Copies out of blocks. One that is not there reads as zeros.
pub(super) fn read(blocks: &GuestBlocks, gpa: Gpa, into: &mut [u8]) -> Result<(), OutOfRange> {
    let bytes = into.len();
    let copying = blocks.reading(gpa.0, bytes).map_err(|Outside| OutOfRange { gpa, bytes })?;
    copying.each_part(gpa.0, bytes, |host, part| {
        let Some(into) = into.get_mut(part) else { return };
        match host {
            // SAFETY: the frame is the guest's while it is held for this copy, and no reference into it exists. `into`
            // is the hypervisor's own memory.
            Some(from) => unsafe { copy((DIRECT_MAP + from) as *const u8, into.as_mut_ptr(), into.len()) },
            None => into.fill(0),
        }
    });
    Ok(())
}

/// Copies into blocks, which get frames. One that the guest frees meanwhile loses what is written.
pub(super) fn write(blocks: &GuestBlocks, gpa: Gpa, from: &[u8]) -> Result<(), OutOfRange> {
    let bytes = from.len();
    let copying = blocks.writing(gpa.0, bytes).map_err(|Outside| OutOfRange { gpa, bytes })?;
    copying.each_part(gpa.0, bytes, |host, part| {
        if let (Some(into), Some(from)) = (host, from.get(part)) {
            // SAFETY: as in `read`, the other way round.
            unsafe { copy(from.as_ptr(), (DIRECT_MAP + into) as *mut u8, from.len()) };
        }
    });
    Ok(())
}

/// Calls `act` with the host's view of a range, all of it in one block, which gets a frame.
pub(super) fn with_host<R>(
    blocks: &GuestBlocks,
    gpa: Gpa,
    bytes: usize,
    mut act: impl FnMut(*mut u8) -> R,
) -> Result<R, OutOfRange> {
    let outside = OutOfRange { gpa, bytes };
    let copying = blocks.writing(gpa.0, bytes).map_err(|Outside| outside)?;
    let mut result = None;
    copying.each_part(gpa.0, bytes, |host, part| {
        if let Some(host) = host.filter(|_| part.len() == bytes) {
            result = Some(act((DIRECT_MAP + host) as *mut u8));
        }
    });
    result.ok_or(outside)
}
