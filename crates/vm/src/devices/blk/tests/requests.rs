// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::devices::blk::config as device_config;
use crate::devices::outputs::Request;

#[test]
fn section_5_2_4_the_configuration_is_the_servers() {
    let mut world = World::new(config());
    world.server.blocks = Some((4096, 1 << 20));
    world.work();
    let offered = world.driver.offered();
    world.driver.start(offered);
    let at = VirtioDriver::<Blk>::DEVICE;
    assert_eq!(world.sectors(), DISK_BYTES as u64 / 512);
    let mut word = |offset| world.driver.read(at + offset, AccessSize::Dword);
    assert_eq!((word(8), word(12), word(20)), (64 << 10, 126, 4096));
    assert_eq!((word(40), word(44), word(52), word(56)), (1, 8, 1, 1));
    assert_eq!(word(60), 0);
}

#[test]
fn section_5_2_3_no_cache_is_offered_unless_it_is_asked_for() {
    use device_config::{DISCARD, FLUSH, RO, WRITE_ZEROES};
    let offered = |config| World::new(config).driver.offered();
    assert_eq!(offered(config()) & (FLUSH | RO | DISCARD | WRITE_ZEROES), DISCARD | WRITE_ZEROES);
    assert_eq!(offered(BlkConfig { is_write_back: true, ..config() }) & FLUSH, FLUSH);
    let read_only = BlkConfig { is_read_only: true, ..config() };
    assert_eq!(offered(read_only) & (RO | DISCARD | WRITE_ZEROES), RO);
}

#[test]
fn section_5_2_6_data_is_written_and_read() {
    let mut world = World::up(config());
    let data: Vec<u8> = (0..2048u32).map(|byte| (byte / 3) as u8).collect();
    let written = world.ask(OUT, 7, &data, 0);
    world.run_until_idle();
    assert_eq!(world.answers(), [(written, 0, Vec::new())]);
    assert_eq!(world.server.stable[7 * 512..][..2048], data);
    let read = world.ask(IN, 7, b"", 2048);
    world.run_until_idle();
    assert_eq!(world.answers(), [(read, 0, data)]);
    assert!(!world.driver.interrupts().is_empty());
}

#[test]
fn section_5_2_6_the_serial_number_is_answered_without_the_server() {
    let mut world = World::up(config());
    world.server.disconnect();
    let asked = world.ask(GET_ID, 0, b"", 20);
    world.work();
    let mut serial = b"web-root".to_vec();
    serial.resize(20, 0);
    assert_eq!(world.answers(), [(asked, 0, serial)]);
}

#[test]
fn section_5_2_6_ranges_are_discarded_and_zeroed() {
    let range = |sector: u64, sectors: u32, flags: u32| {
        let mut range = sector.to_le_bytes().to_vec();
        range.extend(sectors.to_le_bytes());
        range.extend(flags.to_le_bytes());
        range
    };
    let mut world = World::up(config());
    world.server.disk.fill(7);
    for (kind, range, status) in [
        (WRITE_ZEROES, range(8, 8, 0), 0),
        (WRITE_ZEROES, range(16, 8, 1), 0),
        (DISCARD, range(24, 8, 0), 0),
        (DISCARD, range(24, 8, 1), 2),
        (WRITE_ZEROES, range(8, 8, 2), 2),
        (WRITE_ZEROES, range(u64::MAX, 8, 0), 1),
        (WRITE_ZEROES, range(0, u32::MAX, 0), 1),
        (WRITE_ZEROES, range(2040, 16, 0), 1),
        (DISCARD, [0; 32].to_vec(), 1),
        (DISCARD, Vec::new(), 1),
    ] {
        world.ask(kind, 0, &range, 0);
        assert_eq!(world.status(), Some(status), "{kind} {range:?}");
    }
    let first = |sector: usize| world.server.disk[sector * 512];
    assert_eq!([7, 8, 15, 16, 23, 24, 31, 32].map(first), [7, 0, 0, 0, 0, 0xee, 0xee, 7]);
}

#[test]
fn section_5_2_6_what_is_unknown_is_unsupported_and_what_is_not_there_fails() {
    let mut world = World::up(config());
    world.ask(14, 0, b"", 0);
    assert_eq!(world.status(), Some(2));
    for (sector, bytes) in [(2048, 512), (2047, 1024), (u64::MAX / 512, 512), (u64::MAX, 512)] {
        world.ask(OUT, sector, &std::vec![0; bytes], 0);
        assert_eq!(world.status(), Some(1), "sector {sector}");
    }
    assert!(world.server.received.is_empty());
}

#[test]
fn section_5_2_6_a_read_only_disk_stays_as_it_is() {
    let mut world = World::up(BlkConfig { is_read_only: true, ..config() });
    world.ask(OUT, 0, &[1; 512], 0);
    assert_eq!((world.status(), world.server.disk[0]), (Some(1), 0));
}

#[test]
fn section_5_2_6_a_flush_makes_a_write_back_disk_stable() {
    let mut world = World::up(BlkConfig { is_write_back: true, ..config() });
    world.ask(OUT, 0, &[1; 512], 0);
    assert_eq!((world.status(), world.server.stable[0]), (Some(0), 0));
    world.ask(FLUSH, 0, b"", 0);
    assert_eq!((world.status(), world.server.stable[0]), (Some(0), 1));
}

#[test]
fn section_2_1_2_requests_that_are_none_need_a_reset() {
    for (readable, writable) in [(15, 1), (16, 0), (48, 8)] {
        let mut world = World::up(config());
        let mut bytes = std::vec![0; readable];
        bytes[0] = OUT as u8;
        world.driver.add(0, &bytes, writable);
        world.work();
        assert_eq!(world.driver.status() & 0x40, 0x40, "{readable} {writable}");
        assert!(matches!(world.driver.world.outputs.take_request(), Some(Request::DriverFault(..))));
    }
}

#[test]
fn section_2_7_13_a_chain_that_is_in_flight_is_not_taken_again() {
    let mut world = World::up(config());
    let head = world.ask(IN, 0, b"", 512);
    world.work();
    // The available ring names it once more.
    world.driver.set_memory(0x1000 + 4 + 2, &head.to_le_bytes());
    world.driver.set_memory(0x1000 + 2, &2u16.to_le_bytes());
    world.work();
    assert_eq!(world.driver.status() & 0x40, 0x40);
}

#[test]
fn a_chain_that_changes_in_flight_is_its_drivers_fault() {
    let mut world = World::up(config());
    let head = world.ask(IN, 0, b"", 512);
    world.work();
    // Header and status of fewer bytes than were asked for.
    let next = world.driver.memory(16 * u64::from(head) + 14, 2);
    let behind = u64::from(u16::from_le_bytes([next[0], next[1]]));
    world.driver.set_memory(16 * behind + 8, &100u32.to_le_bytes());
    world.run_until_idle();
    assert_eq!((world.driver.status() & 0x40, world.answers()), (0x40, Vec::new()));
}

#[test]
fn a_reset_under_way_takes_requests_with_it() {
    let mut world = World::up(config());
    world.ask(IN, 0, b"", 512);
    world.work();
    assert_eq!(world.server.received.len(), 1);
    let offered = world.driver.offered();
    world.driver.start(offered);
    world.run_until_idle();
    assert_eq!((world.answers(), world.server.connections), (Vec::new(), 2));
    let read = world.ask(IN, 0, b"", 512);
    world.run_until_idle();
    assert_eq!(world.answers()[0].0, read);
}
