// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine with functions that are tables of bytes.

use std::collections::BTreeMap;
use std::vec::Vec;

use crate::{Bdf, ConfigSpace, ConfigWrite};

/// A function's 256 bytes, and its extended registers.
#[derive(Clone, Debug)]
pub struct Chip {
    pub words: [u32; 64],
    /// Words from register 0x100 on; none: nothing shows them.
    pub extended: BTreeMap<u16, u32>,
    /// Number of replies that it is not ready.
    pub not_ready: u32,
    /// It vanishes after this many accesses.
    pub vanishes_after: u32,
    /// The bits of each word that can be written. Those of the status are cleared by ones.
    pub writable: [u32; 64],
    /// Number of reads after a reset at which it reports that it is not ready.
    pub not_ready_after_reset: u32,
    /// Number of resets so far.
    pub resets: u32,
    /// The write that resets it: register and value.
    pub reset_by: Option<(u16, u16)>,
    /// The register of its first range after a reset, which cannot be written any more.
    pub moves_at_reset: Option<u32>,
}

impl Chip {
    pub fn new(vendor: u16, device: u16, class: u16, header: u8) -> Self {
        let mut words = [0; 64];
        words[0] = u32::from(device) << 16 | u32::from(vendor);
        words[1] = 0b11;
        words[2] = u32::from(class) << 16;
        words[3] = u32::from(header) << 16;
        let mut writable = [0; 64];
        writable[1] = 0xffff;
        Self {
            words,
            extended: BTreeMap::new(),
            not_ready: 0,
            vanishes_after: u32::MAX,
            writable,
            not_ready_after_reset: 0,
            resets: 0,
            reset_by: None,
            moves_at_reset: None,
        }
    }

    /// With an address range of this length, a power of two, at an address.
    pub fn with_range(mut self, index: usize, value: u32, mask: u32) -> Self {
        (self.words[4 + index], self.writable[4 + index]) = (value, mask);
        self
    }

    /// With an ACS capability of these services, enabled ones in the upper half, as its first extended one.
    pub fn with_acs(mut self, services_and_control: u32) -> Self {
        self.extended.extend([(0x100, 0x0001_000d), (0x104, services_and_control)]);
        self
    }

    fn write(&mut self, register: u16, mask: u32, value: u32) {
        if let Some(word) = self.extended.get_mut(&(register & !3)) {
            let shift = u32::from(register % 4) * 8;
            *word = *word & !(mask << shift) | value << shift;
            return;
        }
        let index = usize::from(register / 4) % 64;
        let shift = u32::from(register % 4) * 8;
        let bits = self.writable[index] & mask << shift;
        self.words[index] = self.words[index] & !bits | value << shift & bits;
        if self.reset_by.is_some_and(|(at, bit)| at == register && value as u16 & bit != 0) {
            self.reset();
        }
    }

    /// Its command is clear again, its ranges are nowhere, and no Access Control Service is enabled.
    fn reset(&mut self) {
        self.resets += 1;
        self.extended.entry(0x104).and_modify(|acs| *acs &= 0xffff);
        self.words[1] &= !0xffff;
        self.words[4..10].iter_mut().zip(&self.writable[4..10]).for_each(|(word, writable)| *word &= !writable);
        if let Some(value) = self.moves_at_reset {
            (self.words[4], self.writable[4]) = (value, 0);
        }
        self.not_ready = self.not_ready_after_reset;
    }

    /// Returns a bridge to a bus.
    pub fn bridge(secondary: u8) -> Self {
        let mut chip = Self::new(0x1b36, 0x000c, 0x0604, 1);
        chip.words[6] = u32::from(secondary) << 16 | u32::from(secondary) << 8;
        chip.writable[0x3c / 4] = 0xffff_0000;
        chip
    }

    /// With a capability list: the first pointer, then each one's register, identifier and pointer to the next.
    pub fn with_capabilities(mut self, first: u8, list: &[(u8, u8, u8)]) -> Self {
        self.words[1] |= 1 << 20;
        self.words[13] = u32::from(first);
        for &(register, id, next) in list {
            self.words[usize::from(register / 4)] = u32::from(next) << 8 | u32::from(id);
        }
        self
    }

    /// With a register of an address range.
    pub fn with_bar(mut self, index: usize, value: u32) -> Self {
        self.words[4 + index] = value;
        self
    }
}

/// The machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    pub chips: BTreeMap<Bdf, Chip>,
    pub log: Vec<(Bdf, u16)>,
    /// Writes: register and value.
    pub writes: Vec<(Bdf, u16, u32)>,
    pub pauses: u32,
}

impl Machine {
    pub fn with(chips: impl IntoIterator<Item = (&'static str, Chip)>) -> Self {
        let chips = chips.into_iter().map(|(place, chip)| (place.parse().unwrap(), chip)).collect();
        Self { chips, ..Self::default() }
    }

    /// Returns the values that were written to a register.
    pub fn written(&self, place: Bdf, register: u16) -> Vec<u32> {
        let writes = self.writes.iter().filter(|(at, written, _)| (*at, *written) == (place, register));
        writes.map(|(.., value)| *value).collect()
    }

    /// Resets all functions behind a bridge.
    fn reset_bus(&mut self, bridge: Bdf) {
        let Some([_, secondary, subordinate, _]) = self.chips.get(&bridge).map(|chip| chip.words[6].to_le_bytes())
        else {
            return;
        };
        let behind = self.chips.iter_mut().filter(|(place, _)| (secondary..=subordinate).contains(&place.bus));
        behind.for_each(|(_, chip)| chip.reset());
    }

    fn write(&mut self, place: Bdf, register: u16, mask: u32, value: u32) {
        self.writes.push((place, register, value));
        if register == 0x3e && value & 1 << 6 != 0 {
            self.reset_bus(place);
        }
        if let Some(chip) = self.chips.get_mut(&place) {
            chip.write(register, mask, value);
        }
    }
}

impl ConfigSpace for Machine {
    fn read(&mut self, place: Bdf, register: u16) -> u32 {
        self.log.push((place, register));
        let Some(chip) = self.chips.get_mut(&place) else { return u32::MAX };
        let Some(left) = chip.vanishes_after.checked_sub(1) else { return u32::MAX };
        chip.vanishes_after = left;
        if register == 0 && chip.not_ready > 0 {
            chip.not_ready -= 1;
            return 0xffff_0001;
        }
        match register {
            0x100.. if chip.extended.is_empty() => u32::MAX,
            0x100.. => chip.extended.get(&register).copied().unwrap_or(0),
            _ => chip.words[usize::from(register / 4)],
        }
    }

    fn now(&mut self) -> u64 {
        self.log.len() as u64 * 10
    }

    fn pause(&mut self) {
        self.pauses += 1;
    }
}

impl ConfigWrite for Machine {
    fn write8(&mut self, place: Bdf, register: u16, value: u8) {
        self.write(place, register, 0xff, value.into());
    }

    fn write16(&mut self, place: Bdf, register: u16, value: u16) {
        assert!(register.is_multiple_of(2));
        self.write(place, register, 0xffff, value.into());
    }

    fn write32(&mut self, place: Bdf, register: u16, value: u32) {
        assert!(register.is_multiple_of(4));
        self.write(place, register, u32::MAX, value);
    }
}
