// SPDX-License-Identifier: MIT OR Apache-2.0
//! The I/O APIC as a device on the bus.

use handover::Full;
use handover::state::{self, DeviceKind};

use super::{Ioapic, IoapicState};
use crate::addr::AccessSize;
use crate::devices::device::{At, Claim, Context, Device, Tag};
use crate::devices::{StateError, piece};
use crate::platform::layout;

const CLAIMS: &[Claim] = &[Claim::Memory { first: layout::IOAPIC, bytes: 4096 }];

// The hand-over has room for all pins.
const _: () = assert!(layout::IOAPIC_PINS == state::IOAPIC_PINS);

impl Device for Ioapic {
    fn tag(&self) -> Tag {
        Tag::only(DeviceKind::Ioapic)
    }

    fn claims(&self) -> &'static [Claim] {
        CLAIMS
    }

    /// Registers are 32 bits wide and aligned; a narrower read sees the part that it asks for.
    #[inline]
    fn read(&mut self, at: At, _: &mut Context<'_>) -> u64 {
        self.read_part(at.offset as u16)
    }

    /// Only whole registers can be written.
    fn write(&mut self, at: At, value: u64, context: &mut Context<'_>) {
        if at.size == AccessSize::Dword {
            // There is room for a message of every pin.
            Self::write(self, at.offset as u16, value as u32, &mut |message| _ = context.outputs.send(message));
        }
    }

    fn reset(&mut self) {
        // Lines are their devices'.
        let state = self.state();
        *self = Self::new(state.id);
        (0..).zip(0..layout::IOAPIC_PINS).for_each(|(pin, _)| _ = self.set_line(pin, state.lines >> pin & 1 != 0));
    }

    fn state_bytes(&self) -> usize {
        size_of::<state::Ioapic>()
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        let from = self.state();
        let saved = state::Ioapic {
            entries: from.entries.map(Into::into),
            lines: from.lines.into(),
            index: from.index,
            id: from.id,
            zero: [0; 2],
        };
        piece::save(&saved, into)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        let from: state::Ioapic = piece::read("ioapic", from)?;
        let entries = from.entries.map(|entry| entry.get());
        *self = Self::from_state(IoapicState { index: from.index, id: from.id, entries, lines: from.lines.get() })?;
        Ok(())
    }
}
