// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vCPU's counters on whatever its host counts with: [`VirtualPmu`], made once. What is called seldom
//! is not inlined.
//!
//! Those of `soft` go where the vCPU goes. Those of a CPU are its own from [`VcpuCounters::open`] to
//! [`VcpuCounters::close`] on the CPU that holds it.

use core::ops::Deref;

use crate::Backend;
use crate::guest::{BadState, Config, Refused, State, View, VirtualPmu};
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

impl VcpuCounters {
    /// After power-on.
    #[inline(never)]
    pub fn new(config: &Config, source: Source) -> Self {
        let mut counters = Self(VirtualPmu::new(config, MachineCounters::new(source)));
        counters.open_if_private(0);
        counters
    }

    /// Counters like these in a saved state, which are to [open](Self::open_if_private).
    ///
    /// # Errors
    /// [`BadState`] names what such counters cannot be.
    #[inline(never)]
    pub fn restored(&self, state: &State) -> Result<Self, BadState> {
        VirtualPmu::from_state(&self.config(), self.bank().backend().others(), state).map(Self)
    }

    /// Those that need no CPU are open from the beginning.
    pub fn open_if_private(&mut self, ticks: u64) {
        if self.bank().backend().is_private() {
            self.open(ticks);
        }
    }

    /// The vCPU is switched in, after so many ticks of its time; all counters are its own.
    #[inline(never)]
    pub fn open(&mut self, ticks: u64) {
        self.0.switch_in(self.bank().backend().counters(), ticks);
    }

    /// It is switched out.
    #[inline(never)]
    pub fn close(&mut self, ticks: u64) {
        self.0.switch_out(ticks);
    }

    /// See [`VirtualPmu::run_until`].
    #[inline(never)]
    pub fn run_until(&mut self, ticks: u64) {
        self.0.run_until(ticks);
    }

    /// See [`VirtualPmu::read`].
    ///
    /// # Errors
    /// [`Refused`]: #GP.
    #[inline(never)]
    pub fn read(&mut self, number: u32, ticks: u64) -> Result<u64, Refused> {
        self.0.read(number, ticks)
    }

    /// See [`VirtualPmu::write`].
    ///
    /// # Errors
    /// [`Refused`]: #GP.
    #[inline(always)]
    pub fn write(&mut self, number: u32, value: u64, ticks: u64) -> Result<(), Refused> {
        self.0.write(number, value, ticks)
    }

    /// See [`VirtualPmu::read_counter`].
    ///
    /// # Errors
    /// [`Refused`]: #GP.
    #[inline(never)]
    pub fn read_counter(&mut self, counter: u32, ticks: u64) -> Result<u64, Refused> {
        self.0.read_counter(counter, ticks)
    }

    /// See [`VirtualPmu::take_interrupt`].
    #[inline(always)]
    pub fn take_interrupt(&mut self) -> bool {
        self.0.take_interrupt()
    }

    /// See [`VirtualPmu::view`].
    #[inline(never)]
    pub fn view(&mut self, slot: usize) -> Option<View> {
        self.0.view(slot)
    }

    /// See [`VirtualPmu::state`].
    #[inline(never)]
    pub fn state(&self, ticks: u64) -> State {
        self.0.state(ticks)
    }
}
