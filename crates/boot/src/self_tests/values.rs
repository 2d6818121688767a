// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readers of the words of `selftest=`; `None` is a refusal.

use super::kinds::{EndFault, EndStep, MadtDamage, SelfTest, StopPhase, UpdateFault, UpdateStep};
use crate::options::number;

/// The greatest number of a CPU.
const LAST_CPU: u32 = 1023;

pub(super) fn self_test(word: &str) -> Option<SelfTest> {
    if let Some((_, test)) = SelfTest::NAMED.into_iter().find(|(name, _)| *name == word) {
        return Some(test);
    }
    match word.split_once(':')? {
        ("madt", damage) => madt_damage(damage).map(SelfTest::Madt),
        ("stop", stop) => {
            let (cpu, phase) = stop.split_once(':')?;
            let cpu = number(cpu, 1, LAST_CPU)?;
            Some(SelfTest::Stop { cpu, phase: stop_phase(phase)? })
        }
        ("update", fault) => {
            let (fault, step) = fault.split_once(':')?;
            if fault == "wait" {
                return update_point(step).map(|point| SelfTest::UpdateWait { point });
            }
            Some(SelfTest::Update { fault: update_fault(fault)?, step: update_step(step)? })
        }
        ("end", fault) => {
            let (fault, step) = fault.split_once(':')?;
            let (_, fault) = EndFault::NAMED.into_iter().find(|(name, _)| *name == fault)?;
            let (_, step) = EndStep::NAMED.into_iter().find(|(name, _)| *name == step)?;
            Some(SelfTest::End { fault, step })
        }
        _ => None,
    }
}

fn madt_damage(word: &str) -> Option<MadtDamage> {
    match word {
        "missing" => Some(MadtDamage::Missing),
        "truncated" => Some(MadtDamage::Truncated),
        "duplicate" => Some(MadtDamage::Duplicate),
        "absurd" => Some(MadtDamage::Absurd),
        _ => None,
    }
}

fn stop_phase(word: &str) -> Option<StopPhase> {
    match word {
        "first-sign" => Some(StopPhase::FirstSign),
        "initialisation" => Some(StopPhase::Initialisation),
        "tsc-sync" => Some(StopPhase::TscSync),
        "online" => Some(StopPhase::Online),
        _ => None,
    }
}

fn update_fault(word: &str) -> Option<UpdateFault> {
    match word {
        "panic" => Some(UpdateFault::Panic),
        "exception" => Some(UpdateFault::Exception),
        "hang" => Some(UpdateFault::Hang),
        "stack-overflow" => Some(UpdateFault::StackOverflow),
        "damage" => Some(UpdateFault::Damage),
        "freeze" => Some(UpdateFault::Freeze),
        "wrong" => Some(UpdateFault::Wrong),
        _ => None,
    }
}

/// The number of a fault point; `Some(None)` for each of them.
fn update_point(word: &str) -> Option<Option<u8>> {
    if word == "each" {
        return Some(None);
    }
    let at = SelfTest::UPDATE_POINTS.iter().position(|point| *point == word)?;
    Some(u8::try_from(at + 1).ok())
}

fn update_step(word: &str) -> Option<UpdateStep> {
    match word {
        "begin" => Some(UpdateStep::Begin),
        "prepare" => Some(UpdateStep::Prepare),
        "arrive" => Some(UpdateStep::Arrive),
        "restore" => Some(UpdateStep::Restore),
        "meet" => Some(UpdateStep::Meet),
        _ => None,
    }
}
