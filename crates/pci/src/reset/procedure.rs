// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reset of one function in steps.
//!
//! ```text
//! begin ──► Draining ──► Recovering ──► Waking ──► Done: restored
//!              │ (D3hot)  ▲                └── NotReady
//!              └► InD3hot ┘
//! ```
//!
//! No step waits, and none makes more accesses than a list of extended capabilities takes. The waits between the steps
//! are bounded in all.

use super::common::{
    COMMAND, DEVICE_CONTROL, DRAIN_US, INITIATE_FLR, QUIET, READY_US, RECOVERY_US, ResetError, TRANSACTIONS_PENDING,
    is_ready,
};
use super::kept::Kept;
use super::way::{AF_CONTROL, POWER_CONTROL, Way};
use crate::capability::Capability;
use crate::{Bdf, ConfigWrite};

/// Advanced Features: transactions are pending, in the status behind the control.
const AF_PENDING: u32 = 1 << 8;
/// Power management: the power state in the control register; D3hot.
const POWER_STATE: u16 = 0b11;
/// From D3hot to D0 (PCI Power Management 1.2, table 5-6).
const WAKE_US: u32 = 10_000;
/// From one check of a function to the next: at first, and at most. It doubles in between.
const FIRST_CHECK_US: u32 = 1_000;
const LONGEST_CHECK_US: u32 = 32_000;

/// The state after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The next step is due in this many microseconds.
    Wait(u32),
    /// The function is reset. It has what firmware had chosen for it, and is quiet.
    Done,
}

/// The reset of one function.
#[derive(Debug)]
pub struct Procedure {
    place: Bdf,
    way: Way,
    kept: Kept,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Transactions may be pending.
    Draining(Patience),
    /// It is in D3hot.
    InD3hot,
    /// It resets, and must not be accessed.
    Recovering,
    /// It may answer that it is not ready.
    Waking(Patience),
}

/// Checks at growing intervals, until a time is over.
#[derive(Debug)]
struct Patience {
    left_us: u32,
    next_us: u32,
}

impl Patience {
    fn new(us: u32) -> Self {
        Self { left_us: us, next_us: FIRST_CHECK_US }
    }

    /// Returns the time to the next check; `None` if there is none left.
    fn take(&mut self) -> Option<Progress> {
        let us = self.next_us.min(self.left_us);
        self.left_us -= us;
        self.next_us = (self.next_us * 2).min(LONGEST_CHECK_US);
        (us > 0).then_some(Progress::Wait(us))
    }
}

impl Procedure {
    /// Silences a function, and notes what firmware has chosen for it. The first [step](Self::step) is due at once.
    ///
    /// # Errors
    /// It does not answer.
    pub fn begin(
        config: &mut dyn ConfigWrite,
        place: Bdf,
        way: Way,
        capabilities: &[Capability],
    ) -> Result<Self, ResetError> {
        if config.read(place, 0) == u32::MAX {
            return Err(ResetError::Gone);
        }
        let kept = Kept::read(config, place, capabilities);
        config.write16(place, COMMAND, QUIET);
        Ok(Self { place, way, kept, stage: Stage::Draining(Patience::new(DRAIN_US)) })
    }

    /// Returns the function.
    pub fn place(&self) -> Bdf {
        self.place
    }

    /// Takes the next step, which is due.
    ///
    /// # Errors
    /// [`ResetError`]: it must not be assigned to any guest.
    pub fn step(&mut self, config: &mut dyn ConfigWrite) -> Result<Progress, ResetError> {
        match &mut self.stage {
            Stage::Draining(patience) => {
                let is_pending = is_pending(config, self.place, self.way);
                match patience.take().filter(|_| is_pending) {
                    Some(wait) => Ok(wait),
                    None => Ok(self.initiate(config)),
                }
            }
            Stage::InD3hot => {
                self.set_power(config, 0);
                Ok(self.recover_for(WAKE_US))
            }
            Stage::Recovering => {
                self.stage = Stage::Waking(Patience::new(READY_US));
                self.wake(config)
            }
            Stage::Waking(_) => self.wake(config),
        }
    }

    /// Takes all steps that are left, and waits in between.
    ///
    /// # Errors
    /// Those of [`Self::step`].
    pub fn finish(&mut self, config: &mut dyn ConfigWrite) -> Result<(), ResetError> {
        while let Progress::Wait(us) = self.step(config)? {
            (0..us).for_each(|_| config.pause());
        }
        Ok(())
    }

    fn initiate(&mut self, config: &mut dyn ConfigWrite) -> Progress {
        match self.way {
            Way::FunctionLevel(register) => {
                let control = u16::from(register) + DEVICE_CONTROL;
                let value = config.read(self.place, control) as u16;
                config.write16(self.place, control, value | INITIATE_FLR);
                self.recover_for(RECOVERY_US)
            }
            Way::AdvancedFeatures(register) => {
                config.write8(self.place, u16::from(register) + AF_CONTROL, 1);
                self.recover_for(RECOVERY_US)
            }
            Way::Power(_) => {
                self.set_power(config, POWER_STATE);
                self.stage = Stage::InD3hot;
                Progress::Wait(WAKE_US)
            }
        }
    }

    fn set_power(&self, config: &mut dyn ConfigWrite, state: u16) {
        if let Way::Power(register) = self.way {
            config.write16(self.place, u16::from(register) + POWER_CONTROL, state);
        }
    }

    fn recover_for(&mut self, us: u32) -> Progress {
        self.stage = Stage::Recovering;
        Progress::Wait(us)
    }

    fn wake(&mut self, config: &mut dyn ConfigWrite) -> Result<Progress, ResetError> {
        if is_ready(config, self.place) {
            config.write16(self.place, COMMAND, QUIET);
            self.kept.write(config);
            return if self.kept.is_placed(config) { Ok(Progress::Done) } else { Err(ResetError::Displaced) };
        }
        let Stage::Waking(patience) = &mut self.stage else { return Err(ResetError::NotReady) };
        patience.take().ok_or(ResetError::NotReady)
    }
}

/// Returns whether the function reports transactions that are under way. A reset by D3hot needs no wait for them.
fn is_pending(config: &mut dyn ConfigWrite, place: Bdf, way: Way) -> bool {
    let (register, bit) = match way {
        Way::FunctionLevel(register) => (u16::from(register) + DEVICE_CONTROL, TRANSACTIONS_PENDING),
        Way::AdvancedFeatures(register) => (u16::from(register) + AF_CONTROL, AF_PENDING),
        Way::Power(_) => return false,
    };
    config.read(place, register) & bit != 0
}

#[cfg(test)]
#[path = "procedure_tests.rs"]
mod tests;
