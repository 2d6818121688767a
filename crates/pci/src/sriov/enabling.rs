// SPDX-License-Identifier: MIT OR Apache-2.0
//! Enabling the virtual functions of a physical one, and disabling them (PCI Express Base 5.0, section 9.3.3). What
//! the hardware states is read again after each write that may change it, as untrusted input.

use core::ops::RangeInclusive;

use super::overlay::{VirtualFunction, WithVirtual};
use super::{BARS, BYTES, ID, IS_64, KIND_OF_MEMORY, PAGES_OF_4_KIB, Unusable, VirtualFunctions, ari, window};
use crate::{Bdf, ConfigSpace, ConfigWrite, Function, extended};

const CONTROL: u16 = 0x08;
const NUMBER: u16 = 0x10;
const SYSTEM_PAGE_SIZE: u16 = 0x20;
/// SR-IOV Control: the virtual functions are enabled, and decode memory.
const ENABLE: u16 = 1 << 0;
const MEMORY: u16 = 1 << 3;
/// The same: devices other than 0 are reached behind the port above.
const ARI: u16 = 1 << 4;
const FLAGS: u32 = 0b1111;
const IS_PREFETCHABLE: u32 = 1 << 3;
/// The least range is a page, and the largest one 2 GiB: more would not fit below 4 GiB beside anything else.
const LEAST_BITS: u32 = 12;
const MOST_BITS: u32 = 31;

/// The values of [`Sizes`] where there is a range.
pub const BITS: RangeInclusive<u8> = LEAST_BITS as u8..=MOST_BITS as u8;

/// The ranges of each virtual function as powers of two, by base address register; 0 for none.
pub type Sizes = [u8; 6];

impl VirtualFunctions {
    /// Enables `number` virtual functions of a function with the ranges `taken` (address and bytes), at addresses
    /// behind its bridge that nothing decodes. Returns the length of their ranges. They must not be accessed for 100 ms
    /// (section 9.3.3.3.1). `block` is called for each before.
    ///
    /// # Errors
    /// [`Unusable`]; none is enabled then.
    pub fn enable<S: ConfigWrite>(
        config: &mut WithVirtual<S>,
        place: Bdf,
        number: u8,
        all: &[Function],
        taken: &[(u64, u64)],
    ) -> Result<Sizes, Unusable> {
        disable(config, place);
        let (at, read) = Self::locate(config, place)?;
        if u16::from(number) > read.total {
            return Err(Unusable::Fewer { total: read.total });
        }
        config.config.write32(place, at + SYSTEM_PAGE_SIZE, PAGES_OF_4_KIB);
        config.config.write16(place, at + NUMBER, number.into());
        let chosen = Self::chosen(config, place, at, number, all)?;
        let mut bars = Bars::size(config, place, at)?;
        bars.place(config, place, number, all, taken)?;
        bars.write(config, place, at)?;
        let control = config.read(place, at + CONTROL) as u16;
        config.config.write16(place, at + CONTROL, control | ENABLE | MEMORY);
        chosen.note(config, place, all, &bars).inspect_err(|_| disable(config, place))?;
        Ok(bars.sizes)
    }

    /// Checks that the bridge above a function states where virtual ones can be.
    ///
    /// # Errors
    /// [`Unusable`].
    pub fn check_window(config: &mut dyn ConfigSpace, place: Bdf, all: &[Function]) -> Result<(), Unusable> {
        window::Free::behind(config, place, all, &[]).map(drop)
    }

    /// Adopts virtual functions that are enabled, with ranges of these lengths.
    ///
    /// # Errors
    /// [`Unusable`]: they are not enabled so.
    pub fn adopt<S: ConfigWrite>(
        config: &mut WithVirtual<S>,
        place: Bdf,
        number: u8,
        all: &[Function],
        sizes: &Sizes,
    ) -> Result<(), Unusable> {
        let (at, read) = Self::locate(config, place)?;
        let control = config.read(place, at + CONTROL) as u16;
        let is_so = control & (ENABLE | MEMORY) == ENABLE | MEMORY
            && config.read(place, at + NUMBER) as u16 == u16::from(number)
            && number > 0;
        if !is_so {
            return Err(Unusable::NotEnabled);
        }
        let chosen = Self { total: number.into(), ..read };
        let bars = Bars::read(config, place, at, *sizes);
        chosen.note(config, place, all, &bars)
    }

