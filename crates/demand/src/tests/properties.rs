// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever a guest does, and whenever it is handed over: it reads what it has written, and no frame has two owners.

use proptest::prelude::*;

use super::*;
use crate::block::HIDDEN;

const BLOCKS: usize = 24;
const ASSURED: u64 = 6;

#[derive(Clone, Debug)]
enum Step {
    /// The guest writes into a block.
    Write(usize),
    /// A device does.
    DeviceWrite(usize),
    /// The guest frees blocks.
    Free(usize, u64),
    /// Every vCPU flushes its TLB.
    Flush,
    /// An update begins, or packs once more.
    Pack,
    /// The next image rehearses.
    Rehearse,
    /// It takes over.
    TakeOver,
    /// The update fails.
    Fail,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..BLOCKS).prop_map(Step::Write),
        3 => (0..BLOCKS).prop_map(Step::DeviceWrite),
        3 => (0..BLOCKS, 1..6_u64).prop_map(|(first, count)| Step::Free(first, count)),
        3 => Just(Step::Flush),
        2 => Just(Step::Pack),
        1 => Just(Step::Rehearse),
        2 => Just(Step::TakeOver),
        1 => Just(Step::Fail),
    ]
}

/// The machine, as the guest has it.
struct Machine {
    host: Host,
    blocks: Blocks<Host>,
    /// The next image, once for each packing.
    updates: Vec<Blocks<Host>>,
    /// The value that the guest has written into each block, and not freed.
    written: [u64; BLOCKS],
    writes: u64,
    changes: u64,
}

impl Machine {
    fn new(frames: u64) -> Self {
        let host = Host::new(frames);
        let blocks = guest(&host, BLOCKS as u64, ASSURED);
        Self { host, blocks, updates: Vec::new(), written: [0; BLOCKS], writes: 0, changes: 0 }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Write(number) => self.write(number, touch(&self.blocks, number) == Shown::Now),
            Step::DeviceWrite(number) => {
                // A write into memory that the guest has just freed is lost.
                let is_freed = self.blocks.entry(number) & HIDDEN != 0;
                let is_there = self.blocks.writing(LAYOUT.gpa(number), 1).is_ok();
                self.write(number, is_there && !is_freed);
            }
            Step::Free(first, count) => self.free(first, count),
            Step::Flush => _ = self.blocks.release_hidden(self.changes),
            Step::Pack => self.pack(),
            Step::Rehearse => {
                let used = self.blocks.spares_used();
                self.updates.last().into_iter().for_each(|next| next.use_spares(used));
            }
            Step::TakeOver => self.take_over(),
            Step::Fail => self.updates.drain(..).for_each(|_| self.blocks.settle()),
        }
    }

    fn write(&mut self, number: usize, is_there: bool) {
        if let Some(frame) = self.blocks.frames().nth(number).filter(|_| is_there) {
            self.writes += 1;
            self.written[number] = self.writes;
            self.host.frames(|frames| frames.owned.insert(frame, self.writes)).expect("it is owned");
        }
    }

    fn free(&mut self, first: usize, count: u64) {
        let changes = &mut self.changes;
        let gpa = LAYOUT.gpa(first);
        let hidden = &mut Vec::new();
        self.blocks.hide(gpa, count * BLOCK_BYTES, |gpa| {
            *changes += 1;
            hidden.push(LAYOUT.number(gpa, BLOCKS).expect("it is a block"));
            *changes
        });
        hidden.iter().for_each(|number| self.written[*number] = 0);
    }

    fn pack(&mut self) {
        let packed = self.blocks.hold();
        let handed_over: Vec<u64> = packed.frames.iter().chain(&packed.spares).copied().collect();
        let (frames, spares) = (packed.frames.iter().copied(), packed.spares.iter().copied());
        let host =
            self.host.inherited_by_next(&handed_over.into_iter().filter(|frame| *frame != 0).collect::<Vec<_>>());
        if self.updates.len() == 1 {
            self.updates.clear();
            self.blocks.settle();
        }
        self.updates.push(Blocks::adopt(host, LAYOUT, frames, spares, ASSURED * BLOCK_BYTES));
    }

    fn take_over(&mut self) {
        let Some(next) = self.updates.pop() else { return };
        next.use_spares(self.blocks.spares_used());
        // The next image finds memory as the guest left it.
        let contents = self.host.frames(|frames| frames.owned.clone());
        next.source.frames(|frames| frames.owned.iter_mut().for_each(|(frame, is)| *is = contents[frame]));
        (self.host, self.blocks) = (next.source.clone(), next);
        // Chains whose memory was being released are found again, and what they name is free still.
        self.blocks.settle();
    }

    fn check(&self) {
        let frames: Vec<u64> = self.blocks.frames().collect();
        let owned = self.host.frames(|frames| frames.owned.clone());
        let own: BTreeSet<u64> = frames.iter().copied().filter(|frame| *frame != 0).collect();
        assert_eq!(own.len(), frames.iter().filter(|frame| **frame != 0).count(), "a frame is two blocks");
        assert!(own.iter().all(|frame| owned.contains_key(frame)), "a block's frame is free");
        let spares = if self.updates.is_empty() { 0 } else { SPARES };
        assert!(owned.len() <= own.len() + spares, "a frame is lost");
        for (number, written) in self.written.iter().enumerate().filter(|(_, written)| **written != 0) {
            assert_eq!(owned.get(&frames[number]), Some(written), "block {number}");
        }
        let resident = own.len() as u64;
        assert_eq!(self.blocks.resident_bytes(), resident * BLOCK_BYTES);
        let missing = ASSURED.saturating_sub(resident) * BLOCK_BYTES;
        assert_eq!(self.host.frames(|frames| frames.assured_bytes), missing);
    }
}

proptest! {
    #[test]
    fn a_guest_reads_what_it_has_written(
        frames in 8..64_u64,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut machine = Machine::new(frames);
        for step in &steps {
            machine.take(step);
            machine.check();
        }
        machine.updates.drain(..).for_each(|_| machine.blocks.settle());
        machine.blocks.release_all(false);
        prop_assert_eq!(machine.host.frames(|frames| (frames.owned.len(), frames.assured_bytes)), (0, 0));
    }
}
