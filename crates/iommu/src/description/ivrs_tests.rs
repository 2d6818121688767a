// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec;
use std::vec::Vec;

use pci::Bdf;
use units::{PHYSICAL_LIMIT, PhysAddr, PhysRange};

use super::super::testing::*;
use super::super::*;

/// Of QEMU 10.0.2: q35, `amd-iommu,intremap=on,xtsup=on` at 00:02.0, a root port with an e1000e, a bridge to PCI.
const QEMU_10: &str = "
    49 56 52 53 e8 00 00 00 01 df 42 4f 43 48 53 20 42 58 50 43 20 20 20 20 01 00 00 00 42 58 50 43
    01 00 00 00 01 28 00 00 00 00 00 00 00 00 00 00
    10 d1 54 00 10 00 40 00 00 00 d8 fe 00 00 00 00 00 00 00 00 45 00 00 00
    02 00 00 00 02 08 00 00 02 10 00 00 02 18 00 00 03 00 01 00 04 ff 01 00 02 20 00 00
    43 00 02 00 00 00 02 00 04 ff 02 00 02 f8 00 00 02 fa 00 00 02 fb 00 00 48 00 00 00 00 a0 00 01
    11 11 64 00 10 00 40 00 00 00 d8 fe 00 00 00 00 00 00 00 00 00 00 00 00 d7 29 00 00 00 00 00 00
    00 00 00 00 00 00 00 00
    02 00 00 00 02 08 00 00 02 10 00 00 02 18 00 00 03 00 01 00 04 ff 01 00 02 20 00 00
    43 00 02 00 00 00 02 00 04 ff 02 00 02 f8 00 00 02 fa 00 00 02 fb 00 00 48 00 00 00 00 a0 00 01";

/// Of QEMU 7.2.22: `amd-iommu,intremap=on` at 00:02.0, a root port with an e1000e.
const QEMU_7: &str = "
    49 56 52 53 74 00 00 00 01 09 42 4f 43 48 53 20 42 58 50 43 20 20 20 20 01 00 00 00 42 58 50 43
    01 00 00 00 00 28 00 00 00 00 00 00 00 00 00 00
    10 d1 44 00 10 00 40 00 00 00 d8 fe 00 00 00 00 00 00 00 00 44 00 00 00
    02 00 00 00 02 08 00 00 02 10 00 00 02 18 00 00 03 00 01 00 04 ff 01 00
    02 f8 00 00 02 fa 00 00 02 fb 00 00 48 00 00 00 00 a0 00 01";

#[test]
fn qemus_table_is_read_without_a_problem() {
    let description = read_ivrs(hexadecimal(QEMU_10));
    assert_eq!(faults(&description), []);
    assert_eq!((description.kind, description.address_bits), (Some(Kind::Amd), 40));
    let [unit] = description.units[..] else { panic!("{:?}", description.units) };
    assert_eq!((unit.registers, unit.register_bytes), (PhysAddr(REGISTERS), 16 << 10));
    assert_eq!((unit.function, unit.capability), (Some(place(0x10)), 0x40));
    assert_eq!((unit.extended_features, unit.extended_features_2), (Some(0x29d7), Some(0)));
    assert_eq!((unit.link, unit.covers_rest), (LinkFlags(0x11), false));
    let covered: Vec<_> = (0..=u16::MAX).filter(|&requester| description.unit_of(place(requester)).is_some()).collect();
    let named = [0, 8, 0x10, 0x18, 0x20, 0xa0, 0xf8, 0xfa, 0xfb];
    assert_eq!(covered, named.into_iter().chain(0x100..=0x2ff).collect::<Vec<_>>());
    assert_eq!(description.alias_of(place(0x208)), place(0x200));
    assert_eq!(description.alias_of(place(0x100)), place(0x100));
    let io_apic = Interrupter { kind: InterrupterKind::IoApic, id: 0, unit: 0, requester: 0xa0 };
    assert_eq!(description.interrupters[..], [io_apic]);
    assert_eq!(description.io_apic(0), Some(&io_apic));
    assert_eq!((description.io_apic(1), description.hpet(0)), (None, None));
}

#[test]
fn a_table_with_the_oldest_type_alone_has_no_copies_of_registers() {
    let description = read_ivrs(hexadecimal(QEMU_7));
    assert_eq!(faults(&description), []);
    let [unit] = description.units[..] else { panic!("{:?}", description.units) };
    assert_eq!((unit.attributes, unit.extended_features), (0x44, None));
    assert!(unit.link.has_tunnel() && !unit.link.is_coherent());
    assert_eq!(description.unit_of(place(0x1ff)), Some(0));
    assert_eq!(description.unit_of(place(0x200)), None);
}

#[test]
fn of_several_blocks_of_a_unit_the_highest_type_counts() {
    let block = |kind, function| ivhd(kind, 2, REGISTERS, &[entry(2, function, 0)]);
    for order in [[0x10, 0x11, 0x40], [0x40, 0x11, 0x10], [0x11, 0x40, 0x10]] {
        let blocks = order.map(|kind| block(kind, u16::from(kind)));
        let description = read_ivrs(ivrs(&blocks));
        assert_eq!(faults(&description), []);
        assert_eq!((description.units.len(), description.scopes.len()), (1, 1));
        assert_eq!(description.unit_of(place(0x40)), Some(0));
    }
}

