// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory on demand over an update: where its blocks are, written by the old image and read by the new one.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use demand::Packed;
use handover::block::{self, BlockMut, Owner};
use handover::state::{self, BlockKind};
use units::{PhysAddr, PhysRange};
use zerocopy::FromBytes as _;
use zerocopy::little_endian::U64;

use super::hand_over_state::HandOverState;
use super::held::Held;
use crate::arch::guest_memory::GuestRam;
use crate::guests::guest::Guest;
use crate::guests::instance::Instance;
use crate::guests::slots::GUESTS;
use crate::kernel::inherited;
use crate::kernel::ledger::guests::FRAME_SOURCE;

impl HandOverState {
    /// Packs the memory on demand of a guest, if it is.
    ///
    /// # Errors
    /// There is no memory for its block.
    pub(super) fn pack_on_demand(&mut self, owner: Owner, run: &Arc<Instance>, version: u32) -> Result<(), String> {
        let Some(blocks) = run.machine.memory().blocks() else { return Ok(()) };
        let Packed { frames, spares } = blocks.hold();
        self.held.push(Held::of(run));
        let bytes = (frames.len() + spares.len()) * size_of::<U64>();
        let home = run.guest.home();
        let block = self.add(BlockKind::OnDemand, owner, home, home, bytes as u64)?;
        block.with(|into| {
            let text = |error: block::BlockError| error.to_string();
            let mut block = BlockMut::<state::OnDemand>::begin(into, owner, version).map_err(text)?;
            let (head, tail) = block.parts().map_err(text)?;
            head.assured_bytes = blocks.assured_bytes().into();
            (head.blocks, head.spares) = ((frames.len() as u32).into(), (spares.len() as u32).into());
            let places = tail.chunks_exact_mut(size_of::<U64>());
            places.zip(frames.iter().chain(&spares)).for_each(|(place, at)| place.copy_from_slice(&at.to_le_bytes()));
            block.finish(bytes).map_err(text)
        })
    }
}

/// A guest's memory on demand as the image before has handed it over.
struct OnDemand {
    assured_bytes: u64,
    frames: Vec<U64>,
    spares: Vec<U64>,
}

/// Returns a guest's memory if the image before hands it over as memory on demand.
///
/// # Errors
/// Its block is damaged.
pub(super) fn adopt(guest: &Guest) -> Result<Option<GuestRam>, String> {
    let Some(OnDemand { assured_bytes, frames, spares }) = inherited(guest.number)? else { return Ok(None) };
    let [frames, spares] = [frames, spares].map(|places| places.into_iter().map(U64::get));
    Ok(Some(GuestRam::adopt_on_demand(&FRAME_SOURCE, frames, spares, assured_bytes)))
}

/// All memory of guests that have it on demand, spare blocks with it.
pub(super) fn ranges() -> Vec<PhysRange> {
    let mut ranges = Vec::new();
    for guest in GUESTS.all() {
        let Ok(Some(OnDemand { frames, spares, .. })) = inherited(guest.number) else { continue };
        let there = frames.iter().chain(&spares).map(|place| place.get()).filter(|place| *place != 0);
        ranges.extend(there.filter_map(|place| PhysRange::from_start(PhysAddr(place), demand::BLOCK_BYTES)));
    }
    ranges
}

fn inherited(guest: u32) -> Result<Option<OnDemand>, String> {
    let place = inherited::record().and_then(|record| record.block_of(BlockKind::OnDemand, guest, 0));
    let Some(place) = place else { return Ok(None) };
    let owner = Owner { guest, vcpu: 0 };
    let read = inherited::with_block(place.start.get(), place.bytes.get(), |bytes| {
        let opened = block::open::<state::OnDemand>(bytes, owner);
        let (head, tail) = opened.map_err(|error| format!("its memory on demand: {error}"))?;
        let cut = || "its memory on demand is cut off".to_string();
        let (frames, rest) =
            <[U64]>::ref_from_prefix_with_elems(tail, head.blocks.get() as usize).map_err(|_| cut())?;
        let (spares, _) = <[U64]>::ref_from_prefix_with_elems(rest, head.spares.get() as usize).map_err(|_| cut())?;
        let assured_bytes = head.assured_bytes.get();
        Ok(OnDemand { assured_bytes, frames: frames.to_vec(), spares: spares.to_vec() })
    });
    read.unwrap_or_else(|| Err("its memory on demand is nowhere".to_string())).map(Some)
}
