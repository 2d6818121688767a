// SPDX-License-Identifier: MIT OR Apache-2.0
//! The settings of a function that firmware has chosen and a reset clears: read before, and written again afterwards.

use super::common::{DEVICE_CONTROL, INITIATE_FLR, TRANSACTIONS_PENDING};
use crate::acs::Acs;
use crate::capability::Capability;
use crate::{Bdf, ConfigWrite};

const CACHE_LINE: u16 = 0x0c;
const BARS: [u16; 6] = [0x10, 0x14, 0x18, 0x1c, 0x20, 0x24];
const INTERRUPT_LINE: u16 = 0x3c;
/// Link Control and, since the capability's version 2, Device Control 2 of PCI Express, from the capability's register
/// (PCI Express Base 5.0, section 7.5.3).
const LINK_CONTROL: u16 = 0x10;
const DEVICE_CONTROL_2: u16 = 0x28;
const VERSION: u16 = 0xf;

/// A function's settings.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) place: Bdf,
    bars: [u32; 6],
    cache_line: u8,
    interrupt_line: u8,
    /// Registers and values: the largest payload has to fit what the port above sends, and the link is configured.
    controls: [Option<(u16, u16)>; 3],
    /// The ACS controls that isolate it from the device's other functions, if they are enabled.
    acs: Option<Acs>,
}

impl Kept {
    /// Reads the settings, before a reset.
    pub(super) fn read(config: &mut dyn ConfigWrite, place: Bdf, capabilities: &[Capability]) -> Self {
        let express = capabilities
            .iter()
            .find(|capability| capability.id == Capability::EXPRESS && capability.has_bytes(DEVICE_CONTROL + 4));
        let has_all =
            express.is_some_and(|express| express.flags & VERSION >= 2 && express.has_bytes(DEVICE_CONTROL_2 + 4));
        let control = |config: &mut dyn ConfigWrite, offset: u16, is_there: bool, without: u16| {
            let register = u16::from(express.filter(|_| is_there)?.register) + offset;
            // FLR's bit is a command.
            Some((register, config.read(place, register) as u16 & !without))
        };
        let controls = [
            control(config, DEVICE_CONTROL, true, INITIATE_FLR),
            control(config, LINK_CONTROL, has_all, 0),
            control(config, DEVICE_CONTROL_2, has_all, 0),
        ];
        Self {
            place,
            bars: BARS.map(|register| config.read(place, register)),
            cache_line: config.read(place, CACHE_LINE) as u8,
            interrupt_line: config.read(place, INTERRUPT_LINE) as u8,
            controls,
            acs: express.and_then(|_| Acs::read(config, place)).filter(Acs::is_enabled),
        }
    }

    /// Returns whether the function has no transactions under way, by its PCI Express capability.
    pub(super) fn is_drained(&self, config: &mut dyn ConfigWrite) -> bool {
        let [device_control, ..] = self.controls;
        device_control.is_none_or(|(register, _)| config.read(self.place, register) & TRANSACTIONS_PENDING == 0)
    }

    /// Returns whether the function's ranges are where they were.
    pub(super) fn is_placed(&self, config: &mut dyn ConfigWrite) -> bool {
        BARS.into_iter().zip(self.bars).all(|(register, value)| config.read(self.place, register) == value)
    }

    /// Writes the settings again, after a reset.
    pub(super) fn write(&self, config: &mut dyn ConfigWrite) {
        for (register, value) in BARS.into_iter().zip(self.bars) {
            config.write32(self.place, register, value);
        }
        config.write8(self.place, CACHE_LINE, self.cache_line);
        config.write8(self.place, INTERRUPT_LINE, self.interrupt_line);
        for (register, value) in self.controls.into_iter().flatten() {
            config.write16(self.place, register, value);
        }
        if let Some(acs) = &self.acs {
            acs.restore(config, self.place);
        }
    }
}
