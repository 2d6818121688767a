// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec;
use std::vec::Vec;

use pci::Bdf;
use units::{PHYSICAL_LIMIT, PhysAddr};

use super::super::testing::*;
use super::super::*;

const REGISTERS: u64 = 0xfed9_0000;

/// Of QEMU 10.0.2: q35, `intel-iommu,intremap=on`, a root port with an e1000e, a bridge to PCI.
const QEMU_10: &str = "
    44 4d 41 52 80 00 00 00 01 e6 42 4f 43 48 53 20 42 58 50 43 20 20 20 20 01 00 00 00 42 58 50 43
    01 00 00 00 2f 01 00 00 00 00 00 00 00 00 00 00
    00 00 50 00 00 00 00 00 00 00 d9 fe 00 00 00 00
    03 08 00 00 00 ff 00 00 01 08 00 00 00 00 00 00 01 08 00 00 00 00 01 00 02 08 00 00 00 00 02 00
    02 08 00 00 00 00 03 00 01 08 00 00 00 00 1f 00 01 08 00 00 00 00 1f 02 01 08 00 00 00 00 1f 03";

fn place(requester: u16) -> Bdf {
    Bdf::of_requester(0, requester)
}

/// Reads the table of a machine without bridges.
fn read(structures: &[Vec<u8>]) -> std::boxed::Box<Description> {
    read_dmar(dmar(structures), &mut Bridges::default())
}

#[test]
fn qemus_table_is_read_without_a_problem() {
    let mut bridges = Bridges::new(&[(0x10, 1, 1), (0x18, 2, 3)]);
    let description = read_dmar(hexadecimal(QEMU_10), &mut bridges);
    assert_eq!(faults(&description), []);
    assert_eq!((description.kind, description.address_bits), (Some(Kind::Intel), 48));
    assert!(description.remaps_interrupts && !description.refuses_x2apic && !description.wants_protection);
    let [unit] = description.units[..] else { panic!("{:?}", description.units) };
    assert_eq!((unit.registers, unit.register_bytes, unit.segment), (PhysAddr(REGISTERS), 4096, 0));
    assert_eq!((unit.function, unit.covers_rest), (None, false));
    let covered: Vec<_> = (0..=u16::MAX).filter(|&requester| description.unit_of(place(requester)).is_some()).collect();
    let named = [0, 8, 0x10, 0x18, 0xf8, 0xfa, 0xfb];
    assert_eq!(covered, named.into_iter().chain(0x100..=0x3ff).chain([0xff00]).collect::<Vec<_>>());
    let io_apic = Interrupter { kind: InterrupterKind::IoApic, id: 0, unit: 0, requester: 0xff00 };
    assert_eq!(description.interrupters[..], [io_apic]);
    assert_eq!(bridges.reads, 4);
}

#[test]
fn the_flags_are_the_tables() {
    for (flags, expected) in [(1, [true, false, false]), (2, [false, true, false]), (4, [false, false, true])] {
        let mut bytes = dmar(&[]);
        (bytes[36], bytes[37]) = (255, flags);
        let description = read_dmar(seal(bytes), &mut Bridges::default());
        let found = [description.remaps_interrupts, description.refuses_x2apic, description.wants_protection];
        assert_eq!((found, description.address_bits), (expected, 255));
    }
}

#[test]
fn a_path_follows_bridges() {
    let mut bridges = Bridges::new(&[(0x08, 1, 9), (0x100, 3, 5), (0x300, 4, 4)]);
    let deep = scope(1, 0, 0, &[1, 0, 0, 0, 0, 0, 2, 1]);
    let timer = scope(4, 7, 0, &[0x1f, 4]);
    let named = scope(5, 1, 0x80, &[3, 2]);
    let description = read_dmar(dmar(&[drhd(0, 0, REGISTERS, &[deep, timer, named])]), &mut bridges);
    assert_eq!(faults(&description), []);
    assert_eq!(description.scopes.iter().map(|scope| scope.first).collect::<Vec<_>>(), [0x411, 0xfc, 0x801a]);
    assert_eq!(description.hpet(7).unwrap().requester, 0xfc);
    assert_eq!(bridges.reads, 6);
}

#[test]
fn a_hierarchy_is_a_bridge_and_all_behind_it() {
    let mut bridges = Bridges::new(&[(0x08, 1, 9)]);
    let description = read_dmar(dmar(&[drhd(0, 0, REGISTERS, &[scope(2, 0, 0, &[1, 0])])]), &mut bridges);
    let covered: Vec<_> = (0..=u16::MAX).filter(|&requester| description.unit_of(place(requester)).is_some()).collect();
    assert_eq!(covered, [8].into_iter().chain(0x100..=0x9ff).collect::<Vec<_>>());
}

