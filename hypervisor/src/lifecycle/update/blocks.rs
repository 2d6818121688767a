// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory into which guests are saved: the blocks of a hand-over, in their reader's version.

use alloc::string::String;
use alloc::sync::Arc;

use handover::block::Owner;
use handover::image::Reader;
use handover::layout::Stamps;
use handover::state::{BlockKind, ControlStream};

use super::block::Block;
use super::hand_over_state::HandOverState;
use crate::kernel::inherited::ChannelState;

/// The blocks into which guests are saved, and their version.
#[derive(Clone)]
pub struct Blocks {
    hand_over_state: Arc<HandOverState>,
    /// The version that the reader wants.
    pub version: u32,
    /// The reader.
    pub reader: Reader,
}

impl Blocks {
    /// Those of this hand-over state.
    pub fn new(hand_over_state: &Arc<HandOverState>, reader: Reader) -> Self {
        Self { hand_over_state: hand_over_state.clone(), version: reader.version, reader }
    }

    /// Saves what the host itself knows last.
    ///
    /// # Errors
    /// It finds no room.
    pub fn save_host(
        &self,
        stamps: &Stamps,
        channel_state: &ChannelState,
        streams: &[ControlStream],
    ) -> Result<(), String> {
        self.hand_over_state.save_streams(self.version, streams)?;
        self.hand_over_state.save_disk_streams(self.version)?;
        self.hand_over_state.save_host(self.version, stamps, channel_state)
    }

    /// Returns the block for this state.
    pub fn block(&self, kind: BlockKind, owner: Owner) -> Option<&Block> {
        self.hand_over_state.block(kind, owner)
    }
}
