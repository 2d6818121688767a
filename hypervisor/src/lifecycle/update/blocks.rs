// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where guests are saved: the blocks of a hand-over, and the version that their reader wants.

use alloc::string::String;
use alloc::sync::Arc;

use handover::block::Owner;
use handover::layout::Stamps;
use handover::state::BlockKind;

use super::baggage::{Baggage, Block};
use crate::kernel::inherited::Conversation;

/// Where guests are saved, and how.
#[derive(Clone)]
pub struct Blocks {
    baggage: Arc<Baggage>,
    /// The version that the reader wants.
    pub version: u32,
}

impl Blocks {
    /// Those of this baggage.
    pub fn new(baggage: &Arc<Baggage>, version: u32) -> Self {
        Self { baggage: baggage.clone(), version }
    }

    /// Saves what the host itself knows last.
    ///
    /// # Errors
    /// It finds no room.
    pub fn save_host(&self, stamps: &Stamps, conversation: &Conversation) -> Result<(), String> {
        self.baggage.save_host(self.version, stamps, conversation)
    }

    /// Where this is saved.
    pub fn block(&self, kind: BlockKind, owner: Owner) -> Option<&Block> {
        self.baggage.block(kind, owner)
    }
}