#[test]
fn a_path_over_what_is_no_bridge_is_ignored() {
    // To nothing, to its own bus, to an earlier one, and with no bus behind the first.
    for (buses, expected) in [(None, 0x208), (Some((2, 2)), 0x208), (Some((1, 1)), 0x208), (Some((4, 3)), 0x208)] {
        let mut bridges = Bridges::default();
        bridges.buses.extend(buses.map(|buses| (place(0x208), buses)));
        let scopes = [scope(1, 0, 2, &[1, 0, 0, 0]), scope(2, 0, 2, &[1, 0]), scope(1, 0, 0, &[7, 0])];
        let description = read_dmar(dmar(&[drhd(0, 0, REGISTERS, &scopes)]), &mut bridges);
        let fault = TableFault::NotABridge { requester: expected };
        assert_eq!(faults(&description), [(64, fault), (74, fault)]);
        assert_eq!(description.scopes.len(), 1);
    }
}

#[test]
fn a_bridge_that_is_a_function_is_none() {
    struct Endpoint;
    impl pci::ConfigSpace for Endpoint {
        fn read(&mut self, _: Bdf, register: u16) -> u32 {
            if register == 0x18 { 0x0005_0500 } else { 0 }
        }
        fn now(&mut self) -> u64 {
            0
        }
        fn pause(&mut self) {}
    }
    let memory = Memory(dmar(&[drhd(0, 0, REGISTERS, &[scope(2, 0, 0, &[1, 0])])]));
    let mut description = Description::new();
    let table = firmware::table::Table::open(&memory, BASE, firmware::Signature::DMAR, 48).unwrap();
    dmar::read(&table, &mut Endpoint, &mut description);
    assert_eq!(faults(&description), [(64, TableFault::NotABridge { requester: 8 })]);
}

#[test]
fn paths_that_cannot_be_are_ignored() {
    let scopes = [scope(1, 0, 0, &[]), scope(1, 0, 0, &[32, 0]), scope(1, 0, 0, &[0, 8]), scope(1, 0, 0, &[5])];
    let description = read(&[drhd(0, 0, REGISTERS, &scopes)]);
    assert_eq!(faults(&description), [64, 70, 78, 86].map(|at| (at, TableFault::BadPath)));
    assert!(description.scopes.is_empty());
}

#[test]
fn bridges_that_are_read_are_bounded() {
    let mut bridges = Bridges::new(&[(0x08, 1, 1)]);
    let scopes: Vec<_> = (0..5000).map(|_| scope(1, 0, 0, &[1, 0, 0, 0])).collect();
    let structures: Vec<_> = (0..5).map(|unit| drhd(0, 0, REGISTERS + unit * 0x1000, &scopes[..1000])).collect();
    let description = read_dmar(dmar(&structures), &mut bridges);
    assert_eq!(bridges.reads, 2 * 4096);
    assert!(description.problems.len() + description.problems_dropped as usize > 900);
}

#[test]
fn scopes_cut_short_end_the_walk_of_their_structure_only() {
    for cut in
        [vec![1], vec![1, 8, 0, 0, 0], vec![1, 5, 0, 0, 0, 0], vec![1, 0, 0, 0, 0, 0], vec![1, 9, 0, 0, 0, 0, 1, 0]]
    {
        let structures = [drhd(0, 0, REGISTERS, &[cut]), drhd(1, 0, REGISTERS + 0x1000, &[])];
        let description = read(&structures);
        assert_eq!(faults(&description), [(64, TableFault::Truncated)]);
        assert_eq!(description.unit_of(place(8)), Some(1));
    }
}

#[test]
fn structures_cut_short_or_without_a_length_are_named() {
    for length in [0u16, 3, 4, 8, 15] {
        let mut short = drhd(1, 0, REGISTERS, &[]);
        short.truncate(usize::from(length.max(4)));
        short[2..4].copy_from_slice(&length.to_le_bytes());
        let description = read(&[short]);
        assert_eq!(faults(&description), [(48, TableFault::Truncated)], "{length}");
        assert!(description.units.is_empty());
    }
    assert_eq!(faults(&read(&[rmrr(0, 0, &[])[..20].to_vec()])), [(48, TableFault::Truncated)]);
}

