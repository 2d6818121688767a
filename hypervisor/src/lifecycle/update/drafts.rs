// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests' state saved once while guests go on: what the new image rehearses with before any of them stops. What it
//! cannot restore is thus known while nothing has happened; and the code that saves and restores has been run when it
//! counts.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use handover::block::Owner;
use handover::layout::Stamps;
use handover::state::BlockKind;
use spin::{Mutex, RwLock};

use super::baggage::{Baggage, Block};
use super::gap::Gap;
use crate::arch::percpu;
use crate::arch::reminder::Reminder;
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

/// What processors are to save now, if they are.
static WANTED: RwLock<Option<Wanted>> = RwLock::new(None);
static IS_WANTED: AtomicBool = AtomicBool::new(false);

struct Wanted {
    /// Each processor, and the way that it takes.
    members: Vec<(u32, Gap)>,
    /// What has come of each: `None` while it has not saved.
    outcomes: Mutex<Vec<Option<Result<(), String>>>>,
}

/// An order to save. Dropped, it is taken back.
pub struct Drafts(Reminder);

impl Drafts {
    /// Every one of these processors saves what it has at its next look.
    pub fn order(blocks: Blocks, members: impl Iterator<Item = u32>) -> Self {
        let members: Vec<(u32, Gap)> = members.map(|index| (index, Gap::rehearsal(index, blocks.clone()))).collect();
        let indices: Vec<u32> = members.iter().map(|(index, ..)| *index).collect();
        let outcomes = Mutex::new(members.iter().map(|_| None).collect());
        *WANTED.write() = Some(Wanted { members, outcomes });
        IS_WANTED.store(true, Ordering::Release);
        indices.into_iter().for_each(percpu::wake);
        Self(Reminder::new())
    }

    /// `None` while not all have saved; then the first problem, if there is one.
    pub fn outcome(&mut self) -> Option<Result<(), String>> {
        let wanted = WANTED.read();
        let wanted = wanted.as_ref()?;
        let outcomes = wanted.outcomes.lock();
        let all: Option<Vec<_>> = outcomes.iter().cloned().collect();
        if all.is_none() && self.0.is_due() {
            let missing = wanted.members.iter().zip(&*outcomes).filter(|(_, outcome)| outcome.is_none());
            missing.for_each(|((index, _), _)| percpu::wake(*index));
        }
        Some(all?.into_iter().find(Result::is_err).unwrap_or(Ok(())))
    }
}

impl Drop for Drafts {
    fn drop(&mut self) {
        IS_WANTED.store(false, Ordering::Release);
        *WANTED.write() = None;
    }
}

/// Whether the calling processor may be to save.
#[inline]
pub fn is_wanted() -> bool {
    IS_WANTED.load(Ordering::Acquire)
}

/// Has the processor `index` take its way, if it is to. `save` says what came of it, or `None`: it has been there
/// before.
pub fn take(index: u32, save: impl FnOnce(&Gap) -> Option<Result<(), String>>) {
    let wanted = WANTED.read();
    let Some(wanted) = wanted.as_ref() else { return };
    let Some(place) = wanted.members.iter().position(|(member, _)| *member == index) else { return };
    let Some(outcome) = save(&wanted.members[place].1) else { return };
    if let Some(slot) = wanted.outcomes.lock().get_mut(place) {
        *slot = Some(outcome);
    }
}
