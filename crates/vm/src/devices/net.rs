// SPDX-License-Identifier: MIT OR Apache-2.0
//! A virtio network device (Virtual I/O Device 1.3, section 5.1): pairs of queues, offloads, mergeable buffers.
//!
//! ```text
//! sender's Net ──► take ──► Frame ──► switch ──► receiver's Net ──► receive ──► buffers, interrupt
//!        ▲                                           │ copies from the sender's memory ([`Source`](super::virtio::Source))
//!        └────────────── sent ◄──────────────────────┘
//! ```
//!
//! The device knows no other one: the host takes a [`Frame`] of one device, asks the switch where it goes, lets other
//! devices receive it, and gives it back to the first one. It borrows one device at a time, so that two guests that
//! send to each other never wait for each other.
//!
//! A frame with a checksum or segmentation that the sender has left to the device is handed on so to a driver that
//! takes it. For one that does not, the checksum is computed; what would have to be segmented is dropped.
//!
//! | module | section |
//! |---|---|
//! | `device`, `feature` | 5.1.3, 5.1.4: features, configuration |
//! | `pairs`, `control`, `flows` | 5.1.2, 5.1.6.5.5: queues, and by which of them a frame is received |
//! | `offload` | 5.1.6: the header before each frame, and what the driver has negotiated for it |
//! | `frame` | 5.1.6.2: frames that the driver sends |
//! | `receive`, `sink`, `checksum` | 5.1.6.3, 5.1.6.4: frames that it receives |

mod checksum;
mod control;
mod device;
mod feature;
mod flows;
mod frame;
mod offload;
mod pairs;
mod receive;
mod sink;

pub use ::virtio::{Chain, Fault};

pub use device::Net;
pub use frame::{Frame, Taken};
pub use pairs::PAIRS_MOST;
pub use receive::{Received, Undelivered};

#[cfg(test)]
mod tests;
