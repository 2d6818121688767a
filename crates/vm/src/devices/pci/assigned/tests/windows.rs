// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where ranges are mapped, and what is reached by exits.

use super::*;

#[test]
fn pages_are_mapped_where_the_guest_puts_them_but_for_msi_xs() {
    let mut lab = Lab::new(1);
    lab.enable_at(0, HIGH);
    assert_eq!(lab.mapped(), [(HIGH, 0x2000)]);
    lab.set_config(0, 0x18, 0xc000_0000);
    assert_eq!(lab.mapped(), [(0xc000_0000, 0x2000), (HIGH, 0x2000)]);
    lab.set_config(0, 0x04, 0b100);
    assert_eq!(lab.mapped(), [], "it does not decode");
    assert_eq!(lab.physical(0, |p| p.get(4) & 0b111), 0b111, "the hardware does");
}

#[test]
fn what_shares_a_page_with_msi_x_is_forwarded() {
    let mut lab = Lab::new(1);
    lab.enable_at(0, HIGH);
    lab.write(HIGH + 0x2000 + 640, DWORD, 0x1234_5678);
    assert_eq!(lab.physical(0, |p| p.registers[&(0, 0x2280)]), 0x1234_5678);
    assert_eq!(lab.read(HIGH + 0x2280, AccessSize::Word), 0x5678);
    assert_eq!(lab.read(HIGH + 0x2282, DWORD), 0xffff_ffff, "not aligned");
    let reads = lab.physical(0, |p| p.reads);
    assert_eq!(lab.read(HIGH + 0x1ffc, AccessSize::Qword), u64::MAX, "it reaches into the table");
    assert_eq!(lab.read(HIGH + 0x2000 + 12, DWORD), 1, "masked");
    assert_eq!(lab.read(HIGH + 0x3000, DWORD), 0, "nothing is pending");
    assert_eq!(lab.read(HIGH + 0x3ffc, AccessSize::Qword), u64::MAX, "past the end");
    assert_eq!(lab.physical(0, |p| p.reads), reads);
}

#[test]
fn a_range_smaller_than_a_page_is_forwarded() {
    let mut lab = Lab::new(1);
    lab.set_config(0, 0x1c, 0xc000_0100);
    lab.set_config(0, 0x04, 0b010);
    assert!(lab.mapped().iter().all(|(gpa, _)| *gpa != 0xc000_0000));
    lab.write(0xc000_0104, AccessSize::Byte, 7);
    assert_eq!(lab.physical(0, |p| p.registers[&(3, 4)]), 7);
}

#[test]
fn ports_are_forwarded() {
    let mut lab = Lab::new(1);
    lab.set_config(0, 0x20, 0xc000);
    lab.set_config(0, 0x04, 0b001);
    let (device, at) = lab.bus.find_port(0xc004, DWORD).and_then(|place| lab.bus.device(place)).unwrap();
    device.lock().write(at, 9, &mut lab.world.context());
    assert_eq!(lab.physical(0, |p| p.registers[&(4, 4)]), 9);
    assert_eq!(lab.mapped(), []);
}

#[test]
fn nothing_is_mapped_over_memory_devices_or_the_end_of_the_address_space() {
    let mut lab = Lab::new(1);
    for address in [0, 0x10_0000, 0xbfff_c000, 0xe000_0000, 0xfec0_0000, 0xfee0_0000, 1 << 32, !0x3fff, 1 << 48] {
        lab.enable_at(0, address);
        assert!(!lab.mapped().iter().any(|(gpa, _)| *gpa >= address), "{address:#x}");
    }
    lab.enable_at(0, 0xc000_0000);
    assert_eq!(lab.mapped(), [(0xc000_0000, 0x2000)]);
}

#[test]
fn of_two_that_overlap_the_first_is_mapped_and_the_other_when_it_has_left() {
    let mut lab = Lab::new(2);
    lab.enable_at(1, HIGH);
    assert_eq!(lab.space.lock().unwrap().at(HIGH).unwrap().0, 1);
    lab.enable_at(0, HIGH);
    assert_eq!(lab.space.lock().unwrap().at(HIGH).unwrap().0, 0, "the first one wins");
    assert_eq!(lab.mapped(), [(HIGH, 0x2000)]);
    lab.enable_at(0, HIGH + 0x4000);
    assert_eq!(lab.mapped(), [(HIGH, 0x2000), (HIGH + 0x4000, 0x2000)]);
    // The two exchange their places, one after the other.
    lab.enable_at(0, HIGH);
    lab.enable_at(1, HIGH + 0x4000);
    assert_eq!(lab.space.lock().unwrap().at(HIGH + 0x4000).unwrap().0, 1);
}

#[test]
fn two_ranges_of_one_function_that_overlap_are_mapped_once() {
    let mut lab = Lab::new(1);
    lab.set_config(0, 0x18, 0xc000_2000);
    lab.enable_at(0, 0xc000_0000);
    assert_eq!(lab.mapped(), [(0xc000_0000, 0x2000)], "the third is hidden by the first");
}

#[test]
fn what_the_host_cannot_map_is_forwarded() {
    let mut lab = Lab::new(1);
    lab.physical(0, |p| p.refuses_maps = true);
    lab.enable_at(0, HIGH);
    assert_eq!(lab.mapped(), []);
    lab.write(HIGH + 8, AccessSize::Qword, 5);
    assert_eq!(lab.read(HIGH + 8, AccessSize::Qword), 5);
    lab.set_config(0, 0x04, 0);
}

#[test]
fn only_two_bits_of_the_command_register_are_passed_on() {
    let mut lab = Lab::new(2);
    lab.set_config(0, 0x04, 0xffff_ffff);
    assert_eq!(lab.config(0, 4) & 0xffff, 0x0407);
    assert_eq!(lab.physical(0, |p| p.get(4)), 0x0010_0407);
    lab.set_config(0, 0x04, 0);
    assert_eq!(lab.physical(0, |p| p.get(4)), 0x0010_0003, "decoding is the host's");
    lab.set_config(1, 0x04, 0b110);
    assert_eq!(lab.physical(1, |p| p.get(4)), 0x0010_0407, "without a line INTx stays disabled");
    assert_eq!(PASSED.iter().map(|passed| (passed.register, passed.bits)).collect::<Vec<_>>(), [(4, 4), (4, 0x400)]);
}

#[test]
fn a_write_that_changes_nothing_asks_nothing_of_the_host() {
    let mut lab = Lab::new(1);
    lab.enable_at(0, HIGH);
    let before = lab.physical(0, |p| p.requests);
    (0..100).for_each(|_| lab.enable_at(0, HIGH));
    assert_eq!(lab.physical(0, |p| p.requests), before);
}
