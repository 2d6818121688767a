// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;

use super::model::{CONSUMED, DEFERRED, Model, OPTIONAL, REQUIRED, VALID};
use crate::exception::{Context, Fatal, Judgement};
use crate::severity::Severity;
use crate::status::Status;
use crate::why::Why;

fn judge(model: &mut Model, context: Context, is_restartable: bool) -> Result<Judgement, Fatal> {
    model.raise(is_restartable);
    let unit = model.unit();
    let judgement = unit.exception(context, model)?;
    assert!(!model.is_done(), "another #MC must not come before what was found is kept");
    unit.finish(model);
    Ok(judgement)
}

fn fatal(model: &mut Model, context: Context, is_restartable: bool) -> Why {
    let fatal = judge(model, context, is_restartable).expect_err("nothing may go on");
    assert!(!model.is_done(), "a fatal #MC stays in progress");
    fatal.why
}

/// Each way to contain errors, with a status of data that have been used and one of data that have not.
fn containing() -> [(Model, u64, u64); 3] {
    [
        (Model::with_flags(10), REQUIRED, OPTIONAL),
        (Model::with_poison(6), CONSUMED, DEFERRED),
        (Model::scalable(12), CONSUMED, DEFERRED),
    ]
}

#[test]
fn memory_that_a_guest_used_costs_that_guest_alone() {
    for (mut model, used, _) in containing() {
        model.inject(1, used, 0xabc_d123);
        let judgement = judge(&mut model, Context::Guest, true).expect("it is contained");
        assert!(judgement.ends_interrupted_guest);
        let [found] = judgement.found.as_slice() else { panic!("{judgement:?}") };
        assert_eq!(found.memory.map(|memory| (memory.start().0, memory.bytes())), Some((0xabc_d000, 4096)));
        assert!(model.is_done() && model.get(1, 1) == 0, "the next one is possible");
    }
}

#[test]
fn unused_memory_costs_its_owner_whichever_code_was_interrupted() {
    for (model, _, unused) in containing() {
        for context in [Context::Host, Context::Guest] {
            let mut model = model.clone();
            model.inject(2, unused, 0x5000);
            let judgement = judge(&mut model, context, true).expect("everything goes on");
            assert!(!judgement.ends_interrupted_guest);
            assert_eq!(judgement.found.as_slice()[0].severity, Severity::Optional);
            assert!(model.is_done() && model.get(2, 1) == 0);
        }
    }
}

#[test]
fn memory_that_the_host_used_ends_it() {
    for (mut model, used, _) in containing() {
        model.inject(1, used, 0x5000);
        assert_eq!(fatal(&mut model, Context::Host, true), Why::HostUsedIt);
        assert_eq!(model.get(1, 1), used, "the next boot reports it");
    }
}

#[test]
fn a_corrupt_cpu_ends_the_host_whichever_code_was_interrupted() {
    for (mut model, used, _) in containing() {
        model.inject(1, used | Status::CONTEXT_CORRUPT, 0x5000);
        assert_eq!(fatal(&mut model, Context::Guest, true), Why::ContextCorrupt);
        assert_eq!(fatal(&mut model, Context::Host, true), Why::ContextCorrupt);
    }
}

#[test]
fn a_context_that_cannot_resume_is_a_guest_that_ends_or_the_end_of_the_host() {
    for (mut model, used, unused) in containing() {
        model.inject(1, unused, 0x5000);
        assert_eq!(fatal(&mut model, Context::Host, false), Why::NotRestartable);
        assert!(judge(&mut model, Context::Guest, false).expect("it is contained").ends_interrupted_guest);
        model.inject(1, used, 0x5000);
        assert!(judge(&mut model, Context::Guest, false).expect("it is contained").ends_interrupted_guest);
        assert_eq!(fatal(&mut model, Context::Guest, false), Why::Unexplained);
    }
}

#[test]
fn without_an_address_used_data_cannot_be_contained() {
    for (mut model, used, _) in containing() {
        model.inject(1, used & !Status::ADDRESS_VALID, 0x5000);
        assert_eq!(fatal(&mut model, Context::Guest, true), Why::NoAddress);
    }
}

#[test]
fn a_cpu_that_contains_nothing_ends_the_host() {
    let mut model = Model::plain(5);
    model.inject(4, CONSUMED, 0x5000);
    assert_eq!(fatal(&mut model, Context::Guest, true), Why::NotContained);
}

#[test]
fn a_lost_error_is_survived_only_where_the_cpu_reports_it() {
    let mut flags = Model::with_flags(3);
    flags.inject(0, REQUIRED | Status::OVERFLOW, 0x5000);
    assert_eq!(fatal(&mut flags, Context::Guest, true), Why::Overflow);
    let mut poison = Model::with_poison(3);
    poison.inject(0, CONSUMED | Status::OVERFLOW, 0x5000);
    assert!(judge(&mut poison, Context::Guest, true).is_ok());
}

#[test]
fn a_machine_check_of_another_cpu_changes_nothing() {
    let mut model = Model::with_flags(10);
    for context in [Context::Host, Context::Guest] {
        let judgement = judge(&mut model, context, true).expect("nothing is wrong here");
        assert!(judgement.found.is_empty() && !judgement.ends_interrupted_guest && model.is_done());
    }
}

#[test]
fn corrected_errors_are_left_for_the_poll() {
    let mut model = Model::with_flags(20);
    (0..19).for_each(|bank| _ = model.inject(bank, VALID, 0));
    model.inject(19, OPTIONAL, 0x5000);
    assert_eq!(judge(&mut model, Context::Host, true).expect("all go on").found.len(), 1);
    assert_eq!(model.get(7, 1), VALID);
}

#[test]
fn more_errors_than_are_kept_end_the_host() {
    let mut model = Model::with_flags(9);
    (0..9).for_each(|bank| _ = model.inject(bank, OPTIONAL, 0x5000));
    assert_eq!(fatal(&mut model, Context::Host, true), Why::TooMany);
}

#[test]
fn a_report_names_bank_status_address_and_the_option_that_avoids_the_memory() {
    let mut model = Model::with_flags(3);
    model.inject(2, REQUIRED, 0x1234_5678);
    let report = judge(&mut model, Context::Host, true).expect_err("the host used it").to_string();
    for part in ["bank 2", "status 0xbd80000000000134", "address 0x12345678", "used", "bad-memory=0x12345000"] {
        assert!(report.contains(part), "{part} is missing: {report}");
    }
}
