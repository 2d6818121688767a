// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs of queues (sections 5.1.2 and 5.1.6.5.5): a driver with several vCPUs sends and receives by several.

use arrayvec::ArrayVec;

use super::feature;

/// The most pairs of a device.
pub const PAIRS_MOST: usize = 16;
/// Descriptors of each queue for frames, and of that for commands.
const FRAMES: u16 = 256;
const COMMANDS: u16 = 64;

/// A queue by its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Receive,
    /// The driver's frames, of this pair.
    Transmit(usize),
    Control,
}

/// The queue of a pair with buffers for frames that the driver receives.
pub(super) fn receive(pair: usize) -> u16 {
    2 * pair as u16
}

/// The queue of a pair with frames that the driver sends.
pub(super) fn transmit(pair: usize) -> u16 {
    receive(pair) + 1
}

/// The pairs of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pairs {
    most: usize,
    /// Those that the driver uses; one until it asks for more.
    used: usize,
    /// Pairs that the driver has notified the device of, and whose frames have not been taken since: a bit for each.
    waiting: u16,
    /// Descriptors of all queues.
    sizes: ArrayVec<u16, { 2 * PAIRS_MOST + 1 }>,
}

impl Pairs {
    /// As many as there are to be, at least one and at most [`PAIRS_MOST`].
    pub fn new(wanted: u16) -> Self {
        let most = usize::from(wanted).clamp(1, PAIRS_MOST);
        let mut sizes: ArrayVec<_, _> = core::iter::repeat_n(FRAMES, 2 * most).collect();
        if most > 1 {
            sizes.push(COMMANDS);
        }
        Self { most, used: 1, waiting: 0, sizes }
    }

    /// As many as a driver finds.
    pub fn most(&self) -> usize {
        self.most
    }

    /// As many as the driver uses.
    pub fn used(&self) -> usize {
        self.used
    }

    /// The driver uses so many. False if it cannot.
    pub fn set_used(&mut self, pairs: u16) -> bool {
        let is_possible = (1..=self.most).contains(&pairs.into());
        if is_possible {
            self.used = pairs.into();
        }
        is_possible
    }

    /// The features that a device with so many pairs offers for them.
    pub fn features(&self) -> u64 {
        if self.most > 1 { feature::CTRL_VQ | feature::MQ } else { 0 }
    }

    pub fn queue_sizes(&self) -> &[u16] {
        &self.sizes
    }

    /// The role of a queue for a driver with these features: without multiqueue the third is the one for commands.
    pub fn role(&self, queue: u16, features: u64) -> Option<Role> {
        let control = if features & feature::MQ != 0 { receive(self.most) } else { receive(1) };
        match queue {
            _ if self.most > 1 && queue == control => (features & feature::CTRL_VQ != 0).then_some(Role::Control),
            _ if queue >= receive(self.most) => None,
            _ if queue.is_multiple_of(2) => Some(Role::Receive),
            _ => Some(Role::Transmit(usize::from(queue) / 2)),
        }
    }

    /// The pairs whose frames are to be sent. A device with one pair is always asked.
    #[inline]
    pub fn waiting(&self) -> u16 {
        if self.most == 1 { 1 } else { self.waiting }
    }

    /// The frames of a pair are to be sent, or are being sent.
    #[inline]
    pub fn set_waiting(&mut self, pair: usize, is_waiting: bool) {
        self.waiting = self.waiting & !(1 << pair) | u16::from(is_waiting) << pair;
    }

    /// The frames of all pairs are to be sent: no record has which.
    pub fn all_wait(&mut self) {
        self.waiting = u16::MAX >> (PAIRS_MOST - self.most);
    }

    /// As after power-on.
    pub fn reset(&mut self) {
        (self.used, self.waiting) = (1, 0);
    }
}
