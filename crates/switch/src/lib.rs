// SPDX-License-Identifier: MIT OR Apache-2.0
//! An Ethernet switch between guests: which ports a frame goes to, and why not.
//!
//! ```text
//! bytes ──► Header::parse ──► Network::forward ──► Forward { ports, vlan } ──► egress tag of each port
//!              │ refused          │ refused
//!              └──► Reason ◄──────┘               counted at the sender's port (Counters)
//! ```
//!
//! A [`Network`] is built from the configuration of its ports. All methods afterwards take `&self`: any CPU asks
//! without a lock. The only state that frames change are the tables of learned addresses, whose entries are atomic. A
//! change of the ports makes another network, which shares these tables.
//!
//! - **Fixed addresses.** Each port has one. A frame to it goes to this port, whatever is learned.
//! - **Learning.** A port that is not trusted sends from its own address only, so that there is nothing to learn. A
//!   trusted port (a guest that bridges the network to another) sends from any address of one station that is not
//!   fixed at another port; those are learned, in a table of that port's.
//! - **Flooding.** A frame to a group, or to an address that is neither fixed nor learned, goes to all other ports of
//!   its VLAN.
//! - **VLANs** (IEEE 802.1Q-2018). A port carries untagged frames of one VLAN, or tagged ones of a list. A station is
//!   learned per VLAN.
//! - **Isolated ports** exchange frames with ports that are not isolated only.
//!
//! An [`announcement`] informs switches outside of a station that has moved here.
//!
//! A [`Capture`] keeps frames for a client that wants to see them.
//!
//! [`Mitigation`] decides when a sender's driver is asked for notifications.
//!
//! The format of frames: IEEE 802.3-2018, section 3; tags: IEEE 802.1Q-2018, section 9.6; addresses that bridges do not
//! forward: IEEE 802.1Q-2018, table 8-1. Frames are untrusted input: no length, address or tag panics.
#![no_std]
#![warn(missing_docs)]

#[cfg(test)]
extern crate std;

extern crate alloc;

mod announcement;
mod capture;
mod counters;
mod header;
mod learned;
mod mac;
mod mitigation;
mod network;
mod port;
mod ports;

pub use announcement::{ANNOUNCEMENT_BYTES, announcement};
pub use capture::{CAPTURE_BYTES, Capture, Captured, MAX_SNAP_BYTES, Seen};
pub use counters::{Counters, Figures, Reason};
pub use header::{HEADER_BYTES, Header, MAX_FRAME_BYTES, MAX_PAYLOAD_BYTES, TAG_BYTES, Tag};
pub use learned::{AGE_NS, STATIONS};
pub use mac::{Mac, NotAMac};
pub use mitigation::{Mitigation, Occasion};
pub use network::{Egress, Forward, Network, Refused};
pub use port::{MAX_VLAN, Port, Vlans};
pub use ports::{MAX_PORTS, Ports};

#[cfg(test)]
mod tests;
