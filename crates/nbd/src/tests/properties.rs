// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any history of requests, answers, kills and updates: what is acknowledged is never lost.

use std::vec;

use proptest::prelude::*;

use super::*;
use crate::testing::flag;

const BLOCK: usize = 512;
const BLOCKS: usize = 24;

#[derive(Clone, Debug)]
enum Step {
    Write { block: usize, value: u8 },
    Zero { block: usize },
    Read { block: usize },
    Flush,
    Answer { which: usize },
    Fail { which: usize },
    Kill { keeps: u32 },
    Disconnect,
    HandOver { keeps_stream: bool },
    Wait { ms: u16 },
    Room { bytes: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..BLOCKS, 1u8..).prop_map(|(block, value)| Step::Write { block, value }),
        2 => (0..BLOCKS).prop_map(|block| Step::Zero { block }),
        4 => (0..BLOCKS).prop_map(|block| Step::Read { block }),
        1 => Just(Step::Flush),
        12 => (0usize..64).prop_map(|which| Step::Answer { which }),
        1 => (0usize..64).prop_map(|which| Step::Fail { which }),
        1 => any::<u32>().prop_map(|keeps| Step::Kill { keeps }),
        1 => Just(Step::Disconnect),
        2 => any::<bool>().prop_map(|keeps_stream| Step::HandOver { keeps_stream }),
        2 => (1u16..300).prop_map(|ms| Step::Wait { ms }),
        1 => prop_oneof![1usize..100, Just(usize::MAX)].prop_map(|bytes| Step::Room { bytes }),
    ];
    proptest::collection::vec(step, 1..120)
}

/// The values that a block may read as: one, or more after a write has failed.
#[derive(Clone, Debug)]
struct Known(Vec<u8>);

/// The driver's side: no two requests in flight change or read the same block.
struct Model {
    world: World,
    known: Vec<Known>,
    pending: BTreeMap<u16, (Command, usize, u8)>,
    is_write_back: bool,
}

impl Model {
    fn new(flags: u16, is_write_back: bool) -> Self {
        let world = World::up(BLOCK * BLOCKS, flags, is_write_back);
        Self { world, known: std::vec![Known([0].to_vec()); BLOCKS], pending: BTreeMap::new(), is_write_back }
    }

    fn submit(&mut self, command: Command, block: usize, value: u8) {
        let is_free = !self.pending.values().any(|(other, at, _)| *other != Command::Flush && *at == block);
        let Some(tag) = (0..REQUESTS as u16).find(|tag| !self.pending.contains_key(tag)) else { return };
        if command == Command::Flush {
            self.world.flush(tag);
        } else if is_free {
            self.world.submit(tag, command, (block * BLOCK) as u64, &[value; BLOCK]);
        } else {
            return;
        }
        self.pending.insert(tag, (command, block, value));
    }

    fn collect(&mut self) {
        for (tag, result) in self.world.done() {
            let (command, block, value) = self.pending.remove(&tag).expect("it was in flight");
            let known = command != Command::Flush;
            match (command, result) {
                (Command::Read, Ok(())) => {
                    let data = &self.world.driver.data[&tag];
                    assert!(data.iter().all(|byte| self.known[block].0.contains(byte)), "block {block}: {:?}", data[0]);
                }
                (_, Ok(())) if known => {
                    self.known[block] = Known([value].to_vec());
                    self.check_stable(block);
                }
                (_, Err(_)) if known && command != Command::Read => self.known[block].0.push(value),
                _ => {}
            }
        }
    }

    /// A change that is acknowledged without a write-back cache is stable at once.
    fn check_stable(&self, block: usize) {
        if !self.is_write_back {
            let stable = &self.world.server.stable[block * BLOCK..][..BLOCK];
            assert!(stable.iter().all(|byte| self.known[block].0.contains(byte)), "block {block} is not stable");
        }
    }

    fn step(&mut self, step: &Step) {
        let count = self.world.server.received.len();
        match *step {
            Step::Write { block, value } => self.submit(Command::Write, block, value),
            Step::Zero { block } => self.submit(Command::WriteZeroes { may_trim: false }, block, 0),
            Step::Read { block } => self.submit(Command::Read, block, 0xaa),
            Step::Flush => self.submit(Command::Flush, 0, 0),
            Step::Answer { which } if count > 0 => _ = self.world.server.execute(which % count),
            Step::Fail { which } if count > 0 => self.world.server.fail(which % count, 5),
            Step::Kill { keeps } => {
                let mut bits = keeps;
                self.world.server.kill(BLOCK, || {
                    bits = bits.rotate_left(1);
                    bits & 1 != 0
                });
            }
            Step::Disconnect => self.world.server.disconnect(),
            Step::HandOver { keeps_stream } => self.world.hand_over(keeps_stream),
            Step::Wait { ms } => self.world.now_ns += u64::from(ms) * 1_000_000,
            Step::Room { bytes } => self.world.server.room = bytes,
            Step::Answer { .. } | Step::Fail { .. } => {}
        }
        self.world.turn();
        self.collect();
    }

    /// The server answers from here on: everything is answered, and each block is what it must be.
    fn finish(mut self) {
        for _ in 0..150 {
            self.world.now_ns += 100_000_000;
            self.world.run_until_idle();
            self.collect();
        }
        assert_eq!((self.pending.len(), self.world.client.in_flight()), (0, 0));
        assert!(self.world.client.is_up());
        for block in 0..BLOCKS {
            let disk = &self.world.server.disk[block * BLOCK..][..BLOCK];
            assert!(disk.iter().all(|byte| self.known[block].0.contains(byte)), "block {block}: {}", disk[0]);
        }
    }
}

fn run(flags: u16, is_write_back: bool, steps: &[Step]) {
    let mut model = Model::new(flags, is_write_back);
    steps.iter().for_each(|step| model.step(step));
    model.finish();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_acknowledged_is_stable(steps in steps(), has_fua: bool) {
        run(if has_fua { ALL_FLAGS } else { ALL_FLAGS & !flag::FUA }, false, &steps);
    }

    #[test]
    fn what_is_acknowledged_by_a_write_back_cache_outlives_the_server(steps in steps(), has_zeroes: bool) {
        run(if has_zeroes { ALL_FLAGS } else { ALL_FLAGS & !flag::WRITE_ZEROES }, true, &steps);
    }

    #[test]
    fn a_server_that_sends_anything_does_no_harm(messages in proptest::collection::vec(any::<Vec<u8>>(), 1..20)) {
        let mut world = World::up(1 << 20, ALL_FLAGS, true);
        for bytes in messages {
            if !world.driver.data.contains_key(&0) {
                world.read(0, 0, 4096);
            }
            world.server.send_raw(&bytes);
            world.wait(SECOND_NS / 10);
        }
        // The last message may still be taken for the beginning of a reply.
        for _ in 0..3 {
            world.wait(SECOND_NS);
            world.run_until_idle();
        }
        prop_assert!(world.client.is_up());
    }
}
