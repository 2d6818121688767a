// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's capability MSRs, and a VMCS, as plain data.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::sample::Index;

use crate::capability::Capabilities;
use crate::control::Controls;
use crate::field::{Field, Vmcs};
use crate::msr;
use crate::unusable::Unusable;

/// MSRs by their numbers.
#[derive(Clone, Debug)]
pub struct Cpu(BTreeMap<u32, u64>);

impl Cpu {
    /// A CPU that allows every control that has a name.
    pub fn complete() -> Self {
        let controls = |may: u64, must: u64| may << 32 | must;
        Self(BTreeMap::from([
            (msr::BASIC, 0x11e5_7ed0 | 4096 << 32 | 6 << 50 | 1 << 54 | 1 << 55),
            (msr::PINBASED_CTLS, controls(0xff, 0x16)),
            (msr::TRUE_PINBASED_CTLS, controls(0xff, 0x16)),
            (msr::PROCBASED_CTLS, controls(0xffff_fffe, 0x0401_e172)),
            (msr::TRUE_PROCBASED_CTLS, controls(0xffff_fffe, 0x0400_6172)),
            (msr::EXIT_CTLS, controls(0xffff_ffff, 0x0003_6dff)),
            (msr::TRUE_EXIT_CTLS, controls(0xffff_ffff, 0x0003_6dfb)),
            (msr::ENTRY_CTLS, controls(0x007f_ffff, 0x0000_11ff)),
            (msr::TRUE_ENTRY_CTLS, controls(0x007f_ffff, 0x0000_11fb)),
            (msr::MISC, 5 | 1 << 5 | 7 << 6 | 4 << 16 | 1 << 30),
            (msr::CR0_FIXED0, 0x8000_0021),
            (msr::CR0_FIXED1, 0xffff_ffff),
            (msr::CR4_FIXED0, 0x2000),
            (msr::CR4_FIXED1, 0x00f7_2fff),
            (msr::PROCBASED_CTLS2, controls(0xdfff_ffff, 0)),
            (msr::PROCBASED_CTLS3, 0xdf),
            (msr::EPT_VPID_CAP, 0x0000_0f01_0673_4141),
        ]))
    }

    pub fn get(&self, msr: u32) -> u64 {
        *self.0.get(&msr).unwrap_or_else(|| panic!("MSR {msr:#x} does not exist"))
    }

    pub fn set(&mut self, msr: u32, value: u64) {
        self.0.insert(msr, value);
    }

    pub fn read(&self) -> Result<Capabilities, Unusable> {
        Capabilities::read(|msr| self.get(msr))
    }
}

/// A VMCS: fields by their encodings. It panics at fields that do not exist on a CPU with `allowed` controls.
pub struct Image {
    allowed: Controls,
    fields: BTreeMap<u32, u64>,
    read: RefCell<Vec<u32>>,
}

impl Image {
    pub fn new(allowed: Controls) -> Self {
        Self { allowed, fields: BTreeMap::new(), read: RefCell::default() }
    }

    /// The encodings of the fields that have been read.
    pub fn fields_read(&self) -> Vec<u32> {
        self.read.borrow().clone()
    }

    /// Gives one of the fields that have been written another value.
    pub fn spoil(&mut self, which: Index, value: u64) {
        let at = which.index(self.fields.len());
        *self.fields.values_mut().nth(at).expect("it has been written") = value;
    }
}

impl Vmcs for Image {
    fn vmread(&self, field: impl Field) -> u64 {
        assert!(field.exists(self.allowed), "VMREAD of {:#x}", field.encoding());
        self.read.borrow_mut().push(field.encoding());
        self.fields.get(&field.encoding()).copied().unwrap_or_default()
    }

    fn vmwrite(&mut self, field: impl Field, value: u64) {
        assert!(field.exists(self.allowed), "VMWRITE of {:#x}", field.encoding());
        self.fields.insert(field.encoding(), value);
    }
}