    /// Reads where they will be: offset and stride may depend on their number, and on whether the port above passes
    /// requests for devices other than 0 (ARI, section 6.13), which those need.
    fn chosen<S: ConfigWrite>(
        config: &mut WithVirtual<S>,
        place: Bdf,
        at: u16,
        number: u8,
        all: &[Function],
    ) -> Result<Self, Unusable> {
        let read = |config: &mut WithVirtual<S>| {
            let (_, read) = Self::locate(config, place)?;
            let chosen = Self { total: number.into(), ..read };
            let places = chosen.places(place, all)?;
            let is_near = places.end().bus == place.bus && places.end().device() == place.device();
            Ok((chosen, is_near))
        };
        let (chosen, is_near) = read(config)?;
        if is_near {
            return Ok(chosen);
        }
        if !ari::forward(config, place, all) {
            return Err(Unusable::NoAri);
        }
        config.config.write16(place, at + CONTROL, ARI);
        read(config).map(|(chosen, _)| chosen)
    }

    /// Adds these virtual functions to configuration space.
    fn note<S: ConfigWrite>(
        &self,
        config: &mut WithVirtual<S>,
        place: Bdf,
        all: &[Function],
        bars: &Bars,
    ) -> Result<(), Unusable> {
        let first = u32::from(self.places(place, all)?.start().requester());
        let identity = u32::from(self.device) << 16 | config.read(place, 0) & 0xffff;
        config.remove(place);
        for index in 0..self.total {
            let requester = first + u32::from(self.stride) * u32::from(index);
            let (bars, writable) = bars.of(index);
            let own = Bdf::of_requester(place.segment, requester as u16);
            config.add(VirtualFunction { place: own, physical: place, identity, bars, writable });
        }
        Ok(())
    }

    /// Returns the capability's register, and the capability's content.
    fn locate<S: ConfigWrite>(config: &mut WithVirtual<S>, place: Bdf) -> Result<(u16, Self), Unusable> {
        let at = extended::find(config, place, ID, BYTES).ok_or(Unusable::Absent)?;
        Ok((at, Self::read(config, place).ok_or(Unusable::Absent)??))
    }
}

/// Disables the virtual functions of a function, if it answers: there are none any more.
pub fn disable<S: ConfigWrite>(config: &mut WithVirtual<S>, place: Bdf) {
    config.remove(place);
    let Some(at) = extended::find(config, place, ID, BYTES) else { return };
    let control = config.read(place, at + CONTROL);
    if control != u32::MAX && control as u16 & (ENABLE | MEMORY) != 0 {
        config.config.write16(place, at + CONTROL, control as u16 & !(ENABLE | MEMORY));
    }
}

/// The base address registers of all virtual functions of one.
struct Bars {
    kinds: [u32; 6],
    addresses: [u64; 6],
    sizes: Sizes,
}

impl Bars {
    /// Writes ones, and reads which bits stay zero. Nothing decodes.
    fn size<S: ConfigWrite>(config: &mut WithVirtual<S>, place: Bdf, at: u16) -> Result<Self, Unusable> {
        let mut bars = Self { kinds: [0; 6], addresses: [0; 6], sizes: [0; 6] };
        let mut index = 0;
        while index < BARS.len() {
            let mut ones = |index: usize| {
                let register = at + BARS[index];
                config.config.write32(place, register, u32::MAX);
                config.config.read(place, register)
            };
            let low = ones(index);
            let is_wide = low & KIND_OF_MEMORY == IS_64;
            if is_wide && index + 1 == BARS.len() {
                return Err(Unusable::Range { index: index as u8 });
            }
            let high = if is_wide { ones(index + 1) } else { u32::MAX };
            let mask = u64::from(high) << 32 | u64::from(low & !FLAGS);
            if low & !FLAGS != 0 || is_wide && high != 0 {
                let bits = mask.trailing_zeros();
                if !(LEAST_BITS..=MOST_BITS).contains(&bits) || mask != u64::MAX << bits {
                    return Err(Unusable::Range { index: index as u8 });
                }
                (bars.sizes[index], bars.kinds[index]) = (bits as u8, low & FLAGS);
            }
            index += if is_wide { 2 } else { 1 };
        }
        Ok(bars)
    }

