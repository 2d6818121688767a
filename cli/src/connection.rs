// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ways to a host: an [`Address`] states one, [`open`] makes a [`Line`] of it.
//!
//! | address | line |
//! |---|---|
//! | `lab:NAME` | the socket of a host that `baton up` started; its broker shares the host |
//! | `unix:PATH` | a Unix socket |
//! | `tty:DEVICE[,BAUD]` | a serial port, in raw mode, locked |
//! | `tcp:HOST:PORT` | a TCP port that passes a serial line's bytes |
//! | `serve:PATH[,NAME]` | a host of `baton serve` on this machine, by its Unix socket |
//! | `https://SERVICE:PORT[/NAME]` | a host of `baton serve`, by TLS with certificates on both sides |
//! | `vsock:CID[:PORT]` | a port of a virtual machine, or of the machine below: a Baton host that lets the guest control it |
//! | `ssh:[USER@]HOST[:PORT][/ADDRESS]` | `baton relay` on another machine, with the line that it opens |

mod address;
#[cfg(test)]
mod address_tests;
mod far;
mod https;
mod line;
mod network;
mod service;
mod tty;
mod upgrade;

use anyhow::Result;

pub use self::address::{Address, BadAddress, DEFAULT_BAUD};
pub use self::https::Identity;
pub use self::line::{Keeper, Line, Ready};
use crate::running;

/// Opens a line to the host at this address.
///
/// # Errors
/// The reason, with a hint: no such device, no permission, in use, no host there.
pub fn open(address: &Address) -> Result<Line> {
    match address {
        Address::Lab(name) => network::unix(&running::control_socket_of(name)?),
        Address::Unix(path) => network::unix(path),
        Address::Tty { device, baud } => tty::open(device, *baud),
        Address::Tcp { host, port } => network::tcp(host, *port),
        Address::Serve { path, name } => service::open(path, name.as_deref()),
        Address::Https { host, port, name, identity } => https::open(host, *port, name.as_deref(), identity),
        Address::Vsock { cid, port } => network::vsock(*cid, *port),
        Address::Ssh { host, port, from_there } => {
            far::open(host, *port, from_there.as_deref(), slowest(from_there.as_deref()))
        }
    }
}

/// Returns the rate of the slowest part of a line, as far as its address states it.
fn slowest(address: Option<&Address>) -> u32 {
    match address {
        Some(Address::Tty { baud, .. }) => *baud,
        Some(Address::Ssh { from_there, .. }) => slowest(from_there.as_deref()),
        _ => DEFAULT_BAUD,
    }
}

/// Returns the likely cause where nothing answers at an address.
pub fn hint(address: &Address) -> &'static str {
    match address {
        Address::Lab(_) => "see its log in the terminal of `baton up`",
        Address::Unix(_) => "is the host up, and its COM2 behind this socket?",
        Address::Tty { .. } => "is the host up, the cable at its COM2, and the rate 115200?",
        Address::Tcp { .. } => "is the host up, its COM2 at this port, and the port in raw mode (not telnet)?",
        Address::Serve { .. } | Address::Https { .. } => {
            "is the host up, and does the service's page show it as connected?"
        }
        Address::Vsock { .. } => {
            "does `vsock` of this guest state `control` in the host's configuration, or is the host's COM2 \
                                     passed to this port?"
        }
        Address::Ssh { .. } => "is the host up, and does `baton info` answer there?",
    }
}