#[test]
fn a_block_that_contradicts_or_repeats_is_named() {
    let blocks = [ivhd(0x10, 2, 0xf000_0000, &[]), ivhd(0x40, 2, REGISTERS, &[]), ivhd(0x40, 2, REGISTERS, &[])];
    let description = read_ivrs(ivrs(&blocks));
    let expected = [(48, TableFault::ContradictsUnit { address: 0xf000_0000 }), (112, TableFault::RepeatedUnit)];
    assert_eq!(faults(&description), expected);
    assert_eq!(description.units[0].registers, PhysAddr(REGISTERS));
}

#[test]
fn a_short_block_of_a_high_type_does_not_hide_a_whole_one_of_a_lower() {
    let mut short = ivhd(0x10, 2, REGISTERS, &[]);
    short[0] = 0x40;
    let description = read_ivrs(ivrs(&[short, ivhd(0x11, 2, REGISTERS, &[])]));
    assert_eq!(faults(&description), [(48, TableFault::Truncated)]);
    assert_eq!(description.units.len(), 1);
}

#[test]
fn unknown_types_are_passed_over() {
    let entries = [entry(5, 0, 0), vec![0x80; 16], vec![0xc0; 32], special(0, 0, 0, 3), entry(2, 8, 0)];
    let description = read_ivrs(ivrs(&[vec![0x99, 0, 4, 0], ivhd(0x11, 2, REGISTERS, &entries)]));
    let unknown = |kind| TableFault::UnknownKind { kind };
    let at = ENTRIES + 4;
    let expected = [
        (48, unknown(0x99)),
        (at, unknown(5)),
        (at + 4, unknown(0x80)),
        (at + 20, unknown(0xc0)),
        (at + 52, unknown(3)),
    ];
    assert_eq!(faults(&description), expected);
    assert_eq!(description.unit_of(place(8)), Some(0));
}

#[test]
fn a_block_without_a_length_ends_the_walk() {
    for length in [0, 3, 41, u16::MAX] {
        let mut block = ivhd(0x11, 3, REGISTERS + 0x4000, &[]);
        block[2..4].copy_from_slice(&length.to_le_bytes());
        let description = read_ivrs(ivrs(&[ivhd(0x11, 2, REGISTERS, &[]), block]));
        assert_eq!(faults(&description), [(88, TableFault::Truncated)], "{length}");
        assert_eq!(description.units.len(), 1);
    }
    assert_eq!(faults(&read_ivrs(ivrs(&[vec![0x10, 0, 4]]))), [(48, TableFault::Truncated)]);
}

#[test]
fn registers_that_cannot_be_there_cost_the_unit() {
    let refused = [0, 0x1000, REGISTERS + 0x2000, PHYSICAL_LIMIT - 0x2000, PHYSICAL_LIMIT, !0x3fff];
    for address in refused {
        let description = read_ivrs(ivrs(&[ivhd(0x11, 2, address, &[entry(2, 8, 0)])]));
        assert_eq!(faults(&description), [(48, TableFault::BadRegisters { address })]);
        assert!(description.units.is_empty() && description.scopes.is_empty());
    }
    let last = read_ivrs(ivrs(&[ivhd(0x11, 2, PHYSICAL_LIMIT - 0x4000, &[])]));
    assert_eq!((faults(&last), last.units.len()), (vec![], 1));
}

#[test]
fn registers_of_two_units_overlap_nowhere() {
    // With performance counters there are 512 KiB of registers.
    let mut counting = ivhd(0x11, 2, 0xfd00_0000, &[]);
    counting[25] |= 1 << 1;
    let mut old = ivhd(0x10, 4, 0xfc00_0000, &[]);
    old[21] = 1 << 5;
    let (inside, behind) = (ivhd(0x11, 3, 0xfd07_c000, &[]), ivhd(0x11, 3, 0xfd08_0000, &[]));
    let description = read_ivrs(ivrs(&[counting, old, inside, behind]));
    // The block for the same unit that follows counts as a repetition.
    let expected =
        [(48 + 40 + 24, TableFault::SharedRegisters { address: 0xfd07_c000 }), (152, TableFault::RepeatedUnit)];
    assert_eq!(faults(&description), expected);
    assert_eq!(description.units.iter().map(|unit| unit.register_bytes).collect::<Vec<_>>(), [512 << 10; 2]);
}

fn memory(flags: u8) -> (bool, bool, bool) {
    let description = read_ivrs(ivrs(&[ivmd(0x21, flags, (0x10, 0), 0, 0x1000, 0x2000)]));
    let reserved = description.reserved[0];
    (reserved.is_readable, reserved.is_writable, reserved.is_exclusion)
}

