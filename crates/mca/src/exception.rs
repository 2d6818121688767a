// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judgement of a #MC: the guests that go on, and those that do not.

use core::fmt;

use arrayvec::ArrayVec;

use crate::recovery::Recovery;
use crate::registers::{MCG_STATUS, RIPV, Registers};
use crate::severity::Severity;
use crate::status::Status;
use crate::unit::{Found, Unit};
use crate::why::Why;

/// Errors of one #MC that are survived at most.
const MOST_FOUND: usize = 8;

/// The context that the #MC interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// The hypervisor.
    Host,
    /// A guest: the CPU left it with the intercept of #MC.
    Guest,
}

/// The cause of a #MC, and its consequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Errors that were not corrected, and that are survived.
    pub found: ArrayVec<Found, MOST_FOUND>,
    /// The guest that was interrupted cannot go on.
    pub ends_interrupted_guest: bool,
}

/// The reason why the host must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fatal {
    /// The reason.
    pub why: Why,
    /// The error, where one is known.
    pub found: Option<Found>,
}

impl Unit {
    /// Judges a #MC that has interrupted `context`. Survived errors are cleared from their banks; a fatal error stays
    /// there, for the next boot's report. Corrected errors are left for [`Unit::poll`]. Once the caller has stored the
    /// errors found, [`Unit::finish`] makes the next #MC possible.
    ///
    /// # Errors
    /// [`Fatal`]: the host must end.
    pub fn exception(&self, context: Context, registers: &mut impl Registers) -> Result<Judgement, Fatal> {
        let is_restartable = registers.read(MCG_STATUS) & RIPV != 0;
        let judgement = self.judge(context, is_restartable, registers)?;
        judgement.found.iter().for_each(|found| self.clear(registers, found));
        Ok(judgement)
    }

    /// Ends a #MC that is an exit of a guest. Until here another one is a shutdown (MCG_STATUS.MCIP). The handler of
    /// a #MC in the host clears [`MCG_STATUS`] itself, when its interrupt stack is free.
    pub fn finish(&self, registers: &mut impl Registers) {
        registers.write(MCG_STATUS, 0);
    }

    fn judge(
        &self,
        context: Context,
        is_restartable: bool,
        registers: &mut impl Registers,
    ) -> Result<Judgement, Fatal> {
        let mut judgement = Judgement { found: ArrayVec::new(), ends_interrupted_guest: !is_restartable };
        for bank in 0..self.banks() {
            let Some(found) = self.read_bank(registers, bank) else { continue };
            let fatal = |why| Fatal { why, found: Some(found) };
            match found.severity {
                Severity::Corrected => continue,
                Severity::Unsignalled | Severity::Optional => {}
                Severity::Required => {
                    judgement.ends_interrupted_guest = true;
                    self.check_required(context, &found).map_err(fatal)?;
                }
                Severity::Fatal(why) => return Err(fatal(why)),
            }
            judgement.found.try_push(found).map_err(|_| fatal(Why::TooMany))?;
        }
        let first = judgement.found.first().copied();
        match context {
            Context::Host if !is_restartable => Err(Fatal { why: Why::NotRestartable, found: first }),
            Context::Guest if !is_restartable && first.is_none() => Err(Fatal { why: Why::Unexplained, found: None }),
            _ => Ok(judgement),
        }
    }

    /// The interrupted context has used damaged data.
    fn check_required(&self, context: Context, found: &Found) -> Result<(), Why> {
        let host_is_corrupt =
            matches!(self.recovery(), Recovery::Poison { .. }) && found.status.has(Status::TASK_CORRUPT);
        match context {
            Context::Host if host_is_corrupt => Err(Why::NotRestartable),
            Context::Host => Err(Why::HostUsedIt),
            Context::Guest if found.memory.is_none() => Err(Why::NoAddress),
            Context::Guest => Ok(()),
        }
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Some(found) => write!(f, "machine check: {found}: {}", self.why)?,
            None => write!(f, "machine check: {}", self.why)?,
        }
        match self.found.and_then(|found| found.memory) {
            Some(memory) => write!(f, "; start the host with bad-memory={:#x}", memory.start().0),
            None => Ok(()),
        }
    }
}
