// SPDX-License-Identifier: MIT OR Apache-2.0
//! A unit that runs: taken over, adopted, and its reports.

use alloc::vec::Vec;

use super::place::Place;
use crate::amd::{self, AmdFormat};
use crate::description::Kind;
use crate::intel::{self, SecondStage};
use crate::store::Words;
use crate::{Fault, Problem, Registers, Store};

/// A unit that runs.
#[derive(Debug)]
pub enum Unit<R> {
    /// AMD-Vi.
    Amd(R, amd::Unit),
    /// VT-d.
    Intel(intel::Unit<R>),
}

/// A report of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// It has refused an access.
    Refused(Fault),
    /// It reports an error of its own.
    UnitError(amd::Event),
}

impl<R: Registers> Unit<R> {
    /// Takes a unit over from its owner before: all functions behind it are blocked, but for what firmware reserves for
    /// some. Requests are checked throughout. Inputs of I/O APICs are masked by now.
    ///
    /// # Errors
    /// [`Problem`]: functions behind the unit are as free as they were, or blocked.
    pub fn take_over<W: Words>(mut registers: R, memory: &mut Store<W>, place: Place<'_>) -> Result<Self, Problem> {
        match place.description.kind {
            Some(Kind::Intel) => {
                let domain = place.firmware_domain::<SecondStage>(memory)?;
                let sources = place.reserved_sources();
                let reserved: Vec<_> = sources.iter().map(|source| (*source, &domain)).collect();
                intel::Unit::take_over(registers, memory, place.intel(), &reserved).map(Self::Intel)
            }
            _ => {
                let domain = place.firmware_domain::<AmdFormat>(memory)?;
                let requesters = place.requesters(&domain);
                let setup = place.setup(&requesters);
                let unit = amd::Unit::take_over(&mut registers, memory, &setup)?;
                Ok(Self::Amd(registers, unit))
            }
        }
    }

    /// Goes on with a unit as the image before has left it; writes nothing.
    ///
    /// # Errors
    /// [`Problem`] with what is not as an image leaves it.
    pub fn adopt<W: Words>(mut registers: R, memory: &Store<W>, place: Place<'_>) -> Result<Self, Problem> {
        match place.description.kind {
            Some(Kind::Intel) => {
                let left = intel::Left::found(&mut registers, |at, bytes| memory.holds(at, bytes))?;
                intel::Unit::adopt(registers, memory, place.intel(), left).map(Self::Intel)
            }
            _ => {
                let scope = (place.segment(), place.highest());
                let unit = amd::Unit::adopt(&mut registers, memory, scope, |at, bytes| memory.holds(at, bytes))?;
                Ok(Self::Amd(registers, unit))
            }
        }
    }

    /// Takes the oldest notice.
    ///
    /// # Errors
    /// [`Problem`]: the unit does not answer any more.
    pub fn next_notice<W: Words>(&mut self, memory: &mut Store<W>) -> Result<Option<Notice>, Problem> {
        match self {
            Self::Amd(registers, unit) => Ok(unit.next_fault(registers, memory)?.map(|event| match event {
                amd::Event::Fault(fault) => Notice::Refused(fault),
                error => Notice::UnitError(error),
            })),
            Self::Intel(unit) => Ok(unit.next_fault().map(Notice::Refused)),
        }
    }
}
