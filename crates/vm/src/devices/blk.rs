// SPDX-License-Identifier: MIT OR Apache-2.0
//! A virtio block device (Virtual I/O Device 1.3, section 5.2) whose storage is an export of an NBD server.
//!
//! ```text
//! driver ──► requests ──► nbd::Client ──► Stream ──► server
//!              chains        │ data, by Transfer: the chain is followed again
//! driver ◄── status ◄────────┘
//! ```
//!
//! The device keeps the request to the server, and the number of its chain. Data is copied between the
//! guest's memory and the stream in small pieces, each time by the chain as it is then: a driver that changes a chain
//! in flight harms its own data only.
//!
//! The size of the disk is the server's. Until it is known the device is not done with its reset
//! ([`VirtioDevice::is_ready`](super::virtio::VirtioDevice::is_ready)), for as long as a request may take: so a driver
//! waits for a server that starts later.
//!
//! | module | section |
//! |---|---|
//! | `device` | 5.2.3, 5.2.5: features, initialization; the work of one turn |
//! | `queue` | 5.2.2: the queue |
//! | `config` | 5.2.4: the configuration |
//! | `requests` | 5.2.6: the driver's requests |
//! | `limits` | requests and bytes that a driver may ask for in a second |
//! | `transfer` | 5.2.6: data and status |
//! | `state` | its state in the hand-over |
//! | `socket` | 5.10: the stream to a server in another guest |

mod bounded;
mod config;
mod device;
mod limits;
mod queue;
mod requests;
mod socket;
mod state;
mod transfer;

pub use ::virtio::{Chain, Fault};
pub use nbd::{Export, Figures, News, Problem, Status, Stream, Transfers};

pub use bounded::Bounded;
pub use device::{Blk, BlkConfig};
pub use limits::Limits;
pub use socket::Socket;

#[cfg(test)]
mod tests;
