// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec::Vec;

use proptest::prelude::*;

use super::model::Model;
use crate::exception::Context;
use crate::severity::Severity;
use crate::status::Status;

/// Every flag that decides something, any code.
fn status() -> impl Strategy<Value = u64> {
    let flags = [63, 62, 61, 60, 59, 58, 57, 56, 55, 44];
    let set = prop::collection::vec(any::<bool>(), flags.len());
    (set, prop::sample::select(std::vec![0_u64, 0xc0, 0x134, 0x150, 0x1134, 0x17a])).prop_map(move |(set, code)| {
        flags.iter().zip(set).filter(|(_, is_set)| *is_set).fold(code, |status, (bit, _)| status | 1 << bit)
    })
}

fn model() -> impl Strategy<Value = Model> {
    let kinds = [Model::plain(6), Model::with_flags(6), Model::with_poison(6), Model::scalable(6)];
    let banks = prop::collection::vec((status(), any::<u64>(), any::<u16>()), 6);
    (prop::sample::select(kinds.to_vec()), banks).prop_map(|(mut model, banks)| {
        for (bank, (status, address, misc)) in banks.into_iter().enumerate() {
            model.inject(bank as u32, status, address).set(bank as u32, 3, misc.into());
        }
        model
    })
}

proptest! {
    /// Whatever the banks hold: a guest that goes on was not corrupt, and nothing that is uncorrected is left in a bank
    /// or lost.
    #[test]
    fn no_context_goes_on_that_may_be_corrupt(model in model(), in_guest: bool, is_restartable: bool) {
        let context = if in_guest { Context::Guest } else { Context::Host };
        let mut after = model.clone();
        after.raise(is_restartable);
        let unit = after.unit();
        let outcome = unit.exception(context, &mut after);
        let held: Vec<Status> = (0..6).map(|bank| Status(model.get(bank, 1))).filter(|s| s.has(Status::VALID)).collect();
        let corrupt = Status::UNCORRECTED | Status::ENABLED | Status::CONTEXT_CORRUPT;
        match outcome {
            Err(_) => prop_assert!(!after.is_done() && (0..6).all(|bank| after.get(bank, 1) == model.get(bank, 1))),
            Ok(judgement) => {
                prop_assert!(!after.is_done());
                prop_assert!(is_restartable || in_guest && judgement.ends_interrupted_guest);
                prop_assert!(!held.iter().any(|status| status.has(corrupt)), "{held:?}");
                for found in &judgement.found {
                    prop_assert!(found.severity != Severity::Required || in_guest && found.memory.is_some());
                    prop_assert_eq!(after.get(found.bank, 1), 0);
                }
                let uncorrected = held.iter().filter(|status| status.has(Status::UNCORRECTED)).count();
                prop_assert!(judgement.found.len() >= uncorrected);
            }
        }
    }

    /// A poll leaves errors that a #MC signals in the banks, and takes all others exactly once.
    #[test]
    fn a_poll_takes_all_that_no_machine_check_is_about(mut model in model()) {
        let unit = model.unit();
        let mut taken = 0;
        for _ in 0..2 {
            unit.poll(&mut model, |_| taken += 1);
        }
        let left = (0..6).filter(|&bank| Status(model.get(bank, 1)).has(Status::VALID)).count();
        let mut left_by_judgement = 0;
        for bank in 0..6 {
            left_by_judgement +=
                usize::from(unit.read_bank(&mut model, bank).is_some_and(|found| !found.is_pollable()));
        }
        prop_assert_eq!(left, left_by_judgement);
        let mut more = 0;
        unit.poll(&mut model, |_| more += 1);
        prop_assert_eq!(more, 0);
        prop_assert!(taken + left <= 12);
    }

    /// Memory in a judgement is whole pages of addresses that exist.
    #[test]
    fn named_memory_is_whole_pages(mut model in model()) {
        let unit = model.unit();
        for bank in 0..6 {
            let memory = unit.read_bank(&mut model, bank).and_then(|found| found.memory);
            let pages = memory.is_none_or(|memory| {
                memory.is_aligned(4096) && !memory.is_empty() && memory.start().0 < 1 << 52
            });
            prop_assert!(pages, "{:?}", memory);
        }
    }
}
