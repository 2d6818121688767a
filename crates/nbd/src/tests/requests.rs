// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::testing::flag;
use crate::wire;

#[test]
fn an_export_is_negotiated_with_its_sizes() {
    let mut server = Server::new(1 << 20, ALL_FLAGS);
    server.blocks = Some((512, 1 << 20));
    server.room = 1;
    let mut world = World::new(server, config(false));
    world.turn();
    let export = *world.client.export().expect("it is negotiated");
    assert_eq!((export.bytes, export.block, export.payload), (1 << 20, 512, 1 << 20));
    assert_eq!(world.client.take_news(), Some(News::Up(export)));
}

#[test]
fn data_that_is_written_is_read_again() {
    let mut world = World::up(1 << 20, ALL_FLAGS, false);
    let data: Vec<u8> = (0..9000u32).map(|byte| byte as u8).collect();
    world.write(3, 4096, &data);
    world.run_until_idle();
    world.read(4, 4096, 9000);
    world.run_until_idle();
    assert_eq!(world.done(), [(3, Ok(())), (4, Ok(()))]);
    assert_eq!(world.driver.data[&4], data);
}

#[test]
fn several_requests_are_in_flight_and_answered_in_any_order() {
    let mut world = World::up(1 << 20, ALL_FLAGS, false);
    (0..100).for_each(|tag| world.write(tag, u64::from(tag) * 512, &[tag as u8; 512]));
    world.turn();
    assert_eq!((world.server.received.len(), world.client.in_flight()), (100, 100));
    for _ in 0..100 {
        let last = world.server.received.len() - 1;
        world.server.execute(last);
    }
    world.turn();
    let tags: Vec<u16> = world.done().iter().map(|(tag, _)| *tag).collect();
    assert_eq!(tags, (0..100).rev().collect::<Vec<u16>>());
}

#[test]
fn a_large_request_is_sent_in_parts_that_the_server_takes() {
    let mut world = World::new(Server::new(1 << 20, ALL_FLAGS), config(false));
    world.server.blocks = Some((1, 8192));
    world.turn();
    let data: Vec<u8> = (0..30_000u32).map(|byte| (byte / 7) as u8).collect();
    world.write(0, 100, &data);
    world.turn();
    assert_eq!(world.server.received[0].bytes, 8192);
    world.run_until_idle();
    world.read(1, 100, 30_000);
    world.run_until_idle();
    assert_eq!(world.done(), [(0, Ok(())), (1, Ok(()))]);
    assert_eq!(world.driver.data[&1], data);
}

#[test]
fn zeroes_are_written_by_a_server_that_does_not_do_that_itself() {
    for flags in [ALL_FLAGS, ALL_FLAGS & !flag::WRITE_ZEROES] {
        let mut world = World::up(1 << 20, flags, false);
        world.server.disk.fill(7);
        world.submit(0, Command::WriteZeroes { may_trim: false }, 512, &[0; 300_000]);
        world.turn();
        let first = world.server.received[0].clone();
        let is_own = flags == ALL_FLAGS;
        assert_eq!(first.command, if is_own { wire::WRITE_ZEROES } else { wire::WRITE });
        assert_eq!(first.flags & wire::NO_HOLE != 0, is_own);
        world.run_until_idle();
        assert_eq!(world.done(), [(0, Ok(()))]);
        assert!(world.server.stable[512..300_512].iter().all(|byte| *byte == 0));
        assert_eq!((world.server.disk[511], world.server.disk[300_512]), (7, 7));
    }
}

#[test]
fn a_trim_does_nothing_where_the_server_has_none() {
    for flags in [ALL_FLAGS, ALL_FLAGS & !flag::TRIM] {
        let mut world = World::up(1 << 20, flags, false);
        world.submit(0, Command::Trim, 512, &[0; 4096]);
        world.run_until_idle();
        assert_eq!(world.done(), [(0, Ok(()))]);
        assert_eq!(world.server.disk[512] == 0xee, flags == ALL_FLAGS);
    }
}

