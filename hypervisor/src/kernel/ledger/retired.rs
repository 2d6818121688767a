// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that machine checks have found damaged: never used again, neither by this image nor by those after it.

use frames::Frames;
use handover::layout::{Kind, MAX_RETIRED, Retired};
use units::{ByteSize, PhysRange};

use crate::arch::memory::FRAMES;

/// All of it, for the next image. Memory that the option `bad-memory` names is not in it: the next image has the same
/// options.
static RETIRED: mca::Retired<MAX_RETIRED> = mca::Retired::new();

/// Retires memory that a machine check has named.
pub fn retire(memory: PhysRange) {
    match FRAMES.lock().retire(memory) {
        Ok(0) => {}
        Ok(bytes) => {
            log::warn!(
                "memory {memory} is damaged: {} are not used any more; after a reset, boot with bad-memory={}",
                ByteSize(bytes),
                memory.start()
            );
            hand_on(memory);
        }
        Err(error) => log::error!("memory {memory} is damaged, and will be used again: {error}"),
    }
}

/// Retires what the image before has retired.
pub fn adopt(frames: &mut Frames<'static>, retired: impl Iterator<Item = PhysRange>) {
    for memory in retired {
        match frames.retire(memory) {
            Ok(bytes) => log::info!("memory {memory} is damaged: the image before has retired {}", ByteSize(bytes)),
            Err(error) => log::error!("memory {memory} is damaged, and used all the same: {error}"),
        }
        hand_on(memory);
    }
}

fn hand_on(memory: PhysRange) {
    if !RETIRED.add(memory) {
        log::warn!("memory {memory} is damaged, but the next image uses it: already {MAX_RETIRED} pieces are retired");
    }
}

/// Returns how many pieces are handed over. A record that was written when it was another number is out of date.
pub fn count() -> usize {
    RETIRED.count()
}

/// The pieces, as a record has them. Allocates nothing, and waits for no lock.
pub fn section() -> impl Iterator<Item = Retired> {
    let piece = |range: PhysRange| Retired { start: range.start().0.into(), bytes: range.bytes().into() };
    RETIRED.iter().map(piece)
}

/// Bytes by which a record may have grown when it is written again.
pub const MAX_GROWTH_BYTES: usize = MAX_RETIRED * size_of::<Retired>();

/// Logs damaged memory that a reader of this hand-over version does not know.
pub fn warn_if_dropped(version: u32) {
    if version < Kind::Retired.since() && count() > 0 {
        log::warn!("hand-over version {version} has no retired memory: the next image uses {} damaged pieces", count());
    }
}
