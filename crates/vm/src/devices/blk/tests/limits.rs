// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

/// Requests that are sent at once after a pause.
const BURST_REQUESTS: usize = 4;
const BURST_BYTES: u64 = 128 << 10;
const READ_BYTES: u32 = 2048;

fn limited(requests_per_s: Option<u32>, bytes_per_s: Option<u64>) -> World {
    World::up(BlkConfig { limits: Limits { requests_per_s, bytes_per_s }, ..config() })
}

impl World {
    fn read(&mut self) {
        self.ask(IN, 0, b"", READ_BYTES);
    }

    /// Answers that have come, none of them a failure.
    fn done(&mut self) -> usize {
        self.run_until_idle();
        let answers = self.answers();
        assert!(answers.iter().all(|(_, status, _)| *status == 0), "{answers:?}");
        answers.len()
    }

    fn wait(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    /// Reads until the bucket is empty. Returns how many reads that were.
    fn exhaust(&mut self) -> usize {
        (0..)
            .find(|_| {
                self.read();
                self.done() == 0
            })
            .expect("some time")
    }
}

#[test]
fn requests_beyond_the_limit_wait_in_the_ring_and_none_fails() {
    let mut world = limited(Some(10), None);
    assert_eq!(world.exhaust(), BURST_REQUESTS);
    world.read();
    assert_eq!((world.done(), world.next_ns), (0, Some(world.now_ns + SECOND_NS / 10)));
    for _ in 0..2 {
        world.wait(SECOND_NS / 10);
        assert_eq!(world.done(), 1);
    }
    world.wait(SECOND_NS / 10);
    assert_eq!((world.done(), world.next_ns), (0, None), "a driver that asks for nothing costs nothing");
}

#[test]
fn bytes_that_are_read_and_written_count_together() {
    let mut world = limited(None, Some(BURST_BYTES));
    world.ask(OUT, 0, &[1; READ_BYTES as usize], 0);
    assert_eq!(world.done(), 1);
    assert_eq!(world.exhaust() as u64, BURST_BYTES / u64::from(READ_BYTES) - 1);
    world.wait(SECOND_NS / 1000);
    assert_eq!(world.done(), 1, "what is there is enough for the first byte");
    world.read();
    world.wait(SECOND_NS / 1000);
    assert_eq!(world.done(), 0);
    world.wait(SECOND_NS / 50);
    assert_eq!(world.done(), 1);
}

#[test]
fn what_moves_no_data_counts_as_a_request_only() {
    let mut world = limited(Some(1000), Some(1));
    world.exhaust();
    world.wait(SECOND_NS);
    assert_eq!(world.done(), 1, "one byte is there, and the read takes 2,047 in advance");
    world.wait(2050 * SECOND_NS);
    for _ in 0..BURST_REQUESTS {
        world.ask(FLUSH, 0, b"", 0);
        assert_eq!(world.done(), 1);
    }
}

#[test]
fn a_request_has_its_time_from_when_it_is_taken() {
    let mut world = limited(Some(1), None);
    world.exhaust();
    world.wait(20 * SECOND_NS);
    assert_eq!(world.done(), 1, "its 10 s would be over");
}
