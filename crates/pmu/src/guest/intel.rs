// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's registers as Intel's architectural performance monitoring, version 2, has them (Intel SDM vol. 3,
//! section 20.2).

use super::intel_registers::FREEZE_ON_INTERRUPT;
use super::numbering::{INTEL_FIXED, INTEL_GENERAL, Register, cut};
use super::{Refused, VirtualPmu};
use crate::{Backend, CounterSet, Width};

/// Bit 21 (any thread) is version 3's; above bit 31 is nothing.
const SELECT_RESERVED: u64 = !0xffff_ffff | 1 << 21;
/// Each counter's field: OS, USR, and the interrupt; bit 2 (any thread) is version 3's.
const FIXED_FIELD: u64 = 0b1011;
const FIXED_WRITABLE: u64 = FIXED_FIELD | FIXED_FIELD << 4 | FIXED_FIELD << 8;
const GLOBAL_WRITABLE: u64 = CounterSet::first(INTEL_GENERAL as u8, INTEL_FIXED as u8).0;
/// The condition of the counters has changed; never set here.
const STATUS_CONDITION: u64 = 1 << 63;
impl<B: Backend> VirtualPmu<B> {
    #[inline(always)]
    pub(super) fn write_intel(&mut self, register: Register, value: u64) -> Result<(), Refused> {
        let only = |writable: u64| if value & !writable == 0 { Ok(()) } else { Err(Refused) };
        match register {
            Register::Select(at) => {
                only(!SELECT_RESERVED)?;
                self.set_select(at, value);
            }
            Register::ShortCounter(slot) => self.bank.write(slot, cut(value as u32 as i32 as u64)),
            Register::Counter(slot) => {
                only(Width::USUAL.mask())?;
                self.bank.write(slot, value);
            }
            Register::FixedControl => {
                only(FIXED_WRITABLE)?;
                self.set_fixed_control(value);
            }
            Register::GlobalControl => {
                only(GLOBAL_WRITABLE)?;
                self.set_global_control(value);
            }
            Register::GlobalClear => {
                only(GLOBAL_WRITABLE | STATUS_CONDITION)?;
                self.global_status &= !value;
            }
            Register::DebugControl => {
                only(FREEZE_ON_INTERRUPT)?;
                self.debug_control = value;
            }
            Register::GlobalStatus | Register::Capabilities => return Err(Refused),
        }
        Ok(())
    }

    #[inline(always)]
    fn set_fixed_control(&mut self, value: u64) {
        let mut changed = (self.fixed_control ^ value) as u32;
        self.fixed_control = value;
        while changed != 0 {
            let counter = changed.trailing_zeros() as usize / 4 % (INTEL_FIXED + 1);
            self.count_as(INTEL_GENERAL + counter, self.fixed_setting(counter));
            changed &= !(0xf << (4 * counter));
        }
    }
}
