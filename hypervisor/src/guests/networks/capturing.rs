// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of a network that a client captures.

use switch::{Forward, Seen};
use vm::devices::net::{Chain, Fault, Frame};

use super::port::{Port, Topology};
use crate::arch::guest_memory::GuestRam;
use crate::arch::timer;

/// Captures a frame, if it is wanted.
///
/// # Errors
/// The sender's driver has done what it must not.
#[cold]
pub fn keep(
    lan: &Topology,
    (from, memory): (&Port, &GuestRam),
    (frame, chain): (&Frame, &Chain),
    forward: Forward,
) -> Result<(), Fault> {
    let goes_to =
        |guest| lan.network.egress(forward).any(|to| lan.port(to.port).is_some_and(|port| port.guest == guest));
    let kept = lan.tap.with(|capture| {
        if capture.guest.is_some_and(|guest| from.guest != guest && !goes_to(guest)) {
            return Ok(());
        }
        // Under the lock, so that times are in the frames' order.
        let seen = Seen { time_ns: timer::uptime_ns(), sender: from.guest, bytes: frame.bytes() as u32 };
        capture.keep(seen, |content| frame.read_first(chain, memory, content))
    });
    kept.unwrap_or(Ok(()))
}
