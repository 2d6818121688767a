// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::testing::flag;
use crate::wire;

#[test]
fn every_change_carries_fua() {
    let mut world = World::up(1 << 20, ALL_FLAGS, false);
    world.write(0, 0, &[1; 512]);
    world.submit(1, Command::WriteZeroes { may_trim: true }, 512, &[0; 512]);
    world.submit(2, Command::Trim, 1024, &[0; 512]);
    world.read(3, 0, 512);
    world.turn();
    let flags: Vec<u16> = world.server.received.iter().map(|request| request.flags).collect();
    assert_eq!(flags, [wire::FUA, wire::FUA, wire::FUA, 0]);
}

#[test]
fn without_fua_a_change_is_flushed_before_it_is_acknowledged() {
    let mut world = World::up(1 << 20, ALL_FLAGS & !flag::FUA, false);
    world.write(0, 0, &[1; 512]);
    world.turn();
    assert_eq!(world.server.execute(0).flags, 0);
    world.turn();
    assert_eq!(world.done(), []);
    assert_eq!(world.server.execute(0).command, wire::FLUSH);
    assert_eq!(world.server.stable[0], 1);
    world.turn();
    assert_eq!(world.done(), [(0, Ok(()))]);
}

#[test]
fn a_change_is_sent_again_after_its_flush_was_lost() {
    let mut world = World::up(1 << 20, ALL_FLAGS & !flag::FUA, false);
    world.write(0, 0, &[1; 512]);
    world.turn();
    world.server.execute(0);
    world.turn();
    world.server.kill(512, || false);
    world.turn();
    world.wait(SECOND_NS);
    assert_eq!(world.server.received[0].command, wire::WRITE);
    world.run_until_idle();
    assert_eq!((world.done(), world.server.stable[0]), ([(0, Ok(()))].to_vec(), 1));
}

#[test]
fn a_server_that_makes_nothing_stable_is_refused() {
    for (flags, is_write_back) in [(flag::HAS_FLAGS, false), (flag::HAS_FLAGS | flag::FUA, true)] {
        let mut world = World::new(Server::new(1 << 20, flags), config(is_write_back));
        world.turn();
        assert_eq!(world.client.take_news(), Some(News::Down(Problem::Volatile)));
    }
}

#[test]
fn acknowledged_writes_outlive_a_server_that_is_killed_before_their_flush() {
    let mut world = World::up(1 << 20, ALL_FLAGS, true);
    world.write(0, 0, &[1; 4096]);
    world.run_until_idle();
    world.write(0, 0, &[2; 2048]);
    world.submit(1, Command::WriteZeroes { may_trim: false }, 3072, &[0; 1024]);
    world.run_until_idle();
    assert_eq!(world.done().len(), 3);
    world.server.kill(512, || false);
    assert_eq!(world.server.disk[0], 0);
    world.read(0, 0, 4096);
    world.turn();
    world.wait(SECOND_NS);
    world.run_until_idle();
    assert_eq!(world.done(), [(0, Ok(()))]);
    let data = &world.driver.data[&0];
    assert_eq!((data[0], data[2047], data[2048], data[3071], data[3072]), (2, 2, 1, 1, 0));
}

#[test]
fn what_a_flush_has_made_stable_is_not_written_again() {
    let mut world = World::up(1 << 20, ALL_FLAGS, true);
    world.write(0, 0, &[1; 512]);
    world.run_until_idle();
    world.flush(1);
    world.run_until_idle();
    world.write(2, 512, &[2; 512]);
    world.run_until_idle();
    world.server.kill(512, || false);
    world.turn();
    world.wait(SECOND_NS);
    let again: Vec<u64> = world.server.received.iter().map(|request| request.offset).collect();
    assert_eq!(again, [512]);
}

#[test]
fn a_full_journal_makes_room_by_flushes_of_its_own() {
    let mut world = World::up(4 << 20, ALL_FLAGS, true);
    for round in 0..4u8 {
        (0..64).for_each(|tag| world.write(tag, u64::from(tag) * 16384, &[round + 1; 16384]));
        world.run_until_idle();
        assert_eq!(world.done().len(), 64, "round {round}");
    }
    assert_eq!(world.server.disk[63 * 16384], 4);
    assert!(world.server.stable[0] >= 3, "{}", world.server.stable[0]);
}

#[test]
fn an_answer_without_an_answer_to_the_flush_keeps_the_write() {
    let mut world = World::up(1 << 20, ALL_FLAGS, true);
    world.write(0, 0, &[1; 512]);
    world.turn();
    world.flush(1);
    world.turn();
    // The flush comes first, so that it does not have to cover the write.
    assert_eq!(world.server.execute(1).command, wire::FLUSH);
    world.turn();
    world.server.execute(0);
    world.turn();
    assert_eq!(world.done(), [(1, Ok(())), (0, Ok(()))]);
    world.server.kill(512, || false);
    world.turn();
    world.wait(SECOND_NS);
    world.run_until_idle();
    assert_eq!(world.server.disk[0], 1);
}

#[test]
fn a_flush_that_fails_keeps_what_it_should_have_made_stable() {
    let mut world = World::up(1 << 20, ALL_FLAGS, true);
    world.write(0, 0, &[1; 512]);
    world.run_until_idle();
    world.flush(1);
    world.turn();
    world.server.fail(0, 5);
    world.turn();
    assert_eq!(world.done(), [(0, Ok(())), (1, Err(Failure::Server(5)))]);
    assert_eq!(world.client.saved_writes().count(), 1);
}

#[test]
fn acknowledged_writes_and_requests_go_on_in_another_image() {
    for keeps_stream in [true, false] {
        let mut world = World::up(1 << 20, ALL_FLAGS, true);
        world.write(0, 0, &[1; 70_000]);
        world.run_until_idle();
        world.read(1, 0, 70_000);
        world.turn();
        world.hand_over(keeps_stream);
        world.server.kill(512, || false);
        world.turn();
        world.wait(SECOND_NS);
        world.run_until_idle();
        assert_eq!(world.done(), [(0, Ok(())), (1, Ok(()))]);
        assert_eq!(world.driver.data[&1], [1; 70_000]);
    }
}

#[test]
fn a_connection_goes_on_in_the_middle_of_a_request_and_of_a_reply() {
    let mut world = World::up(1 << 20, ALL_FLAGS, false);
    world.server.room = 700;
    world.write(0, 0, &[1; 5000]);
    world.read(1, 0, 5000);
    for _ in 0..200 {
        // One piece in each direction, and then another image.
        let mut one = Once { server: &mut world.server, has_sent: false, has_received: false };
        world.client.turn(world.now_ns, &mut one, &mut world.driver).expect("a driver without fault");
        world.hand_over(true);
        world.server.execute_all();
    }
    assert_eq!(world.done(), [(0, Ok(())), (1, Ok(()))]);
    assert_eq!((world.server.connections, world.driver.data[&1][4999]), (1, 1));
}

/// A stream with room for one piece in each direction.
struct Once<'a> {
    server: &'a mut Server,
    has_sent: bool,
    has_received: bool,
}

impl Stream for Once<'_> {
    fn open(&mut self) {
        self.server.open();
    }

    fn status(&mut self) -> Status {
        self.server.status()
    }

    fn send(&mut self, bytes: &[u8]) -> usize {
        if core::mem::replace(&mut self.has_sent, true) { 0 } else { self.server.send(bytes) }
    }

    fn receive(&mut self, into: &mut [u8]) -> usize {
        if core::mem::replace(&mut self.has_received, true) { 0 } else { self.server.receive(into) }
    }

    fn reset(&mut self) {
        self.server.reset();
    }
}
