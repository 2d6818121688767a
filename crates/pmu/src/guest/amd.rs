// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's registers as AMD has them (AMD APM vol. 2, section 13.2): six counters, of which four have their older
//! names too, and the global registers of version 2. Bits that mean nothing read as zero, whatever is written.

use super::numbering::{AMD_GENERAL, Register, cut};
use super::{Refused, VirtualPmu};
use crate::{Backend, CounterSet};

/// Event, unit, modes, edge, interrupt, enable, inversion, threshold, the event's upper bits. Whose time is counted
/// (bits 40 and 41) is for CPUs with SVM to choose.
const SELECT_WRITABLE: u64 = 0xf_ffff_ffff & !(1 << 19 | 1 << 21);
const GLOBAL_WRITABLE: u64 = CounterSet::first(AMD_GENERAL as u8, 0).0;

impl<B: Backend> VirtualPmu<B> {
    #[inline(always)]
    pub(super) fn write_amd(&mut self, register: Register, value: u64) -> Result<(), Refused> {
        match register {
            Register::Select(at) => self.set_select(at, value & SELECT_WRITABLE),
            Register::Counter(slot) => self.bank.write(slot, cut(value)),
            Register::GlobalControl => self.set_global_control(value & GLOBAL_WRITABLE),
            Register::GlobalClear => self.global_status &= !value,
            // It is reported, not set.
            Register::GlobalStatus => {}
            Register::ShortCounter(_) | Register::FixedControl | Register::Capabilities | Register::DebugControl => {
                return Err(Refused);
            }
        }
        Ok(())
    }
}
