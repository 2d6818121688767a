// SPDX-License-Identifier: MIT OR Apache-2.0
//! PCI: configuration space, and the ranges that functions decode where the guest has put them.
//!
//! One bus, reached by both of a PC's ways: configuration mechanism 1 (PCI Local Bus 3.0, section 3.2.2.3.2: an address
//! port and four data ports) and the enhanced mechanism (PCI Express 5.0, section 7.2.2: memory). Absent functions
//! read as all ones. Every access to registers is taken byte by byte, so none can reach past a function, whatever its
//! size and alignment.
//!
//! | module | contents |
//! |---|---|
//! | `bus` | the functions in their slots, reached by both ways |
//! | `endpoint`, `behind` | a function in its slot, with the device behind it |
//! | `function`, `registers`, `bar` | its configuration space |
//! | `msi`, `msix`, `message` | its interrupts |
//! | `access`, `slot` | an access to configuration registers |
//! | `assigned` | a physical function that belongs to the guest |
//! | `aperture` | where ranges may be mapped in the guest's address space |

mod access;
mod aperture;
pub mod assigned;
mod bar;
mod behind;
mod bus;
mod endpoint;
mod function;
mod message;
mod msi;
mod msix;
mod registers;
mod slot;

pub use access::ConfigAccess;
pub use aperture::Apertures;
pub use bar::{BARS, Bar, Space, Window, Windows};
pub use behind::{Behind, Nothing};
pub use bus::{PciBus, Reach};
pub use endpoint::{Configured, Endpoint};
pub use function::{Function, SavedFunction, Unfit};
pub use message::Messages;
pub use msix::MsixPlace;
pub use registers::CONFIG_BYTES;
pub use slot::Slot;
