// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's machine-check registers. An access that a CPU would refuse with #GP fails the test.

use std::collections::BTreeMap;

use crate::registers::{MCG_CAP, MCG_CTL, MCG_STATUS, RIPV, Registers};
use crate::status::Status;
use crate::unit::Unit;

/// CPUID Fn0000_0001_EDX: MCE and MCA.
pub const FEATURES: u32 = 1 << 7 | 1 << 14;
/// MCG_STATUS while a #MC is handled, of a context that can be resumed.
pub const IN_PROGRESS: u64 = 1 << 2;
/// MISC: a physical address, known to a page.
pub const PAGE_AT_PHYSICAL: u64 = 2 << 6 | 12;

pub const VALID: u64 = Status::VALID | Status::ENABLED;
/// Intel's action optional, at an address.
pub const OPTIONAL: u64 =
    VALID | Status::UNCORRECTED | Status::ADDRESS_VALID | Status::MISC_VALID | Status::SIGNALLED | 0xc0;
/// Intel's action required: a data load.
pub const REQUIRED: u64 = OPTIONAL & !0xffff | Status::ACTION_REQUIRED | 0x134;
/// AMD's deferred error, at an address.
pub const DEFERRED: u64 = Status::VALID | Status::DEFERRED | Status::ADDRESS_VALID;
/// AMD: damaged data have been used.
pub const CONSUMED: u64 = VALID | Status::UNCORRECTED | Status::ADDRESS_VALID;

#[derive(Clone, Debug)]
pub struct Model {
    pub values: BTreeMap<u32, u64>,
    first: u32,
    stride: u32,
    recovery_features: u32,
    is_deferring: bool,
}

impl Model {
    /// Intel's: the status states the action required.
    pub fn with_flags(banks: u32) -> Self {
        Self::new(banks, 1 << 24 | 1 << 8, 0)
    }

    /// AMD's: damaged data are marked.
    pub fn with_poison(banks: u32) -> Self {
        Self::new(banks, 1 << 8, 0b11)
    }

    /// AMD's with scalable MCA; all banks are the core's.
    pub fn scalable(banks: u32) -> Self {
        let mut model = Self::new(banks, 1 << 8, 0b1011);
        (0..banks).for_each(|bank| model.set(bank, 5, 0xb0 << 32));
        model
    }

    /// Nothing is contained.
    pub fn plain(banks: u32) -> Self {
        Self::new(banks, 0, 0)
    }

    fn new(banks: u32, flags: u64, recovery_features: u32) -> Self {
        let is_scalable = recovery_features & 8 != 0;
        let (first, stride, registers) = if is_scalable { (0xc000_2000, 0x10, 0x10) } else { (0x400, 4, 4) };
        let mut values = BTreeMap::from([(MCG_CAP, flags | u64::from(banks)), (MCG_STATUS, 0)]);
        if flags & 1 << 8 != 0 {
            values.insert(MCG_CTL, 0);
        }
        for bank in 0..banks {
            (0..registers).for_each(|register| _ = values.insert(first + bank * stride + register, 0));
        }
        Self { values, first, stride, recovery_features, is_deferring: is_scalable }
    }

    pub fn unit(&mut self) -> Unit {
        let recovery_features = self.recovery_features;
        Unit::detect(FEATURES, recovery_features, self).expect("it has banks")
    }

    pub fn set(&mut self, bank: u32, register: u32, value: u64) {
        self.values.insert(self.first + bank * self.stride + register, value);
    }

    pub fn get(&self, bank: u32, register: u32) -> u64 {
        self.values[&(self.first + bank * self.stride + register)]
    }

    /// The hardware finds an error.
    pub fn inject(&mut self, bank: u32, status: u64, address: u64) -> &mut Self {
        self.set(bank, 1, status);
        self.set(bank, 2, address);
        self.set(bank, 3, PAGE_AT_PHYSICAL);
        self
    }

    /// A #MC is raised, of a context that can be resumed or not.
    pub fn raise(&mut self, is_restartable: bool) -> &mut Self {
        self.values.insert(MCG_STATUS, IN_PROGRESS | if is_restartable { RIPV } else { 0 });
        self
    }

    /// Returns whether no #MC is being handled any more.
    pub fn is_done(&self) -> bool {
        self.values[&MCG_STATUS] == 0
    }
}

impl Registers for Model {
    fn read(&mut self, register: u32) -> u64 {
        *self.values.get(&register).unwrap_or_else(|| panic!("#GP: RDMSR {register:#x}"))
    }

    fn write(&mut self, register: u32, value: u64) {
        assert!(self.values.contains_key(&register) && register != MCG_CAP, "#GP: WRMSR {register:#x}");
        let is_bank = register >= self.first && register != MCG_STATUS && register != MCG_CTL;
        let place = register.wrapping_sub(self.first) % self.stride;
        let is_status = is_bank && (place == 1 || place == 2 || place == 3 || self.is_deferring && place == 8);
        assert!(!is_status || value == 0, "#GP: status, address and misc take zeros only: {register:#x}");
        self.values.insert(register, value);
    }
}