#[test]
fn unneeded_and_unknown_types_are_passed_over() {
    let mut structures: Vec<_> = (2..9u8).map(|kind| vec![kind, 0, 4, 0]).collect();
    structures.push(vec![0, 1, 4, 0]);
    structures.push(drhd(1, 0, REGISTERS, &[scope(9, 0, 0, &[1, 0])]));
    let description = read(&structures);
    let unknown = |kind| TableFault::UnknownKind { kind };
    assert_eq!(faults(&description), [(68, unknown(7)), (72, unknown(8)), (76, unknown(0x100)), (96, unknown(9))]);
    assert_eq!(description.units.len(), 1);
}

#[test]
fn one_unit_has_all_other_functions() {
    let description = read(&[
        drhd(0, 0, REGISTERS, &[scope(1, 0, 0, &[2, 0])]),
        drhd(1, 0, REGISTERS + 0x1000, &[scope(3, 2, 0xf0, &[0x1f, 7])]),
        drhd(1, 0, REGISTERS + 0x2000, &[]),
        drhd(1, 1, REGISTERS + 0x3000, &[]),
    ]);
    assert_eq!(faults(&description), [(48 + 24 + 24, TableFault::TwoRests)]);
    let units = [0x10, 0x18, 0xf0ff].map(|requester| description.unit_of(place(requester)));
    assert_eq!(units, [Some(0), Some(1), Some(1)]);
    assert_eq!(description.unit_of(Bdf::of_requester(1, 0)), Some(3));
}

#[test]
fn registers_have_a_size_and_are_apart() {
    let mut large = drhd(0, 0, REGISTERS, &[]);
    large[5] = 0xf3;
    let refused = [0, 0x800, REGISTERS + 0x800, PHYSICAL_LIMIT, !0xfff, REGISTERS + 0x7000];
    let refused = refused.map(|address| drhd(1, 0, address, &[]));
    let description = read(&[&[large][..], &refused].concat());
    assert_eq!(description.units.iter().map(|unit| unit.register_bytes).collect::<Vec<_>>(), [8 * 4096]);
    let faults = faults(&description);
    assert!(faults[..5].iter().all(|(_, fault)| matches!(fault, TableFault::BadRegisters { .. })), "{faults:?}");
    assert_eq!(faults[5].1, TableFault::SharedRegisters { address: REGISTERS + 0x7000 });
}

#[test]
fn memory_is_for_the_functions_of_its_scopes() {
    let mut bridges = Bridges::new(&[(0x08, 1, 2)]);
    let scopes = [scope(1, 0, 0, &[0x1d, 0]), scope(2, 0, 0, &[1, 0]), scope(3, 0, 0, &[2, 0])];
    let description = read_dmar(dmar(&[rmrr(0x7c00_0000, 0x7dff_ffff, &scopes)]), &mut bridges);
    assert_eq!(faults(&description), [(48 + 24 + 16, TableFault::UnknownKind { kind: 3 })]);
    let is_for = |requester| description.reserved_for(place(requester)).count();
    assert_eq!([0xe8, 0xe9, 0x08, 0x100, 0x2ff, 0x300, 0x10].map(is_for), [1, 0, 1, 1, 1, 0, 0]);
    let reserved = description.reserved[0];
    assert_eq!((reserved.range.start().0, reserved.range.bytes()), (0x7c00_0000, 0x200_0000));
    assert!(reserved.is_readable && reserved.is_writable && !reserved.is_exclusion && reserved.defect.is_none());
}

#[test]
fn memory_that_cannot_be_is_kept_with_the_reason() {
    let of_one = [scope(1, 0, 0, &[1, 0])];
    let cases = [
        (0x2000, 0x1fff, Defect::Empty),
        (0x2000, 0xfff, Defect::Empty),
        (0, 0, Defect::Misaligned),
        (0x1000, 0x1ffe, Defect::Misaligned),
        (0x1000, u64::MAX, Defect::BeyondLimit),
        (0x1000, PHYSICAL_LIMIT, Defect::BeyondLimit),
    ];
    for (base, limit, defect) in cases {
        let description = read(&[rmrr(base, limit, &of_one)]);
        assert_eq!(faults(&description), [(48, TableFault::BadMemory(defect))], "{base:#x}-{limit:#x}");
        assert_eq!(description.reserved[0].defect, Some(defect));
    }
    assert_eq!(read(&[rmrr(0x1000, PHYSICAL_LIMIT - 1, &of_one)]).reserved[0].defect, None);
    assert_eq!(faults(&read(&[rmrr(0x1000, 0x1fff, &[])])), [(48, TableFault::NoFunctions)]);
}
