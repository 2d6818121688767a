// SPDX-License-Identifier: MIT OR Apache-2.0
//! Base addresses: sized, moved, enabled and disabled by the guest.

use super::*;

const BAR_0: u64 = 0x10;
const BAR_1: u64 = 0x14;
const BAR_2: u64 = 0x18;
const BAR_3: u64 = 0x1c;
const IO: u32 = 1;
const MEMORY: u32 = 2;

#[test]
fn all_ones_read_back_as_the_size() {
    let mut lab = Lab::with_probes(1);
    for (register, size) in
        [(BAR_0, 0xffff_f000), (BAR_1, 0xffe1), (BAR_2, 0xffff_c00c), (BAR_3, 0xffff_ffff), (0x20, 0)]
    {
        lab.set_config(register, u32::MAX);
        assert_eq!(lab.config(register), size, "{register:#x}");
    }
}

#[test]
fn a_range_is_where_the_guest_has_put_it_while_it_is_enabled() {
    let mut lab = Lab::with_probes(1);
    lab.set_config(BAR_0, 0xc000_0000);
    assert!(!lab.write(Space::Memory, 0xc000_0000, DWORD, 1), "not enabled");
    lab.set_config(4, MEMORY);
    assert!(lab.write(Space::Memory, 0xc000_0000, DWORD, 0x1234));
    lab.set_config(BAR_0, 0xd000_0000);
    assert_eq!(lab.read(Space::Memory, 0xc000_0000, DWORD), None);
    assert_eq!(lab.read(Space::Memory, 0xd000_0000, DWORD), Some(0x1234), "the device is the same");
    assert_eq!(lab.read(Space::Memory, 0xd000_1000, DWORD), None);
    lab.set_config(4, 0);
    assert_eq!(lab.read(Space::Memory, 0xd000_0000, DWORD), None);
}

#[test]
fn a_wide_range_is_above_4_gib() {
    let mut lab = Lab::with_probes(1);
    lab.set_config(BAR_2, 0x4000);
    lab.set_config(BAR_3, 0x12);
    lab.set_config(4, MEMORY);
    assert!(lab.write(Space::Memory, 0x12_0000_4000, DWORD, 7));
    assert_eq!(lab.read(Space::Memory, 0x12_0000_4000, DWORD), Some(7));
    assert_eq!(lab.bus.find(Space::Memory, 0x12_0000_7fff, DWORD).unwrap().1.offset, 0x3fff);
    // At the very end of the address space.
    lab.set_config(BAR_2, u32::MAX);
    lab.set_config(BAR_3, u32::MAX);
    assert_eq!(lab.read(Space::Memory, u64::MAX - 0x3fff, DWORD), Some(7));
    assert!(lab.bus.find(Space::Memory, u64::MAX, DWORD).is_some());
}

#[test]
fn ports_are_decoded_apart_from_memory_and_never_those_of_the_machine() {
    let mut lab = Lab::with_probes(1);
    lab.set_config(BAR_1, 0xc020);
    lab.set_config(4, MEMORY);
    assert_eq!(lab.bus.find(Space::Io, 0xc020, DWORD), None);
    lab.set_config(4, IO);
    assert!(lab.write(Space::Io, 0xc020, DWORD, 9));
    assert_eq!(lab.bus.find(Space::Memory, 0xc020, DWORD), None);
    lab.set_config(BAR_1, 0x3e0);
    assert_eq!(lab.bus.find(Space::Io, 0x3f8, DWORD), None);
}

#[test]
fn of_two_functions_in_one_place_the_lower_slot_answers() {
    let mut lab = Lab::with_probes(2);
    for slot in [2u64, 1] {
        lab.write_enhanced(slot << 15 | BAR_0, DWORD, 0xc000_0000);
        lab.write_enhanced(slot << 15 | 4, DWORD, MEMORY.into());
    }
    assert_eq!(lab.bus.find(Space::Memory, 0xc000_0000, DWORD).unwrap().0, Reach::Fixed(1));
    lab.set_config(4, 0);
    assert_eq!(lab.bus.find(Space::Memory, 0xc000_0000, DWORD).unwrap().0, Reach::Fixed(2));
}

proptest! {
    /// For every write of the guest, a range that is found lies inside of a range as the registers state it.
    #[test]
    fn what_decodes_is_what_the_registers_state(
        writes in prop::collection::vec((0u64..0x40, any::<u32>()), 0..24),
        address in any::<u64>(),
    ) {
        let mut lab = Lab::with_probes(1);
        for (register, value) in writes {
            lab.set_config(register & !3, value);
        }
        let (command, low, high) = (lab.config(4), lab.config(BAR_2), lab.config(BAR_3));
        let start = u64::from(high) << 32 | u64::from(low & !0xf);
        let found = lab.bus.find(Space::Memory, start | address & 0x3fff, DWORD);
        let narrow = u64::from(lab.config(BAR_0));
        let is_in_narrow = (start | address & 0x3fff).wrapping_sub(narrow) < 0x1000;
        let expected = if is_in_narrow { Probe::MEMORY } else { Probe::WIDE };
        prop_assert_eq!(found.map(|(_, at)| at.range), (command & MEMORY != 0).then_some(expected));
    }
}
