// SPDX-License-Identifier: MIT OR Apache-2.0
//! Servers that lie, break off, or never answer.

use super::*;
use crate::testing::flag;
use crate::wire;

fn down(world: &mut World) -> Problem {
    match world.client.take_news() {
        Some(News::Down(problem)) => problem,
        other => panic!("{other:?}"),
    }
}

/// Returns the problem that a client finds with a server that sends these bytes first.
fn greeted(bytes: &[u8]) -> Problem {
    let mut world = World::new(Server::new(1 << 20, ALL_FLAGS), config(false));
    world.server.is_mute = true;
    world.turn();
    world.server.is_mute = false;
    world.server.send_raw(bytes);
    world.turn();
    down(&mut world)
}

fn greeting() -> Vec<u8> {
    let mut bytes = wire::GREETING.to_be_bytes().to_vec();
    bytes.extend(wire::OPTION.to_be_bytes());
    bytes.extend([0, 3]);
    bytes
}

fn option_reply(option: u32, kind: u32, bytes: u32) -> Vec<u8> {
    let mut reply = wire::OPTION_REPLY.to_be_bytes().to_vec();
    [option, kind, bytes].iter().for_each(|value| reply.extend(value.to_be_bytes()));
    reply
}

#[test]
fn something_else_than_a_server_is_refused() {
    assert_eq!(greeted(b"HTTP/1.1 400 Bad Request\r\n"), Problem::Greeting);
    let mut old = greeting();
    old[17] = 0;
    assert_eq!(greeted(&old), Problem::Greeting);
}

#[test]
fn replies_to_options_are_checked() {
    let with = |reply: Vec<u8>| greeted(&[greeting(), reply].concat());
    assert_eq!(with(option_reply(6, wire::REPLY_ACK, 0)), Problem::OptionReply);
    assert_eq!(with(option_reply(7, wire::REPLY_ACK, 0)), Problem::NoDescription);
    assert_eq!(with(option_reply(7, wire::REPLY_INFO, u32::MAX)), Problem::LongOption);
    assert_eq!(with(option_reply(7, wire::REPLY_INFO, 1)), Problem::OptionReply);
    assert_eq!(with(option_reply(7, wire::REPLY_ERROR | 5, 0)), Problem::NoExport { error: 5 });
    let mut endless = Vec::new();
    (0..40).for_each(|_| endless.extend([option_reply(7, wire::REPLY_INFO, 2), [0, 9].to_vec()].concat()));
    assert_eq!(with(endless), Problem::LongOption);
}

#[test]
fn an_export_that_is_not_there_is_named() {
    let mut world = World::new(Server::new(1 << 20, ALL_FLAGS), config(false));
    world.server.export = String::from("other");
    world.turn();
    let problem = down(&mut world);
    assert_eq!(problem, Problem::NoExport { error: 6 });
    assert!(std::format!("{problem}").contains("no such export"));
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    for (blocks, is_good) in [
        (Some((0, 1 << 20)), false),
        (Some((3, 1 << 20)), false),
        (Some((8192, 1 << 20)), false),
        (Some((512, 512)), false),
        (Some((4096, u32::MAX)), true),
        (None, true),
    ] {
        let mut world = World::new(Server::new(1 << 20, ALL_FLAGS), config(false));
        world.server.blocks = blocks;
        world.turn();
        assert_eq!(world.client.is_up(), is_good, "{blocks:?}");
    }
}

#[test]
fn an_export_that_shrinks_or_can_do_less_is_another_one() {
    for (bytes, flags) in [(1 << 19, ALL_FLAGS), (1 << 20, ALL_FLAGS & !flag::WRITE_ZEROES)] {
        let mut world = World::up(1 << 20, ALL_FLAGS, false);
        (world.server.disk, world.server.stable) = (std::vec![0; bytes], std::vec![0; bytes]);
        world.server.flags = flags;
        world.server.disconnect();
        world.turn();
        assert_eq!(down(&mut world), Problem::Closed);
        world.wait(SECOND_NS);
        assert_eq!(down(&mut world), Problem::Changed { from: 1 << 20, to: bytes as u64 });
    }
}

#[test]
fn a_read_only_export_needs_a_read_only_device() {
    let mut world = World::new(Server::new(1 << 20, ALL_FLAGS | flag::READ_ONLY), config(false));
    world.turn();
    assert_eq!(down(&mut world), Problem::ReadOnly);
}

#[test]
fn a_reply_to_no_request_ends_the_connection_and_nothing_else() {
    let mut world = World::up(1 << 20, ALL_FLAGS, false);
    world.write(0, 0, &[1; 512]);
    world.turn();
    let cookie = world.server.received[0].cookie;
    for wrong in [cookie ^ 1, cookie ^ 1 << 40, u64::MAX] {
        world.server.answer(wrong, 0);
        world.turn();
        assert_eq!(down(&mut world), Problem::Cookie(wrong));
        world.wait(SECOND_NS);
        assert_eq!((world.server.received.len(), world.done().len()), (1, 0), "it is sent again");
        world.client.take_news();
    }
    world.run_until_idle();
    assert_eq!(world.done(), [(0, Ok(()))]);
}

#[test]
fn a_reply_that_comes_twice_is_to_no_request() {
    let mut world = World::up(1 << 20, ALL_FLAGS, false);
    world.write(0, 0, &[1; 512]);
    world.turn();
    let cookie = world.server.execute(0).cookie;
    world.server.answer(cookie, 0);
    world.turn();
    assert_eq!((world.done(), down(&mut world)), ([(0, Ok(()))].to_vec(), Problem::Cookie(cookie)));
}

