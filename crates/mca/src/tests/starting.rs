// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec::Vec;

use super::model::{DEFERRED, FEATURES, Model, OPTIONAL, VALID};
use crate::recovery::Recovery;
use crate::registers::{MCG_CAP, MCG_CTL};
use crate::unit::Unit;

#[test]
fn every_bank_is_enabled_and_none_holds_an_error_from_before() {
    for mut model in [Model::with_flags(10), Model::with_poison(7), Model::scalable(64)] {
        model.inject(2, VALID, 0).inject(5, OPTIONAL, 0x5000);
        let unit = model.unit();
        let mut reported = Vec::new();
        unit.prepare(&mut model, |found| reported.push((found.bank, found.status.0)));
        assert_eq!(reported, [(2, VALID), (5, OPTIONAL)]);
        for bank in 0..unit.banks() {
            assert_eq!((model.get(bank, 0), model.get(bank, 1)), (u64::MAX, 0), "bank {bank}");
        }
        assert_eq!(model.values[&MCG_CTL], u64::MAX);
        assert!(model.is_done());
    }
}

#[test]
fn a_deferred_error_beside_another_one_is_reported_too() {
    let mut model = Model::scalable(4);
    model.inject(1, VALID, 0).set(1, 8, DEFERRED);
    let mut reported = Vec::new();
    model.unit().prepare(&mut model, |found| reported.push(found.status.0));
    assert_eq!(reported, [VALID, DEFERRED]);
    assert_eq!((model.get(1, 1), model.get(1, 8)), (0, 0));
}

#[test]
fn a_control_register_that_does_not_exist_is_not_written() {
    let mut model = Model::plain(3);
    model.unit().prepare(&mut model, |_| unreachable!("all banks are empty"));
    assert_eq!((0..3).map(|bank| model.get(bank, 0)).collect::<Vec<_>>(), [u64::MAX; 3]);
}

#[test]
fn a_cpu_without_the_feature_has_no_unit() {
    assert_eq!(Unit::detect(FEATURES & !(1 << 14), 0, &mut Model::plain(3)), None);
}

#[test]
fn banks_beyond_the_registers_are_not_read() {
    let mut model = Model::plain(32);
    model.values.insert(MCG_CAP, 255);
    assert_eq!(model.unit().banks(), 32);
}

#[test]
fn errors_are_contained_as_the_cpu_reports() {
    assert_eq!(Model::plain(1).unit().recovery(), Recovery::None);
    assert_eq!(Model::with_flags(1).unit().recovery(), Recovery::Flags);
    assert_eq!(Model::with_poison(1).unit().recovery(), Recovery::Poison { survives_overflow: true });
}