#[test]
fn what_is_not_in_the_export_fails_and_is_not_sent() {
    let mut world = World::new(Server::new(1 << 20, ALL_FLAGS), config(false));
    world.server.blocks = Some((512, 1 << 20));
    world.turn();
    for (tag, offset, bytes) in [(0, 1 << 20, 512), (1, u64::MAX - 511, 512), (2, 256, 512), (3, 0, 100)] {
        world.write(tag, offset, &std::vec![0; bytes]);
    }
    world.turn();
    assert_eq!(world.done(), (0..4).map(|tag| (tag, Err(Failure::Range))).collect::<Vec<_>>());
    assert!(world.server.received.is_empty());
}

#[test]
fn an_error_of_the_servers_is_its_requests() {
    let mut world = World::up(1 << 20, ALL_FLAGS, false);
    world.write(0, 0, &[1; 512]);
    world.read(1, 0, 512);
    world.turn();
    world.server.fail(1, 5);
    world.server.fail(0, 28);
    world.turn();
    assert_eq!(world.done(), [(1, Err(Failure::Server(5))), (0, Err(Failure::Server(28)))]);
    assert!(world.client.is_up());
}

#[test]
fn its_figures_count_what_was_answered() {
    let mut world = World::up(1 << 20, ALL_FLAGS, false);
    world.write(0, 0, &[1; 1024]);
    world.read(1, 0, 512);
    world.read(2, 1 << 20, 512);
    world.turn();
    let before = world.client.figures();
    assert_eq!((before.export_bytes, before.is_up, before.in_flight), (Some(1 << 20), true, 2));
    assert_eq!((before.counts.failures, before.counts.connections), (1, 1), "one is not in the export");
    world.run_until_idle();
    world.flush(3);
    world.run_until_idle();
    world.server.disconnect();
    world.turn();
    let (reads, writes) = (Transfers { requests: 1, bytes: 512 }, Transfers { requests: 1, bytes: 1024 });
    let counts = Counts { reads, writes, others: 1, failures: 1, connections: 1 };
    let figures = Figures { export_bytes: Some(1 << 20), is_up: false, in_flight: 0, counts };
    assert_eq!(world.client.figures(), figures);
    world.wait(10 * SECOND_NS);
    assert_eq!(world.client.figures().counts.connections, 2);
}

#[test]
fn a_read_only_client_changes_nothing() {
    let mut world = World::new(
        Server::new(1 << 20, flag::HAS_FLAGS | flag::READ_ONLY),
        Config { is_read_only: true, ..config(false) },
    );
    world.turn();
    world.write(0, 0, &[1; 512]);
    world.submit(1, Command::Trim, 0, &[0; 512]);
    world.read(2, 0, 512);
    world.run_until_idle();
    let refused = Err(Failure::ReadOnly);
    assert_eq!(world.done(), [(0, refused), (1, refused), (2, Ok(()))]);
}

#[test]
fn a_tag_is_of_one_request() {
    let mut world = World::up(1 << 20, ALL_FLAGS, false);
    world.read(127, 0, 512);
    let request = Request { command: Command::Read, offset: 0, bytes: 512 };
    assert_eq!(world.client.submit(127, request, 0), Err(Refused::Busy));
    assert_eq!(world.client.submit(128, request, 0), Err(Refused::NoSuchTag));
}

#[test]
fn a_turn_moves_a_bounded_number_of_bytes() {
    let mut world = World::up(4 << 20, ALL_FLAGS, false);
    (0..16).for_each(|tag| world.write(tag, u64::from(tag) << 16, &[1; 1 << 16]));
    world.turn();
    assert_eq!(world.next_ns, Some(world.now_ns), "it goes on");
    assert!(world.server.received.len() < 8, "{} of 16", world.server.received.len());
    world.run_until_idle();
    assert_eq!(world.done().len(), 16);
}

#[test]
fn a_driver_at_fault_loses_its_requests_and_no_other_turn() {
    let mut world = World::up(1 << 20, ALL_FLAGS, false);
    world.write(0, 0, &[1; 512]);
    world.driver.is_faulty = true;
    assert_eq!(world.client.turn(world.now_ns, &mut world.server, &mut world.driver), Err("no memory"));
    world.driver.is_faulty = false;
    world.run_until_idle();
    world.run_until_idle();
    assert_eq!((world.done(), world.client.in_flight()), (Vec::new(), 0));
    world.write(0, 512, &[2; 512]);
    world.run_until_idle();
    assert_eq!(world.done(), [(0, Ok(()))]);
    assert_eq!((world.server.disk[0], world.server.disk[512]), (0, 2));
}
