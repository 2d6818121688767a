// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec::Vec;

use super::model::{CONSUMED, DEFERRED, Model, OPTIONAL, REQUIRED, VALID};
use crate::Reports;
use crate::severity::Severity;
use crate::status::Status;

fn polled(model: &mut Model) -> Vec<(u32, Severity, Option<u64>)> {
    let mut found = Vec::new();
    let unit = model.unit();
    unit.poll(model, |error| found.push((error.bank, error.severity, error.memory.map(|memory| memory.start().0))));
    found
}

#[test]
fn a_corrected_error_is_taken_once() {
    let mut model = Model::with_flags(10);
    model.inject(4, VALID | Status::ADDRESS_VALID | Status::MISC_VALID, 0x12_3456);
    assert_eq!(polled(&mut model), [(4, Severity::Corrected, Some(0x12_3000))]);
    assert_eq!(polled(&mut model), []);
}

#[test]
fn a_deferred_error_is_found_in_either_register_and_taken_once() {
    for register in [1, 8] {
        let mut model = Model::scalable(8);
        model.set(3, register, DEFERRED);
        model.set(3, register + 1, 0x7000);
        assert_eq!(polled(&mut model), [(3, Severity::Optional, Some(0x7000))]);
        assert_eq!(polled(&mut model), []);
    }
}

#[test]
fn what_a_machine_check_is_about_is_left_to_its_handler() {
    for (mut model, status) in [(Model::with_flags(2), REQUIRED), (Model::with_poison(2), CONSUMED)] {
        for status in [status, VALID | Status::UNCORRECTED | Status::CONTEXT_CORRUPT] {
            model.inject(1, status, 0x5000);
            assert_eq!(polled(&mut model), []);
            assert_eq!(model.get(1, 1), status);
        }
    }
}

#[test]
fn an_address_counts_only_where_the_bank_reports_it_as_the_systems() {
    let mut linear = Model::with_flags(2);
    linear.inject(0, OPTIONAL, 0x5000).set(0, 3, 1 << 6 | 12);
    let mut without_misc = Model::with_flags(2);
    without_misc.inject(0, OPTIONAL & !Status::MISC_VALID, 0x5000);
    let mut memory_controllers = Model::scalable(2);
    memory_controllers.inject(0, DEFERRED, 0x5000).set(0, 5, 0x96 << 32);
    let mut all_of_it = Model::with_flags(2);
    all_of_it.inject(0, OPTIONAL, 0x5000).set(0, 3, 2 << 6 | 63);
    for mut model in [linear, without_misc, memory_controllers, all_of_it] {
        assert_eq!(polled(&mut model), [(0, Severity::Optional, None)]);
    }
}

#[test]
fn the_memory_is_as_much_as_the_bank_knows_no_better_than() {
    let mut model = Model::with_flags(1);
    model.inject(0, OPTIONAL, 0x1234_5678).set(0, 3, 2 << 6 | 21);
    let mut memory = None;
    model.unit().poll(&mut model, |found| memory = found.memory);
    let memory = memory.expect("it is named");
    assert_eq!((memory.start().0, memory.bytes()), (0x1220_0000, 2 << 20));
}

#[test]
fn a_bank_that_is_never_silent_is_reported_once_in_a_while_with_its_count() {
    let mut reports = Reports::new(4);
    let mut poll = |bank| {
        reports.begin_poll();
        reports.note(bank)
    };
    assert_eq!([3, 3, 3, 3].map(&mut poll), [Some(1), None, None, None]);
    assert_eq!(poll(3), Some(4));
    assert_eq!([poll(4), poll(4)], [Some(1), None], "another bank");
    assert_eq!(poll(1000), Some(1), "no bank has this number");
}
