// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;
use std::vec::Vec;

use crate::testing::*;
use crate::*;

/// A machine without a root pointer, its HPET table listed in an XSDT and an RSDT.
fn without_pointer() -> (Machine, u64, u32) {
    let mut machine = Machine::default();
    let timer = machine.put_table(hpet(0, 0xfed0_0000));
    let xsdt = machine.put_table(table(b"XSDT", &timer.to_le_bytes()));
    let rsdt = machine.put_table(table(b"RSDT", &(timer as u32).to_le_bytes()));
    (machine, xsdt, rsdt as u32)
}

fn with_pointer(address: u64, pointer: Vec<u8>) -> Machine {
    let mut machine = without_pointer().0;
    machine.pieces.insert(address, pointer);
    machine
}

#[test]
fn revision_zero_leads_to_the_rsdt() {
    let (_, _, rsdt) = without_pointer();
    let machine = with_pointer(0xe_0000, rsdp(0, rsdt, 0));
    assert_eq!(machine.discover().unwrap().hpet_address, Some(0xfed0_0000));
}

#[test]
fn revision_two_leads_to_the_xsdt() {
    let (_, xsdt, _) = without_pointer();
    let machine = with_pointer(0xf_fff0 - 0x20, rsdp(2, 0, xsdt));
    assert_eq!(machine.discover().unwrap().hpet_address, Some(0xfed0_0000));
}

#[test]
fn a_corrupt_xsdt_is_a_warning_where_there_is_an_rsdt() {
    let (_, xsdt, rsdt) = without_pointer();
    let mut machine = with_pointer(0xe_0000, rsdp(2, rsdt, xsdt));
    machine.pieces.get_mut(&xsdt).unwrap()[20] ^= 0x80;
    let tables = machine.discover().unwrap();
    assert_eq!(tables.hpet_address, Some(0xfed0_0000));
    let first = tables.warnings[0];
    assert_eq!((first.table, first.fault), (Signature::XSDT, Fault::BadChecksum { sum: 0x80 }));
}

#[test]
fn the_extended_data_area_is_searched_first() {
    let (_, xsdt, rsdt) = without_pointer();
    let mut machine = with_pointer(0x9_fc10, rsdp(2, 0, xsdt));
    machine.pieces.insert(0x40e, 0x9fc0u16.to_le_bytes().to_vec());
    machine.pieces.insert(0xe_0000, rsdp(0, rsdt + 1, 0));
    assert_eq!(machine.discover().unwrap().hpet_address, Some(0xfed0_0000));
}

#[test]
fn an_extended_data_area_outside_low_memory_is_not_searched() {
    for segment in [0u16, 0x4f, 0xa000, 0xd000] {
        let (_, xsdt, _) = without_pointer();
        let mut machine = with_pointer(u64::from(segment) << 4, rsdp(2, 0, xsdt));
        machine.pieces.insert(0x40e, segment.to_le_bytes().to_vec());
        assert_eq!(machine.discover().unwrap_err(), Error::NoRootPointer);
    }
}

#[test]
fn a_pointer_off_its_boundary_is_not_found_but_may_be_given() {
    let (_, xsdt, _) = without_pointer();
    let machine = with_pointer(0xf_0008, rsdp(2, 0, xsdt));
    assert_eq!(machine.discover().unwrap_err(), Error::NoRootPointer);
    assert!(machine.discover_at(Some(0xf_0008)).is_ok());
}

#[test]
fn a_wrong_hint_is_a_warning_and_the_search_goes_on() {
    let (_, xsdt, _) = without_pointer();
    let machine = with_pointer(0xf_0000, rsdp(2, 0, xsdt));
    for hint in [0, 0xf_0010, xsdt, u64::MAX] {
        let tables = machine.discover_at(Some(hint)).unwrap();
        assert_eq!(tables.warnings[0].table, Signature::RSDP);
        assert_eq!(tables.hpet_address, Some(0xfed0_0000));
    }
}

#[test]
fn a_corrupt_pointer_is_passed_over_for_a_good_one() {
    let (_, xsdt, _) = without_pointer();
    let mut machine = with_pointer(0xf_0000, rsdp(2, 0, xsdt));
    for (address, byte) in [(0xe_0000, 16), (0xe_0100, 24)] {
        let mut bad = rsdp(2, 0, xsdt);
        bad[byte] ^= 1;
        machine.pieces.insert(address, bad);
    }
    let tables = machine.discover().unwrap();
    assert_eq!(tables.warnings.iter().filter(|problem| problem.table == Signature::RSDP).count(), 2);
    assert_eq!(tables.hpet_address, Some(0xfed0_0000));
}

#[test]
fn a_pointer_with_an_absurd_length_is_refused() {
    for length in [0u32, 35, 257, u32::MAX] {
        let (_, xsdt, _) = without_pointer();
        let mut bad = rsdp(2, 0, xsdt);
        bad[20..24].copy_from_slice(&length.to_le_bytes());
        assert_eq!(with_pointer(0xf_0000, bad).discover().unwrap_err(), Error::NoRootPointer);
    }
}

#[test]
fn no_root_table_is_an_error_that_names_it() {
    let error = with_pointer(0xf_0000, rsdp(2, 0x1000, 0)).discover().unwrap_err();
    let problem = Problem { table: Signature::RSDT, fault: Fault::Unreadable { address: 0x1000 } };
    assert_eq!(error, Error::NoRootTable(problem));
    assert!(error.to_string().contains("RSDT"));
}
