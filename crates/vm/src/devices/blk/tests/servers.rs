// SPDX-License-Identifier: MIT OR Apache-2.0
//! Servers that are late, end, or never answer; and another image.

use super::*;

#[test]
fn section_4_1_4_3_a_reset_is_done_once_the_server_has_stated_the_size() {
    let mut world = World::new(config());
    world.server.is_listening = false;
    world.driver.write(20, AccessSize::Byte, 0);
    world.work();
    assert_ne!(world.driver.status(), 0, "the driver waits");
    world.server.is_listening = true;
    world.now_ns += SECOND_NS;
    world.work();
    assert_eq!((world.driver.status(), world.sectors()), (0, 2048));
}

#[test]
fn a_driver_does_not_wait_longer_than_a_request_may_take() {
    let mut world = World::new(config());
    world.server.is_listening = false;
    world.work();
    world.now_ns += 10 * SECOND_NS;
    world.work();
    assert_eq!((world.driver.status(), world.sectors()), (0, 0));
    let offered = world.driver.offered();
    world.driver.start(offered);
    let generation = world.driver.read(21, AccessSize::Byte);
    world.server.is_listening = true;
    world.now_ns += SECOND_NS;
    world.work();
    assert_eq!(world.sectors(), 2048);
    assert_ne!(world.driver.read(21, AccessSize::Byte), generation);
    assert_eq!(world.driver.interrupts(), [1], "of the configuration");
}

#[test]
fn a_server_that_restarts_is_only_late() {
    let mut world = World::up(config());
    let written = world.ask(OUT, 0, &[1; 512], 0);
    world.work();
    world.server.kill(512, || false);
    world.server.is_listening = false;
    world.work();
    world.now_ns += 5 * SECOND_NS;
    world.work();
    assert_eq!(world.answers(), []);
    world.server.is_listening = true;
    world.now_ns += SECOND_NS;
    world.run_until_idle();
    assert_eq!((world.answers(), world.server.stable[0]), ([(written, 0, Vec::new())].to_vec(), 1));
}

#[test]
fn a_server_that_is_gone_is_an_error_after_the_time_out() {
    let mut world = World::up(config());
    world.server.kill(512, || false);
    world.server.is_listening = false;
    world.ask(IN, 0, b"", 512);
    world.work();
    world.now_ns += 10 * SECOND_NS;
    world.work();
    let head = world.driver.collect(0).expect("it is answered").0;
    let at = 0x4000 + 0x1000 * u64::from(head.saturating_sub(1));
    assert_eq!(world.driver.memory(at + 512, 1), [1]);
}

#[test]
fn requests_in_flight_go_on_in_another_image() {
    for is_connected in [true, false] {
        let mut world = World::up(config());
        let written = world.ask(OUT, 0, &[1; 512], 0);
        let read = world.ask(IN, 8, b"", 1024);
        world.work();
        world.hand_over();
        if !is_connected {
            // The next image has no stream: a new one begins at once.
            world.server.disconnect();
        }
        assert_eq!(world.sectors(), 2048);
        world.run_until_idle();
        assert_eq!(world.answers(), [(written, 0, Vec::new()), (read, 0, std::vec![0; 1024])]);
        assert_eq!(world.server.connections, if is_connected { 1 } else { 2 });
    }
}

#[test]
fn acknowledged_writes_go_on_in_another_image() {
    let mut world = World::up(BlkConfig { is_write_back: true, ..config() });
    world.ask(OUT, 0, &[1; 1000], 0);
    assert_eq!(world.status(), Some(0));
    world.hand_over();
    world.server.kill(512, || false);
    world.work();
    world.now_ns += SECOND_NS;
    world.ask(IN, 0, b"", 512);
    world.run_until_idle();
    assert_eq!(world.answers()[0].2, [1; 512]);
}

#[test]
fn states_that_no_disk_has_made_are_refused() {
    let mut world = World::up(config());
    world.ask(IN, 0, b"", 512);
    world.work();
    let good = world.driver.saved();
    let restores = |driver: &mut VirtioDriver<Blk>, state: &[u8]| driver.hand_over_from(Blk::new(config()), state);
    assert_eq!(restores(&mut world.driver, &good), Ok(()));
    for length in 0..good.len() {
        assert!(restores(&mut world.driver, &good[..length]).is_err(), "{length} bytes");
    }
    let requests = good.len() - size_of::<handover::state::BlkRequest>();
    let mut unknown = good.clone();
    unknown[requests + 46] = 99;
    assert!(restores(&mut world.driver, &unknown).is_err());
    let long = [good.clone(), [0; 8].to_vec()].concat();
    assert!(restores(&mut world.driver, &long).is_err());
    let read_only = BlkConfig { is_read_only: true, ..config() };
    assert!(world.driver.hand_over_from(Blk::new(read_only), &good).is_err(), "other features");
}
