// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events that a guest may count.

/// A list of events, by event select and unit mask, that may be counted; or all. A counter of any other event stands
/// still, as for an event that the CPU does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Event select, and unit mask above it.
    allowed: [u32; Filter::MOST],
    count: u8,
    is_list: bool,
}

impl Filter {
    /// The longest list.
    pub const MOST: usize = 16;

    /// Everything may be counted.
    pub const ALL: Self = Self { is_list: false, ..Self::NONE };

    /// Nothing.
    pub const NONE: Self = Self { allowed: [0; Self::MOST], count: 0, is_list: true };

    /// Allows one more event. An event that finds the list full may not be counted.
    pub fn allow(&mut self, select: u16, unit: u8) {
        if let Some(place) = self.allowed.get_mut(usize::from(self.count)) {
            *place = key(select, unit);
            self.count += 1;
        }
    }

    /// Returns whether this event may be counted.
    #[inline]
    pub fn allows(&self, (select, unit): (u16, u8)) -> bool {
        !self.is_list || self.allowed.iter().take(self.count.into()).any(|&allowed| allowed == key(select, unit))
    }
}

const fn key(select: u16, unit: u8) -> u32 {
    select as u32 | (unit as u32) << 16
}
