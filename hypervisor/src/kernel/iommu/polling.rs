// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports of the units: polled by the boot CPU, passed on to the operator at a limited rate. Functions are stopped for
//! some of them.

use alloc::string::ToString;

use arrayvec::ArrayVec;
use iommu::description::Description;
use iommu::{MAX_STORMING, Notice, Problem, QUICK_POLL_US, Report, Store, Storm, Unit};
use pci::Bdf;

use super::{Driven, IOMMUS, Iommus, REPORT_INTERVAL_US};
use crate::arch::iommu::{TableWords, UnitRegisters};
use crate::arch::{cpu, timer};

/// From one poll of the units to the next, while nothing is found.
const POLL_INTERVAL_US: u64 = 250_000;
/// Notices taken from a unit in one poll: a function may be refused all the time.
const NOTICES_AT_A_TIME: usize = 64;

/// Takes the units' reports, if it is time; returns the functions that are to be stopped. For the boot CPU.
pub fn poll(mut report_to: impl FnMut(Report)) -> ArrayVec<Storm, MAX_STORMING> {
    let now = cpu::tsc();
    let Some(mut iommus) = IOMMUS.try_lock() else { return ArrayVec::new() };
    let Some(iommus) = iommus.as_mut().filter(|iommus| now >= iommus.next_poll) else { return ArrayVec::new() };
    let has_found = iommus.poll(now, &mut report_to);
    let interval = if has_found { QUICK_POLL_US } else { POLL_INTERVAL_US };
    iommus.next_poll = now + timer::us_to_ticks(interval);
    iommus.storms.end_poll(now)
}

/// Returns when to poll the units next; `None` where there are none.
pub fn next_poll() -> Option<u64> {
    IOMMUS.lock().as_ref().map(|iommus| iommus.next_poll)
}

impl Iommus {
    /// Takes the units' reports; `report_to` gets each event that is due. Returns whether any function was refused
    /// something that is not stopped yet.
    fn poll(&mut self, now: u64, report_to: &mut dyn FnMut(Report)) -> bool {
        let Self { description, units, store, reports, storms, .. } = self;
        let mut has_found = false;
        for (described, driven) in description.units.iter().zip(units) {
            let Driven { unit: Ok(unit), refused, quiet_until } = driven else { continue };
            let at = described.registers;
            let taken = take(unit, store, &mut |notice, is_stopped| match notice {
                Notice::Refused(fault) => {
                    *refused += 1;
                    reports.note(fault, now).into_iter().for_each(&mut *report_to);
                    if !is_stopped && !is_interrupter(description, fault.source) {
                        storms.note(fault.source, now);
                        has_found = true;
                    }
                }
                // A log that is full is so at each poll.
                Notice::UnitError(trouble) if now >= *quiet_until => {
                    *quiet_until = now + timer::us_to_ticks(REPORT_INTERVAL_US);
                    log::error!("IOMMU at {at}: {trouble}");
                }
                Notice::UnitError(_) => {}
            });
            if let Err(problem) = taken {
                log::error!("IOMMU at {at}: {problem}");
                driven.unit = Err(problem.to_string());
            }
        }
        while let Some(report) = reports.next_due(now) {
            report_to(report);
        }
        has_found
    }
}

/// Takes so many notices; `noticed` gets each, and whether the function that it is about is stopped.
fn take(
    unit: &mut Unit<UnitRegisters>,
    store: &mut Store<TableWords>,
    noticed: &mut dyn FnMut(Notice, bool),
) -> Result<(), Problem> {
    for _ in 0..NOTICES_AT_A_TIME {
        let Some(notice) = unit.next_notice(store)? else { break };
        let is_stopped = match notice {
            Notice::Refused(fault) => unit.is_stopped(store, fault.source).unwrap_or(true),
            Notice::UnitError(_) => false,
        };
        noticed(notice, is_stopped);
    }
    Ok(())
}

/// Returns whether this is an I/O APIC or an event timer, which are the host's own.
fn is_interrupter(description: &Description, source: Bdf) -> bool {
    description.interrupters.iter().any(|known| {
        let segment = description.units.get(usize::from(known.unit)).map(|unit| unit.segment);
        known.requester == source.requester() && segment == Some(source.segment)
    })
}