    /// Chooses addresses, for the largest ranges first.
    fn place<S: ConfigWrite>(
        &mut self,
        config: &mut WithVirtual<S>,
        function: Bdf,
        number: u8,
        all: &[Function],
        taken: &[(u64, u64)],
    ) -> Result<(), Unusable> {
        let mut free = window::Free::behind(config, function, all, taken)?;
        for bits in (LEAST_BITS..=MOST_BITS).rev() {
            for index in 0..BARS.len() {
                if u32::from(self.sizes[index]) == bits {
                    let is_high = self.kinds[index] & IS_PREFETCHABLE != 0 && self.kinds[index] & IS_64 != 0;
                    let found = free.take(1 << bits, number.into(), is_high);
                    self.addresses[index] = found.ok_or(Unusable::NoSpace { index: index as u8 })?;
                }
            }
        }
        Ok(())
    }

    fn write<S: ConfigWrite>(&self, config: &mut WithVirtual<S>, place: Bdf, at: u16) -> Result<(), Unusable> {
        for (index, register) in BARS.into_iter().enumerate() {
            if self.sizes[index] != 0 {
                let (low, high) = (self.addresses[index] as u32, (self.addresses[index] >> 32) as u32);
                config.config.write32(place, at + register, low);
                let mut is_held = config.read(place, at + register) & !FLAGS == low;
                if self.kinds[index] & KIND_OF_MEMORY == IS_64 {
                    config.config.write32(place, at + register + 4, high);
                    is_held &= config.read(place, at + register + 4) == high;
                }
                if !is_held {
                    return Err(Unusable::Range { index: index as u8 });
                }
            }
        }
        Ok(())
    }

    /// Reads the addresses of the ranges, which have these lengths.
    fn read<S: ConfigWrite>(config: &mut WithVirtual<S>, place: Bdf, at: u16, sizes: Sizes) -> Self {
        let mut bars = Self { kinds: [0; 6], addresses: [0; 6], sizes };
        for (index, register) in BARS.into_iter().enumerate().filter(|(index, _)| sizes[*index] != 0) {
            let low = config.read(place, at + register);
            let is_wide = low & KIND_OF_MEMORY == IS_64 && index + 1 < BARS.len();
            let high = if is_wide { config.read(place, at + register + 4) } else { 0 };
            bars.kinds[index] = low & FLAGS;
            bars.addresses[index] = u64::from(high) << 32 | u64::from(low & !FLAGS);
        }
        bars
    }

    /// Returns the registers of one of the functions, and their bits that can be written.
    fn of(&self, function: u16) -> ([u32; 6], [u32; 6]) {
        let (mut values, mut writable) = ([0; 6], [0; 6]);
        for index in (0..BARS.len()).filter(|index| (1..64).contains(&self.sizes[*index])) {
            let size = 1u64 << self.sizes[index];
            let address = self.addresses[index].wrapping_add(size.wrapping_mul(function.into()));
            values[index] = address as u32 & !FLAGS | self.kinds[index];
            writable[index] = !(size - 1) as u32 & !FLAGS;
            if self.kinds[index] & KIND_OF_MEMORY == IS_64 && index + 1 < BARS.len() {
                values[index + 1] = (address >> 32) as u32;
                writable[index + 1] = (!(size - 1) >> 32) as u32;
            }
        }
        (values, writable)
    }
}

#[cfg(test)]
#[path = "enabling_tests.rs"]
mod tests;
