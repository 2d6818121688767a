// SPDX-License-Identifier: MIT OR Apache-2.0
//! Test of a CPU's counters against CPUID: emulators and hypervisors below promise counters that they do not have.

use super::description::{CYCLES, Description, GUEST_ONLY, HOST_ONLY};
use super::number::GLOBAL_CONTROL;
use super::unusable::Unusable;
use crate::event::{What, select};
use crate::{Counter, Event, Msrs};

/// Tries the first counter, and leaves it as it was. For the host with EFER.SVME set, without which the CPU reports
/// no guest's time from the host's; `wait` takes some microseconds.
///
/// # Errors
/// [`Unusable`]: the reason why the counters cannot be used.
pub fn probe(msrs: &mut impl Msrs, description: &Description, wait: impl FnMut()) -> Result<(), Unusable> {
    let first = Counter::general(0);
    let (select, value) = (description.select(first), description.value(first));
    let global = if description.has_global { Some(GLOBAL_CONTROL) } else { None };
    let before = [Some(value), global, Some(select)].map(|register| register.map(|number| (number, msrs.read(number))));
    msrs.write(select, 0);
    let found = attempt(msrs, (select, value, global), wait);
    msrs.write(select, 0);
    before.into_iter().flatten().for_each(|(number, value)| msrs.write(number, value));
    found
}

fn attempt(
    msrs: &mut impl Msrs,
    (select, value, global): (u32, u32, Option<u32>),
    mut wait: impl FnMut(),
) -> Result<(), Unusable> {
    const BEGINNING: u64 = 0x1234_5678;
    let cycles = select::encode(&Event::of(What::Cycles), CYCLES.0, CYCLES.1) | select::ENABLE;
    keeps(msrs, value, BEGINNING)?;
    if let Some(global) = global {
        let others = msrs.read(global);
        keeps(msrs, global, others | 1)?;
    }
    let mut moves = |side| {
        keeps(msrs, select, cycles | side)?;
        let before = msrs.read(value);
        wait();
        Ok(msrs.read(value) != before)
    };
    if !moves(HOST_ONLY)? {
        return Err(Unusable::Still);
    }
    if moves(GUEST_ONLY)? { Err(Unusable::Mixed) } else { Ok(()) }
}

fn keeps(msrs: &mut impl Msrs, register: u32, value: u64) -> Result<(), Unusable> {
    msrs.write(register, value);
    if msrs.read(register) == value { Ok(()) } else { Err(Unusable::NotWritable) }
}
