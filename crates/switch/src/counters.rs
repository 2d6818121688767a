// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of a port.

use core::sync::atomic::{AtomicU64, Ordering};

/// Why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Reason {
    /// Sent: it has no whole header.
    Short,
    /// Sent: it is longer than the network's frames.
    Long,
    /// Sent: its source is not the port's address, or no station's.
    Source,
    /// Sent: its VLAN is not the port's.
    Vlan,
    /// Sent: to an address that bridges do not forward.
    Reserved,
    /// Sent: to the port itself, or to one that it may not reach.
    Unreachable,
    /// Sent: its virtio-net header or its descriptors make no sense.
    Malformed,
    /// To be received: the guest has no buffer for it.
    Full,
    /// To be received: the guest's driver does not receive.
    Down,
    /// To be received: the driver has not negotiated the offload that it needs, and it cannot be done for it.
    Offload,
}

impl Reason {
    /// Every one, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Short,
        Self::Long,
        Self::Source,
        Self::Vlan,
        Self::Reserved,
        Self::Unreachable,
        Self::Malformed,
        Self::Full,
        Self::Down,
        Self::Offload,
    ];
}

/// Traffic that has passed a port; any CPU counts.
#[derive(Debug, Default)]
pub struct Counters {
    sent: [AtomicU64; 2],
    received: [AtomicU64; 2],
    drops: [AtomicU64; Reason::ALL.len()],
}

/// Counters of a port at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Frames that its guest has sent and that were forwarded.
    pub sent_frames: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames that its guest has received.
    pub received_frames: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames that were dropped, by [`Reason`].
    pub drops: [u64; Reason::ALL.len()],
}

impl Counters {
    /// Counts a frame that was sent.
    pub fn count_sent(&self, bytes: usize) {
        add(&self.sent, bytes);
    }

    /// Counts a frame that was received.
    pub fn count_received(&self, bytes: usize) {
        add(&self.received, bytes);
    }

    /// Counts a frame that was dropped.
    pub fn count_drop(&self, reason: Reason) {
        if let Some(drops) = self.drops.get(reason as usize) {
            drops.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Goes on from figures that were read before.
    pub fn restore(&self, figures: &Figures) {
        let set = |counter: &AtomicU64, value: u64| counter.store(value, Ordering::Relaxed);
        for (counters, values) in [
            (&self.sent, [figures.sent_frames, figures.sent_bytes]),
            (&self.received, [figures.received_frames, figures.received_bytes]),
        ] {
            counters.iter().zip(values).for_each(|(counter, value)| set(counter, value));
        }
        self.drops.iter().zip(figures.drops).for_each(|(counter, value)| set(counter, value));
    }

    /// Reads them.
    pub fn figures(&self) -> Figures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let [sent_frames, sent_bytes] = self.sent.each_ref().map(read);
        let [received_frames, received_bytes] = self.received.each_ref().map(read);
        Figures { sent_frames, sent_bytes, received_frames, received_bytes, drops: self.drops.each_ref().map(read) }
    }
}

fn add([frames, all_bytes]: &[AtomicU64; 2], bytes: usize) {
    frames.fetch_add(1, Ordering::Relaxed);
    all_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
}
