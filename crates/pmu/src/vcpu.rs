// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vCPU's counters, on the counters of its host.
//!
//! Those of `soft` go where the vCPU goes. Those of a CPU are its own from [`VcpuCounters::open`] to
//! [`VcpuCounters::close`] on the CPU that holds it.

use core::ops::{Deref, DerefMut};

use crate::Backend;
use crate::guest::{BadState, Config, State, VirtualPmu};
use crate::host::{MachineCounters, Source};

/// The counters that a vCPU sees.
#[derive(Clone, Debug)]
pub struct VcpuCounters(VirtualPmu<MachineCounters>);

impl Deref for VcpuCounters {
    type Target = VirtualPmu<MachineCounters>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for VcpuCounters {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl VcpuCounters {
    /// The counters after power-on.
    pub fn new(config: &Config, source: Source) -> Self {
        let mut counters = Self(VirtualPmu::new(config, MachineCounters::new(source)));
        counters.open_if_private(0);
        counters
    }

    /// Counters like these in a saved state, which are to [open](Self::open_if_private).
    ///
    /// # Errors
    /// [`BadState`] names what such counters cannot be.
    pub fn restored(&self, state: &State) -> Result<Self, BadState> {
        VirtualPmu::from_state(&self.config(), self.bank().backend().others(), state).map(Self)
    }

    /// Those that need no CPU are open from the beginning.
    pub fn open_if_private(&mut self, ticks: u64) {
        if self.bank().backend().is_private() {
            self.open(ticks);
        }
    }

    /// Switches the vCPU in, after so many ticks of its time; all counters are its own.
    pub fn open(&mut self, ticks: u64) {
        self.0.switch_in(self.bank().backend().counters(), ticks);
    }

    /// Switches the vCPU out.
    pub fn close(&mut self, ticks: u64) {
        self.0.switch_out(ticks);
    }
}
