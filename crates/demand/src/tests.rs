// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host of few frames, and a guest that touches, frees, and is handed over.

mod blocks;
mod partial;
mod properties;
mod updates;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::vec::Vec;

use crate::*;

/// Where the guest sees its blocks: the lower part has four.
const LAYOUT: Layout = Layout { low_end: 4 * BLOCK_BYTES, high_start: 100 * BLOCK_BYTES };

/// A host's frames, shared by the sources of all guests and of the next image.
#[derive(Clone, Debug, Default)]
struct Host(Arc<Mutex<Frames>>);

#[derive(Clone, Debug, Default)]
struct Frames {
    free: BTreeSet<u64>,
    /// The content of each frame that has an owner: 0, or the value that a guest has written.
    owned: BTreeMap<u64, u64>,
    /// Bytes that a guest was assured and does not have.
    assured_bytes: u64,
    is_in_many_parts: bool,
}

impl Host {
    /// A host with so many free frames.
    fn new(frames: u64) -> Self {
        let free = (1..=frames).map(|number| number * BLOCK_BYTES).collect();
        Self(Arc::new(Mutex::new(Frames { free, ..Frames::default() })))
    }

    /// The same machine as the next image knows it: what is not handed over is free.
    fn inherited_by_next(&self, handed_over: &[u64]) -> Self {
        let mut frames = self.0.lock().unwrap().clone();
        let (kept, freed): (BTreeMap<_, _>, BTreeMap<_, _>) =
            frames.owned.into_iter().partition(|(frame, _)| handed_over.contains(frame));
        frames.owned = kept;
        frames.free.extend(freed.into_keys());
        frames.assured_bytes = 0;
        Self(Arc::new(Mutex::new(frames)))
    }

    fn frames<R>(&self, act: impl FnOnce(&mut Frames) -> R) -> R {
        act(&mut self.0.lock().unwrap())
    }
}

impl Source for Host {
    fn take(&self, claim: Claim) -> Option<u64> {
        self.frames(|frames| {
            let left = if claim == Claim::Assured { 0 } else { frames.assured_bytes / BLOCK_BYTES };
            if frames.free.len() as u64 <= left {
                return None;
            }
            let frame = frames.free.pop_first()?;
            assert_eq!(frames.owned.insert(frame, 0), None, "{frame:#x} had an owner");
            Some(frame)
        })
    }

    fn release(&self, physical: u64) {
        self.frames(|frames| {
            assert!(frames.owned.remove(&physical).is_some(), "{physical:#x} has no owner");
            assert!(frames.free.insert(physical));
        });
    }

    fn may_be_parted(&self) -> bool {
        self.frames(|frames| !frames.is_in_many_parts)
    }

    fn change_assured(&self, bytes: u64, is_more: bool) {
        self.frames(|frames| {
            let assured = frames.assured_bytes;
            frames.assured_bytes = if is_more { assured + bytes } else { assured.checked_sub(bytes).expect("assured") };
        });
    }
}

/// A guest with this many blocks, of which it was assured some.
fn guest(host: &Host, blocks: u64, assured: u64) -> Blocks<Host> {
    host.change_assured(assured * BLOCK_BYTES, true);
    Blocks::new(host.clone(), LAYOUT, blocks * BLOCK_BYTES, assured * BLOCK_BYTES)
}

fn touch(blocks: &Blocks<Host>, number: usize) -> Shown {
    blocks.touch(LAYOUT.gpa(number) + 5, |_, _| true)
}

fn there(blocks: &Blocks<Host>) -> Vec<usize> {
    let frames = blocks.frames().enumerate();
    frames.filter(|(_, frame)| *frame != 0).map(|(number, _)| number).collect()
}
