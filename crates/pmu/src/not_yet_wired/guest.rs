// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's counters on an Intel CPU, with PEBS, last branch records and top-down metrics where the CPU
//! has them.
//!
//! ```text
//! switch_in ─► enter ─► the guest runs ─► leave ─► its accesses, answered ─► enter … leave ─► switch_out
//! ```
//! Nothing counts, records or samples for it outside of `enter` and `leave`; nothing of it is in the CPU outside
//! of `switch_in` and `switch_out`. Registers that several share (global control and status, the fixed counters'
//! control, the selects) are taken apart here: each part's bits go to it, and what none takes is refused as the
//! counters' own reserved bits are.

mod capabilities;
mod shared;

pub use capabilities::Capabilities;

use super::driver::{Description, Intel};
use super::lbr::Lbr;
use super::pebs::{self, Pebs};
use super::topdown::{self, RDPMC_METRICS, Topdown};
use crate::guest::{Config, Refused, VirtualPmu};
use crate::intel::number::{CAPABILITIES, GLOBAL_STATUS};
use crate::{CounterSet, Msrs};

/// RDPMC: a counter of fixed purpose.
const RDPMC_SLOTS: u32 = 1 << 30 | 3;

/// One vCPU's.
#[derive(Clone, Debug)]
pub struct IntelGuest<M> {
    pmu: VirtualPmu<Intel<M>>,
    msrs: M,
    pebs: Option<Pebs>,
    lbr: Option<Lbr>,
    topdown: Option<Topdown>,
    /// Counters whose records are adaptive, by the guest's selects.
    adaptive: CounterSet,
    /// PERF_CAPABILITIES beyond the counters'.
    capabilities: u64,
    /// An interrupt is due that no counter has asked for.
    interrupts: bool,
}

impl<M: Msrs + Clone> IntelGuest<M> {
    /// As after power-on. A part that the CPU lacks is not there for the guest either.
    pub fn new(config: &Config, msrs: M, description: Description, has: &Capabilities) -> Self {
        let mut backend = Intel::new(msrs.clone(), description);
        backend.leave();
        Self {
            pmu: VirtualPmu::new(config, backend),
            msrs,
            pebs: has.pebs.map(Pebs::new),
            lbr: has.lbr.map(Lbr::new),
            topdown: has.topdown.then(Topdown::default),
            adaptive: CounterSet::EMPTY,
            capabilities: capabilities::bits(has),
            interrupts: false,
        }
    }

    /// The counters alone.
    pub fn counters(&self) -> &VirtualPmu<Intel<M>> {
        &self.pmu
    }

    /// RDMSR.
    ///
    /// # Errors
    /// [`Refused`] if there is none of this number.
    pub fn read(&mut self, number: u32) -> Result<u64, Refused> {
        let own = self.pebs.as_ref().and_then(|pebs| pebs.read(number));
        let own = own.or_else(|| self.lbr.as_ref()?.read(&mut self.msrs, number));
        match own.or_else(|| self.topdown.as_ref()?.read(number)) {
            Some(value) => Ok(value),
            None => Ok(self.pmu.read(number, 0)? | self.shared_bits(number)),
        }
    }

    /// WRMSR.
    ///
    /// # Errors
    /// [`Refused`] if there is none of this number, it cannot be written, or a reserved bit is set; then nothing has
    /// changed.
    pub fn write(&mut self, number: u32, value: u64) -> Result<(), Refused> {
        match (&mut self.pebs, &mut self.lbr, &mut self.topdown) {
            (Some(pebs), _, _) if pebs.read(number).is_some() => {
                pebs.write(&mut self.msrs, number, value)?;
                if number == pebs::number::ENABLE {
                    self.follow_pebs();
                }
                Ok(())
            }
            (_, Some(lbr), _) if lbr.read(&mut self.msrs, number).is_some() => lbr.write(&mut self.msrs, number, value),
            (_, _, Some(topdown)) if topdown.read(number).is_some() => topdown.write(number, value),
            _ => self.write_shared(number, value),
        }
    }

    /// RDPMC of this counter (ECX).
    ///
    /// # Errors
    /// [`Refused`] if there is none of this number.
    pub fn read_counter(&mut self, counter: u32) -> Result<u64, Refused> {
        let register = match counter {
            RDPMC_SLOTS => topdown::SLOTS,
            RDPMC_METRICS => topdown::METRICS,
            _ => return self.pmu.read_counter(counter, 0),
        };
        self.topdown.as_ref().and_then(|topdown| topdown.read(register)).ok_or(Refused)
    }

    /// The guest is entered.
    pub fn enter(&mut self) {
        if let Some(lbr) = &mut self.lbr {
            lbr.enter(&mut self.msrs);
        }
        if let Some(pebs) = &mut self.pebs {
            let assigned = self.pmu.assigned(pebs.enabled());
            pebs.enter(&mut self.msrs, assigned);
        }
        if let Some(topdown) = &mut self.topdown {
            topdown.enter(&mut self.msrs);
        }
        self.pmu.backend_mut().enter();
    }

    /// It has been left: counters first, so that nothing follows from what the host does.
    pub fn leave(&mut self) {
        self.pmu.backend_mut().leave();
        if let Some(topdown) = &mut self.topdown {
            self.interrupts |= topdown.leave(&mut self.msrs);
        }
        if let Some(pebs) = &mut self.pebs {
            self.interrupts |= pebs.leave(&mut self.msrs);
        }
        if let Some(lbr) = &mut self.lbr {
            lbr.leave(&mut self.msrs);
        }
        self.pmu.run_until(0);
    }

    /// Its turn begins, with these counters. The three come with the first [`Self::enter`] that needs them.
    pub fn switch_in(&mut self, available: CounterSet) {
        self.pmu.switch_in(available, 0);
    }

    /// Its turn ends, after it has been left.
    pub fn switch_out(&mut self) {
        self.pmu.switch_out(0);
        if let Some(topdown) = &mut self.topdown {
            topdown.switch_out(&mut self.msrs);
        }
        if let Some(pebs) = &mut self.pebs {
            pebs.switch_out(&mut self.msrs);
        }
        if let Some(lbr) = &mut self.lbr {
            lbr.switch_out(&mut self.msrs);
        }
    }

    /// Returns whether an interrupt is to be raised, once.
    pub fn take_interrupt(&mut self) -> bool {
        self.pmu.take_interrupt() | core::mem::take(&mut self.interrupts)
    }

    /// Returns what of a shared register is not the counters'.
    fn shared_bits(&self, number: u32) -> u64 {
        match number {
            CAPABILITIES => self.capabilities,
            GLOBAL_STATUS => self.status(),
            _ => self.other_bits(number),
        }
    }

    fn status(&self) -> u64 {
        self.pebs.as_ref().map_or(0, Pebs::status) | self.topdown.as_ref().map_or(0, Topdown::status)
    }
}