#[test]
fn memory_is_mapped_as_its_flags_want_and_an_exclusion_always() {
    assert_eq!(
        [0, 1, 3, 5, 7].map(memory),
        [(false, false, false), (false, false, false), (true, false, false), (false, true, false), (true, true, false)]
    );
    assert_eq!([6, 8, 9].map(memory), [(false, false, false), (true, true, true), (true, true, true)]);
}

#[test]
fn memory_is_for_all_functions_of_a_segment_one_or_a_range() {
    let description = read_ivrs(ivrs(&[
        ivmd(0x20, 7, (0x99, 0), 1, 0x1000, 0x1000),
        ivmd(0x21, 7, (0x10, 0), 0, 0x2000, 0x1000),
        ivmd(0x22, 7, (0x20, 0x2f), 0, 0x3000, 0x1000),
        ivmd(0x22, 7, (0x20, 0x1f), 0, 0x4000, 0x1000),
        ivmd(0x21, 7, (0x10, 0), 0, 0x5000, 0x1000)[..28].to_vec(),
    ]));
    let bad = (48 + 96, TableFault::BadFunctions { requester: 0x20 });
    assert_eq!(faults(&description), [bad, (48 + 128, TableFault::Truncated)]);
    let of = |place| description.reserved_for(place).map(|reserved| reserved.range.start().0).collect::<Vec<_>>();
    assert_eq!(of(Bdf::of_requester(1, 0x777)), [0x1000]);
    assert_eq!([0x10, 0x20, 0x2f].map(|at| of(place(at))), [[0x2000], [0x3000], [0x3000]]);
    assert_eq!([0x11, 0x30].map(|at| of(place(at))), [[0; 0], [0; 0]]);
}

#[test]
fn memory_that_cannot_be_is_kept_with_the_reason() {
    let cases = [
        (0x1000, 0, Defect::Empty),
        (0x1000, 0x800, Defect::Misaligned),
        (0x1800, 0x1000, Defect::Misaligned),
        (PHYSICAL_LIMIT - 0x1000, 0x2000, Defect::BeyondLimit),
        (u64::MAX - 0xfff, 0x1000, Defect::BeyondLimit),
        (0x1000, u64::MAX, Defect::BeyondLimit),
        (u64::MAX, 0, Defect::Empty),
    ];
    for (start, bytes, defect) in cases {
        let description = read_ivrs(ivrs(&[ivmd(0x20, 7, (0, 0), 0, start, bytes)]));
        assert_eq!(faults(&description), [(48, TableFault::BadMemory(defect))], "{start:#x}, {bytes:#x}");
        let [reserved] = description.reserved[..] else { panic!("{:?}", description.reserved) };
        assert_eq!((reserved.range.start(), reserved.defect), (PhysAddr(start), Some(defect)));
    }
    let last = read_ivrs(ivrs(&[ivmd(0x20, 7, (0, 0), 0, PHYSICAL_LIMIT - 0x1000, 0x1000)]));
    let range = PhysRange::from_start(PhysAddr(PHYSICAL_LIMIT - 0x1000), 0x1000).unwrap();
    assert_eq!((faults(&last), last.reserved[0].range), (vec![], range));
}

#[test]
fn lists_are_bounded_and_report_the_bound() {
    let units: Vec<_> = (0..20u16).map(|unit| ivhd(0x11, unit, REGISTERS + u64::from(unit) * 0x4000, &[])).collect();
    let description = read_ivrs(ivrs(&units));
    assert_eq!(description.units.len(), MAX_UNITS);
    assert_eq!(faults(&description), [16, 17, 18, 19].map(|unit| (48 + unit * 40, TableFault::NoRoom)));
    let scopes: Vec<_> = (0..300).map(|function| entry(2, function, 0)).collect();
    let description = with_entries(&scopes);
    assert_eq!((description.scopes.len(), description.problems.len()), (MAX_SCOPES, MAX_PROBLEMS));
    assert_eq!(description.problems_dropped, 300 - 256 - 32);
    let interrupters: Vec<_> = (0..40).map(|id| special(id, 8, 0, 1)).collect();
    assert_eq!(with_entries(&interrupters).interrupters.len(), MAX_INTERRUPTERS);
    let memory: Vec<_> = (1..=70).map(|page| ivmd(0x20, 7, (0, 0), 0, page << 12, 0x1000)).collect();
    let description = read_ivrs(ivrs(&memory));
    assert_eq!((description.reserved.len(), description.problems.len()), (MAX_RESERVED, 6));
}

#[test]
fn segments_are_apart() {
    let mut other = ivhd(0x11, 2, REGISTERS + 0x4000, &[entry(2, 8, 0)]);
    other[16] = 1;
    let description = read_ivrs(ivrs(&[ivhd(0x11, 2, REGISTERS, &[entry(2, 8, 0), entry(1, 0, 0)]), other]));
    assert_eq!(faults(&description), []);
    let units = [0, 1, 2].map(|segment| description.unit_of(Bdf::of_requester(segment, 8)));
    assert_eq!(units, [Some(0), Some(1), None]);
    assert_eq!(description.unit_of(Bdf::of_requester(1, 9)), None);
}
