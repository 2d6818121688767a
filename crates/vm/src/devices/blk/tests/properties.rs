// SPDX-License-Identifier: MIT OR Apache-2.0
//! A disk in any history of its server and of updates returns what was written to it last.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Write { sector: u64, value: u8 },
    Read { sector: u64 },
    Answer { which: usize },
    Kill,
    HandOver,
    Wait,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u64..8, 1u8..).prop_map(|(sector, value)| Step::Write { sector, value }),
        3 => (0u64..8).prop_map(|sector| Step::Read { sector }),
        6 => (0usize..8).prop_map(|which| Step::Answer { which }),
        1 => Just(Step::Kill),
        1 => Just(Step::HandOver),
        1 => Just(Step::Wait),
    ]
}

/// Which requests are in flight: chain, sector, and the value of a write.
type Flying = Vec<(u16, u64, Option<u8>)>;

fn collect(world: &mut World, flying: &mut Flying, known: &mut [u8; 8]) {
    for (head, status, data) in world.answers() {
        let index = flying.iter().position(|(own, ..)| *own == head).expect("it is in flight");
        let (_, sector, value) = flying.swap_remove(index);
        assert_eq!(status, 0);
        match value {
            Some(value) => known[sector as usize] = value,
            None => assert!(data.iter().all(|byte| *byte == known[sector as usize]), "sector {sector}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_disk_returns_what_was_written_last(
        steps in proptest::collection::vec(step(), 1..60),
        is_write_back: bool,
        requests_per_s in proptest::option::of(3u32..100),
    ) {
        let limits = Limits { requests_per_s, bytes_per_s: requests_per_s.map(u64::from) };
        let timeout_ns = 1000 * SECOND_NS;
        let mut world = World::up(BlkConfig { is_write_back, timeout_ns, limits, ..config() });
        let (mut flying, mut known) = (Flying::new(), [0; 8]);
        for step in steps {
            let is_free = |sector: u64| flying.len() < 4 && flying.iter().all(|(_, other, _)| *other != sector);
            let count = world.server.received.len();
            match step {
                Step::Write { sector, value } if is_free(sector) => {
                    flying.push((world.ask(OUT, sector, &[value; 512], 0), sector, Some(value)));
                }
                Step::Read { sector } if is_free(sector) => {
                    flying.push((world.ask(IN, sector, b"", 512), sector, None));
                }
                Step::Answer { which } if count > 0 => _ = world.server.execute(which % count),
                Step::Kill => world.server.kill(512, || false),
                Step::HandOver => world.hand_over(),
                Step::Wait => world.now_ns += SECOND_NS,
                _ => {}
            }
            world.work();
            collect(&mut world, &mut flying, &mut known);
        }
        for _ in 0..5 {
            world.now_ns += SECOND_NS;
            world.run_until_idle();
            collect(&mut world, &mut flying, &mut known);
        }
        prop_assert!(flying.is_empty());
        for (sector, value) in known.iter().enumerate() {
            prop_assert_eq!(world.server.disk[sector * 512], *value);
        }
    }
}
