// SPDX-License-Identifier: MIT OR Apache-2.0
//! A virtio socket device (Virtual I/O Device 1.3, section 5.10): connections between guests.
//!
//! ```text
//! sender's Vsock ──► take ──► Packet ──► receiver's Vsock ──► receive ──► buffers, interrupt
//!        ▲                                     │ copies from the sender's memory (Source)
//!        └── done, hold, refuse ◄──────────────┘
//! ```
//!
//! As with [network devices](super::net), the device knows no other one, and the host borrows one at a time. A packet
//! that finds no place at its receiver stays in its sender's queue: the host keeps no data. The only packet of the
//! device's own is RST. Those that wait for a buffer are in the table of connections, or in a list with a limit.
//!
//! | module | section |
//! |---|---|
//! | `device` | 5.10.2, 5.10.3, 5.10.4: queues, features, configuration |
//! | `sending` | 5.10.6: packets that the driver sends |
//! | `receiving` | 5.10.6: packets that it receives |
//! | `state` | its state in the hand-over |
//!
//! No event (5.10.6.7) is ever sent: a guest keeps its identifier and its connections from image to image.

mod device;
mod receiving;
mod sending;
mod state;

pub use ::vsock::{Address, HEADER_BYTES, HOST_CID, Header, Key, Operation, Outgoing, Progress, Stream, StreamPhase};
pub use device::Vsock;
pub use receiving::Received;
pub use sending::{Packet, Taken};

#[cfg(test)]
mod tests;
