// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses behind a bridge that nothing decodes (PCI-to-PCI Bridge 1.2, sections 3.2.5.8 and 3.2.5.9). Only where one
//! function is behind it: the lengths of others' ranges are not known.

use arrayvec::ArrayVec;

use super::Unusable;
use crate::{Bdf, ConfigSpace, Function, Kind};

const MEMORY: u16 = 0x20;
const PREFETCHABLE: u16 = 0x24;
const BASE_HIGH: u16 = 0x28;
const LIMIT_HIGH: u16 = 0x2c;
const IS_64: u32 = 1;
/// Ranges of the function itself, and of its virtual ones.
const MOST: usize = 12;

/// The bridge's windows, and what is taken of them.
pub(super) struct Free {
    /// First and last address: memory below 4 GiB, and prefetchable memory.
    memory: (u64, u64),
    prefetchable: (u64, u64),
    /// Address and bytes.
    taken: ArrayVec<(u64, u64), MOST>,
}

impl Free {
    /// Returns the windows of the bridge above a function with the ranges `taken`.
    pub(super) fn behind(
        config: &mut dyn ConfigSpace,
        function: Bdf,
        all: &[Function],
        taken: &[(u64, u64)],
    ) -> Result<Self, Unusable> {
        let is_above = |other: &&Function| match other.kind {
            Kind::Bridge { secondary, .. } => other.place.segment == function.segment && secondary == function.bus,
            _ => false,
        };
        let bridge = all.iter().find(is_above).ok_or(Unusable::NoBridge)?.place;
        let is_on_bus = |other: &&Function| (other.place.segment, other.place.bus) == (function.segment, function.bus);
        if let Some(other) = all.iter().filter(is_on_bus).find(|other| other.place != function) {
            return Err(Unusable::NotAlone(other.place));
        }
        let [memory, prefetchable, base_high, limit_high] =
            [MEMORY, PREFETCHABLE, BASE_HIGH, LIMIT_HIGH].map(|register| config.read(bridge, register));
        let window = |register: u32, base_high: u32, limit_high: u32| {
            let base = u64::from(base_high) << 32 | u64::from(register & 0xfff0) << 16;
            let last = u64::from(limit_high) << 32 | u64::from(register & 0xfff0_0000) | 0xf_ffff;
            (base, last)
        };
        let is_wide = prefetchable & 0xf == IS_64;
        let high = |register: u32| if is_wide { register } else { 0 };
        let prefetchable = window(prefetchable, high(base_high), high(limit_high));
        let taken = taken.iter().copied().filter(|(_, bytes)| *bytes > 0).take(MOST / 2).collect();
        Ok(Self { memory: window(memory, 0, 0), prefetchable, taken })
    }

    /// Takes `number` ranges of `bytes`, a power of two, one behind the other. `is_high`: they may be in prefetchable
    /// memory. Returns where the first one is.
    pub(super) fn take(&mut self, bytes: u64, number: u64, is_high: bool) -> Option<u64> {
        let all = bytes.checked_mul(number)?;
        let high = is_high.then_some(self.prefetchable).and_then(|window| self.find(window, bytes, all));
        let found = high.or_else(|| self.find(self.memory, bytes, all))?;
        self.taken.try_push((found, all)).ok()?;
        Some(found)
    }

    /// Returns the lowest address that is free, a multiple of `alignment`.
    fn find(&self, (first, last): (u64, u64), alignment: u64, bytes: u64) -> Option<u64> {
        let mut at = first.checked_next_multiple_of(alignment)?;
        // A window at 0 is one that was not set.
        for _ in 0..=self.taken.len() {
            let end = at.checked_add(bytes)?;
            if first == 0 || end - 1 > last {
                return None;
            }
            let in_the_way = self.taken.iter().find(|(start, bytes)| at < start.saturating_add(*bytes) && *start < end);
            let Some((start, bytes)) = in_the_way else { return Some(at) };
            at = start.checked_add(*bytes)?.checked_next_multiple_of(alignment)?;
        }
        None
    }
}