#[test]
fn noise_ends_the_connection() {
    let mut world = World::up(1 << 20, ALL_FLAGS, false);
    world.server.send_raw(&[0x66; 16]);
    world.turn();
    assert_eq!(down(&mut world), Problem::ReplyMagic(0x6666_6666));
}

#[test]
fn a_reply_that_breaks_off_is_repeated_on_the_next_connection() {
    let mut world = World::up(1 << 20, ALL_FLAGS, false);
    world.server.disk.fill(9);
    world.read(0, 0, 4096);
    world.turn();
    let cookie = world.server.received[0].cookie;
    world.server.answer(cookie, 0);
    world.server.send_raw(&[9; 1000]);
    world.turn();
    world.server.disconnect();
    world.turn();
    assert_eq!(down(&mut world), Problem::Closed);
    world.wait(SECOND_NS);
    world.run_until_idle();
    assert_eq!((world.done(), world.driver.data[&0].clone()), ([(0, Ok(()))].to_vec(), [9; 4096].to_vec()));
}

#[test]
fn a_server_that_never_answers_is_left_once_and_then_requests_fail() {
    let mut world = World::up(1 << 20, ALL_FLAGS, false);
    world.read(0, 0, 512);
    world.turn();
    assert_eq!(world.next_ns, Some(world.now_ns + TIMEOUT_NS / 2));
    world.wait(TIMEOUT_NS / 2);
    assert_eq!(down(&mut world), Problem::TimedOut { after_ms: 5000 });
    world.wait(SECOND_NS);
    assert_eq!(world.server.connections, 2);
    world.wait(TIMEOUT_NS / 2);
    assert_eq!(world.done(), [(0, Err(Failure::TimedOut))]);
    assert_eq!(world.client.in_flight(), 0);
}

#[test]
fn a_server_that_does_not_negotiate_is_left() {
    let mut world = World::new(Server::new(1 << 20, ALL_FLAGS), config(false));
    world.server.is_mute = true;
    world.turn();
    assert_eq!(world.client.take_news(), None);
    world.wait(5 * SECOND_NS);
    assert_eq!(down(&mut world), Problem::SlowHandshake { after_s: 5 });
}

#[test]
fn a_slow_server_is_given_twice_the_time_on_each_next_connection() {
    let patient = Config { timeout_ns: 60 * SECOND_NS, ..config(false) };
    let mut world = World::new(Server::new(1 << 20, ALL_FLAGS), patient);
    world.server.is_mute = true;
    world.turn();
    // Half of the time-out at most, and each time is reported once.
    for (after_s, is_reported) in [(5, true), (10, true), (20, true), (30, true), (30, false)] {
        world.wait(after_s * SECOND_NS - 1);
        assert_eq!((world.client.take_news(), world.server.status()), (None, Status::Open), "{after_s}");
        world.wait(1);
        let news = is_reported.then_some(News::Down(Problem::SlowHandshake { after_s }));
        assert_eq!((world.client.take_news(), world.server.status()), (news, Status::Closed));
        world.wait(SECOND_NS);
    }
}

#[test]
fn a_refused_connection_is_reported_once_and_tried_ever_less() {
    let mut world = World::new(Server::new(1 << 20, ALL_FLAGS), config(false));
    world.server.is_listening = false;
    world.read(0, 0, 512);
    world.turn();
    assert_eq!(down(&mut world), Problem::Refused);
    let mut pauses = Vec::new();
    while world.done().is_empty() {
        let next_ns = world.next_ns.expect("it tries again");
        pauses.push((next_ns - world.now_ns) / 1_000_000);
        world.now_ns = next_ns;
        world.turn();
        assert_eq!(world.client.take_news(), None);
    }
    assert_eq!(pauses[..8], [20, 40, 80, 160, 320, 640, 1000, 1000]);
}

#[test]
fn a_server_that_ends_is_no_error() {
    let mut world = World::up(1 << 20, ALL_FLAGS, false);
    world.write(0, 0, &[1; 512]);
    world.turn();
    world.server.fail(0, wire::ESHUTDOWN);
    world.turn();
    assert_eq!(down(&mut world), Problem::ShuttingDown);
    world.wait(SECOND_NS);
    world.run_until_idle();
    assert_eq!(world.done(), [(0, Ok(()))]);
}

#[test]
fn states_that_no_client_has_made_are_refused() {
    let mut client = Client::new(config(false));
    let saved = SavedClient { is_connected: true, ..SavedClient::default() };
    assert!(client.resume(&saved).is_err());
    let good = SavedRequest { stage: 1, bytes: 512, ..SavedRequest::default() };
    let refuse = |request: SavedRequest| {
        let mut client = Client::new(config(false));
        client.resume(&SavedClient { sequence: 9, ..SavedClient::default() }).expect("it is good");
        client.resume_request(&request).and_then(|()| client.check_resumed()).is_err()
    };
    assert!(!refuse(good));
    for bad in [
        SavedRequest { tag: 500, ..good },
        SavedRequest { tag: 129, ..good },
        SavedRequest { stage: 0, ..good },
        SavedRequest { stage: 4, ..good },
        SavedRequest { stage: 3, ..good },
        SavedRequest { command: 9, ..good },
        SavedRequest { done: 500, part: 13, ..good },
        SavedRequest { offset: u64::MAX, stage: 3, ..good },
        SavedRequest { sequence: 9, ..good },
    ] {
        assert!(refuse(bad), "{bad:?}");
    }
    assert!(client.resume_write(&SavedWrite { command: 1, offset: 0, bytes: 512 }, |_| {}).is_err());
    let mut client = Client::new(config(true));
    let mut room = 0;
    while client.resume_write(&SavedWrite { command: 1, offset: 0, bytes: 1 << 16 }, |_| {}).is_ok() {
        room += 1;
    }
    assert_eq!(room, JOURNAL_BYTES >> 16);
}
