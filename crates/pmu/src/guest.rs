// SPDX-License-Identifier: MIT OR Apache-2.0
//! The counters that a guest sees: its registers, by Intel's manual or by AMD's, over a [`Bank`] of events.
//!
//! A guest's write is checked once: reserved bits are refused as its CPU would. Changes are reported to the bank; a
//! write that changes nothing is left out. Its time is the time that it has run: the caller passes it to each call, in
//! ticks.

mod amd;
mod amd_registers;
mod filter;
mod intel;
mod intel_registers;
mod numbering;
mod reach;
mod registers;
mod saved;
mod settings;
mod shown;
mod state;
mod view;

use crate::bank::slots;
use crate::event::select;
use crate::{Backend, Bank, CounterSet, Policy, SLOTS};
use numbering::{Register, general, global_bit};

pub use filter::Filter;
pub use intel_registers::leaf as intel_leaf;
pub(crate) use numbering::slot_of;
pub use numbering::{AMD_GENERAL, INTEL_FIXED, INTEL_GENERAL};
pub use registers::is_register;
pub use saved::{BadState, State};
pub use shown::{Counts, View};

pub use crate::refused::Refused;
pub use crate::vendor::Vendor;

/// Configuration of a guest's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Vendor of the registers.
    pub vendor: Vendor,
    /// Treatment of events at a change of a setting.
    pub policy: Policy,
    /// Events that may be counted.
    pub filter: Filter,
}

/// One vCPU's counters.
#[derive(Clone, Debug)]
pub struct VirtualPmu<B> {
    vendor: Vendor,
    filter: Filter,
    bank: Bank<B>,
    selects: [u64; INTEL_GENERAL],
    /// The setting behind each slot's event in the bank, by which it is known again.
    counted: [u64; SLOTS],
    fixed_control: u64,
    global_control: u64,
    global_status: u64,
    debug_control: u64,
    /// An overflow has come whose interrupt has not been raised.
    interrupts: bool,
    /// Number of overflows of each slot: for an observer outside the guest.
    overflows: [u64; SLOTS],
}

impl<B: Backend> VirtualPmu<B> {
    /// After power-on: nothing counts, but the global control lets all general counters (so that a CPU that knows no
    /// global registers needs none).
    pub fn new(config: &Config, backend: B) -> Self {
        Self {
            vendor: config.vendor,
            filter: config.filter,
            bank: Bank::new(backend, config.policy),
            selects: [0; INTEL_GENERAL],
            counted: [0; SLOTS],
            fixed_control: 0,
            global_control: CounterSet::first(general(config.vendor) as u8, 0).0,
            global_status: 0,
            debug_control: 0,
            interrupts: false,
            overflows: [0; SLOTS],
        }
    }

    /// Returns what it was given.
    pub fn config(&self) -> Config {
        Config { vendor: self.vendor, policy: self.bank.policy(), filter: self.filter }
    }

    /// Returns the vendor of the registers.
    pub fn vendor(&self) -> Vendor {
        self.vendor
    }

    /// The events behind them.
    pub fn bank(&self) -> &Bank<B> {
        &self.bank
    }

    /// Returns whether any counter counts: only then does the guest's time matter.
    #[inline]
    pub fn is_counting(&self) -> bool {
        self.bank.is_counting()
    }

    /// RDMSR of a register that no other part of the machine answers.
    ///
    /// # Errors
    /// [`Refused`] if there is none of this number.
    #[inline(always)]
    pub fn read(&mut self, number: u32, ticks: u64) -> Result<u64, Refused> {
        let register = self.register(number).ok_or(Refused)?;
        self.run_until(ticks);
        Ok(match register {
            Register::Select(at) => self.selects[at],
            Register::ShortCounter(slot) | Register::Counter(slot) => self.bank.read(slot),
            Register::FixedControl => self.fixed_control,
            Register::GlobalControl => self.global_control,
            Register::GlobalStatus => self.global_status,
            Register::GlobalClear => 0,
            Register::Capabilities => intel_registers::CAPABILITIES,
            Register::DebugControl => self.debug_control,
        })
    }

    /// WRMSR.
    ///
    /// # Errors
    /// [`Refused`] if there is none of this number, it cannot be written, or a reserved bit is set.
    #[inline(always)]
    pub fn write(&mut self, number: u32, value: u64, ticks: u64) -> Result<(), Refused> {
        self.run_until(ticks);
        match self.vendor {
            Vendor::Intel => self.write_intel(intel_registers::register(number).ok_or(Refused)?, value),
            Vendor::Amd => self.write_amd(amd_registers::register(number).ok_or(Refused)?, value),
        }
    }

    /// RDPMC of this counter (ECX).
    ///
    /// # Errors
    /// [`Refused`] if there is none of this number.
    #[inline(always)]
    pub fn read_counter(&mut self, counter: u32, ticks: u64) -> Result<u64, Refused> {
        let slot = match self.vendor {
            Vendor::Intel => intel_registers::slot_of_rdpmc(counter),
            Vendor::Amd => Some(counter as usize).filter(|&slot| slot < AMD_GENERAL),
        };
        let slot = slot.ok_or(Refused)?;
        self.run_until(ticks);
        Ok(self.bank.read(slot))
    }

    /// The guest has run for so many ticks: what has overflowed by then becomes its status, and may interrupt.
    #[inline(always)]
    pub fn run_until(&mut self, ticks: u64) {
        let overflowed = self.bank.overflows_until(ticks);
        if overflowed != 0 {
            self.overflow(overflowed);
        }
    }

    /// Returns whether an interrupt is to be raised, once.
    #[inline(always)]
    pub fn take_interrupt(&mut self) -> bool {
        self.interrupts && core::mem::take(&mut self.interrupts)
    }

    /// Returns whether the guest's CPU masks the interrupt as it delivers it.
    pub fn masks_interrupt(&self) -> bool {
        self.vendor == Vendor::Intel
    }

    /// After how many ticks of the guest's time a counter overflows, where the CPU does not report.
    #[inline]
    pub fn ticks_to_overflow(&self) -> Option<u64> {
        self.bank.ticks_to_overflow()
    }

    /// The vCPU is switched in, with these counters; it has run for so many ticks. While [`Bank::is_used`]
    /// states no it need not be switched out.
    pub fn switch_in(&mut self, available: CounterSet, ticks: u64) {
        self.run_until(ticks);
        self.bank.switch_in(available);
    }

    /// It is switched out, after so many ticks.
    pub fn switch_out(&mut self, ticks: u64) {
        self.run_until(ticks);
        self.bank.switch_out();
    }

    #[inline(always)]
    fn register(&self, number: u32) -> Option<Register> {
        match self.vendor {
            Vendor::Intel => intel_registers::register(number),
            Vendor::Amd => amd_registers::register(number),
        }
    }

    #[cold]
    fn overflow(&mut self, overflowed: u16) {
        for slot in slots(overflowed) {
            self.global_status |= 1 << global_bit(slot);
            self.overflows[slot] += 1;
            if self.interrupt_is_wanted(slot) {
                self.interrupts = true;
            }
        }
        if self.interrupts && self.debug_control & intel_registers::FREEZE_ON_INTERRUPT != 0 {
            self.set_global_control(0);
        }
    }

    fn interrupt_is_wanted(&self, slot: usize) -> bool {
        match slot.checked_sub(INTEL_GENERAL) {
            Some(fixed) => intel_registers::fixed_interrupts(self.fixed_control, fixed),
            None => self.selects[slot] & select::INTERRUPT != 0,
        }
    }
}
