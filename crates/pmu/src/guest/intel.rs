// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's registers as Intel's architectural performance monitoring, version 2, has them (Intel SDM vol. 3, section 20.2).

use super::{INTEL_FIXED, INTEL_GENERAL, Refused, Register, VirtualPmu, cut};
use crate::event::Shape;
use crate::intel::number::*;
use crate::intel::{CYCLES, INSTRUCTIONS, fixed};
use crate::{Backend, CounterSet, Event, Modes, What, Width};

const DEBUG_CONTROL: u32 = 0x1d9;
/// PERF_CAPABILITIES: values can be written whole.
pub(super) const CAPABILITIES: u64 = 1 << 13;
/// DEBUGCTL: an overflow's interrupt clears the global control.
pub(super) const FREEZE_ON_INTERRUPT: u64 = 1 << 12;
/// Bit 21 (any thread) is version 3's; above bit 31 is nothing.
const SELECT_RESERVED: u64 = !0xffff_ffff | 1 << 21;
/// Each counter's field: OS, USR, and the interrupt; bit 2 (any thread) is version 3's.
const FIXED_FIELD: u64 = 0b1011;
const FIXED_WRITABLE: u64 = FIXED_FIELD | FIXED_FIELD << 4 | FIXED_FIELD << 8;
const GLOBAL_WRITABLE: u64 = CounterSet::first(INTEL_GENERAL as u8, INTEL_FIXED as u8).0;
/// The condition of the counters has changed; never set here.
const STATUS_CONDITION: u64 = 1 << 63;
/// RDPMC: a counter of fixed purpose.
const RDPMC_FIXED: u32 = 1 << 30;

#[inline(always)]
pub(super) fn register(number: u32) -> Option<Register> {
    let general = |first: u32| Some((number - first) as usize);
    // What a kernel uses most comes first.
    Some(match number {
        FIXED_CONTROL => Register::FixedControl,
        GLOBAL_STATUS => Register::GlobalStatus,
        GLOBAL_CONTROL => Register::GlobalControl,
        GLOBAL_CLEAR => Register::GlobalClear,
        _ => match number {
            SELECT..=0x18d => Register::Select(general(SELECT)?),
            FULL_WIDTH_COUNTER..=0x4c8 => Register::Counter(general(FULL_WIDTH_COUNTER)?),
            COUNTER..=0xc8 => Register::ShortCounter(general(COUNTER)?),
            FIXED_COUNTER..=0x30b => Register::Counter(INTEL_GENERAL + (number - FIXED_COUNTER) as usize),
            crate::intel::number::CAPABILITIES => Register::Capabilities,
            DEBUG_CONTROL => Register::DebugControl,
            _ => return None,
        },
    })
}

pub(super) fn slot_of_rdpmc(counter: u32) -> Option<usize> {
    let number = (counter & !RDPMC_FIXED) as usize;
    if counter & RDPMC_FIXED != 0 {
        (number < INTEL_FIXED).then(|| INTEL_GENERAL + number)
    } else {
        (number < INTEL_GENERAL).then_some(number)
    }
}

/// What a counter of fixed purpose is to count, and the number under which a filter knows it.
pub(super) fn fixed_event(control: u64, counter: usize) -> Option<(Event, (u16, u8))> {
    let field = control >> (4 * counter);
    let modes = Modes { kernel: field & 1 != 0, user: field & 2 != 0 };
    let (what, number) = match counter as u8 {
        fixed::INSTRUCTIONS => (What::Instructions, INSTRUCTIONS),
        fixed::CYCLES => (What::Cycles, CYCLES),
        _ => (What::ReferenceCycles, (0, 3)),
    };
    (!modes.is_empty()).then_some((Event { what, modes, shape: Shape::default() }, number))
}

/// In which modes a counter of fixed purpose is to count, as its two bits; 0: it is not.
pub(super) const fn fixed_modes(control: u64, counter: usize) -> u64 {
    control >> (4 * counter) & 0b11
}

pub(super) const fn fixed_interrupts(control: u64, counter: usize) -> bool {
    control >> (4 * counter) & 1 << 3 != 0
}

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

/// What leaf 0xA of CPUID says: EAX, EBX, EDX. `unavailable` has the events of table 20-1 that cannot be counted.
pub const fn leaf(unavailable: u32) -> (u32, u32, u32) {
    const VERSION: u32 = 2;
    /// Events that EBX speaks of.
    const EVENTS: u32 = 7;
    let width = Width::USUAL.bits() as u32;
    let eax = VERSION | (INTEL_GENERAL as u32) << 8 | width << 16 | EVENTS << 24;
    (eax, unavailable & ((1 << EVENTS) - 1), INTEL_FIXED as u32 | width << 5)
}
