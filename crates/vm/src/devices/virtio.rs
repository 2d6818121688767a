// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtio devices behind PCI functions (Virtual I/O Device 1.3, section 4.1, without the legacy interface).
//!
//! ```text
//! registers ──► Virtio<D> ──► Transport: features, status, queues, vectors
//!                  │  notify        ▲
//!                  └──────► D ──► Io: chains in, chains out, interrupts
//! ```
//!
//! | module | section |
//! |---|---|
//! | [`VirtioDevice`] | 5: a type of device |
//! | [`Io`] | 2.7: a device's operations on its queues |
//! | `transport`, `common` | 2.1, 2.2, 4.1.4.3: the state of a function and its common configuration |
//! | `space` | 4.1.2, 4.1.4: identifiers and capabilities |
//! | `layout` | 4.1.4: where registers are |
//! | `window` | 4.1.4.9: registers by way of configuration space |
//! | `function` | the function on the bus |
//! | `state` | its state in the hand-over |
//! | [`Source`], `place` | the way of bytes from one guest's memory to another's |
//!
//! Interrupts are MSI-X. A driver without it reads the interrupt status: the machine's PCI functions have no INTx.

mod common;
pub mod console;
mod device;
mod function;
mod io;
mod layout;
mod place;
pub mod rng;
mod source;
mod space;
mod state;
mod transport;
mod window;

pub use ::virtio::{Chain, Fault, Outside, Segment};
pub use device::VirtioDevice;
pub use function::Virtio;
pub use io::Io;
pub(in crate::devices) use place::Place;
pub use source::{Source, Unreachable};
pub use space::in_slot;

#[cfg(test)]
mod tests;
