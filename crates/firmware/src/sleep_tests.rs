// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::Signature;
use crate::testing::{Machine, table};

fn find(aml: &[u8]) -> Result<SleepTypes, Fault> {
    let mut machine = Machine::default();
    let address = machine.put_table(table(b"DSDT", aml));
    find_s5(&Table::open(&machine, address, Signature::DSDT, HEADER_BYTES).unwrap())
}

fn found(aml: &[u8]) -> Option<(u8, Option<u8>)> {
    find(aml).ok().map(|types| (types.a, types.b))
}

#[test]
fn values_may_be_written_in_any_width() {
    assert_eq!(found(b"\x08_S5_\x12\x06\x04\x00\x01\x00\x00"), Some((0, Some(1))));
    assert_eq!(found(b"\x08_S5_\x12\x06\x02\x0a\x05\x0a\x07"), Some((5, Some(7))));
    assert_eq!(found(b"\x08_S5_\x12\x08\x02\x0b\x03\x00\x0b\x04\x00"), Some((3, Some(4))));
    assert_eq!(found(b"\x08_S5_\x12\x0c\x02\x0c\x03\x00\x00\x00\x0c\x02\x00\x00\x00"), Some((3, Some(2))));
    assert_eq!(found(b"\x08\\_S5_\x12\x14\x02\x0e\x06\0\0\0\0\0\0\0\x0e\x05\0\0\0\0\0\0\0"), Some((6, Some(5))));
}

#[test]
fn lengths_may_be_written_in_any_width() {
    assert_eq!(found(b"\x08_S5_\x12\x47\x00\x02\x0a\x05\x0a\x06"), Some((5, Some(6))));
    assert_eq!(found(b"\x08_S5_\x12\x88\x00\x00\x02\x0a\x05\x0a\x06"), Some((5, Some(6))));
    assert_eq!(found(b"\x08_S5_\x12\xc9\x00\x00\x00\x02\x0a\x05\x0a\x06"), Some((5, Some(6))));
}

#[test]
fn a_package_of_one_has_no_second_value() {
    assert_eq!(found(b"\x08_S5_\x12\x04\x01\x0a\x05\x0a\x06"), Some((5, None)));
}

#[test]
fn a_reference_before_the_definition_is_passed_over() {
    assert_eq!(found(b"\x70_S5_\x60\x70_S5_\x12\x04\x01\x0a\x01\x08_S5_\x12\x04\x01\x0a\x05"), Some((5, None)));
}

#[test]
fn values_that_do_not_fit_are_passed_over() {
    assert_eq!(found(b"\x08_S5_\x12\x04\x01\x0a\x08"), None);
    assert_eq!(found(b"\x08_S5_\x12\x06\x02\x0a\x05\x0a\x08"), Some((5, None)));
    assert_eq!(found(b"\x08_S5_\x12\x0b\x02\x0e\x05\0\0\0\0\0\0\x01"), None);
}

#[test]
fn a_package_must_hold_its_elements_and_end_inside_the_table() {
    assert_eq!(found(b"\x08_S5_\x12\x03\x01\x0a\x05"), None);
    assert_eq!(found(b"\x08_S5_\x12\x00\x01\x0a\x05"), None);
    assert_eq!(found(b"\x08_S5_\x12\x05\x01\x0a\x05"), None);
    assert_eq!(found(b"\x08_S5_\x12\x06\x00\x0a\x05\x0a\x05"), None);
    assert_eq!(found(b"\x08_S5_\x12\xcf\xff\xff\xff\x01\x0a\x05"), None);
}

#[test]
fn a_package_cut_anywhere_is_not_found() {
    let whole = b"\x08_S5_\x12\x08\x02\x0b\x05\x00\x0b\x05\x00";
    assert!(find(whole).is_ok());
    for length in 0..whole.len() {
        assert_eq!(find(&whole[..length]), Err(Fault::NoSleepType), "{length}");
    }
}

#[test]
fn a_name_across_two_chunks_is_found() {
    for before in CHUNK_BYTES - 16..CHUNK_BYTES + 16 {
        let mut aml = vec![0xa3; before];
        aml.extend(b"\x08_S5_\x12\x04\x01\x0a\x05");
        aml.extend([0xa3; 2 * CHUNK_BYTES]);
        assert_eq!(found(&aml), Some((5, None)), "{before}");
    }
}

proptest! {
    #[test]
    fn any_bytes_after_the_name_are_survived(
        before in prop::collection::vec(any::<u8>(), 0..8),
        after in prop::collection::vec(any::<u8>(), 0..32),
    ) {
        let aml: Vec<u8> = [&before[..], b"\x08_S5_\x12", &after].concat();
        if let Ok(types) = find(&aml) {
            prop_assert!(types.a < 8 && types.b.is_none_or(|b| b < 8));
        }
    }
}
