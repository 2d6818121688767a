// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sockets between guests: the way of a packet from one guest's memory to another's. And the host's own streams: to
//! servers in guests, and from clients in guests to the control channel.
//!
//! ```text
//! exit: notification ──► the vCPU's turn: take a packet ──► receiver: copy into its buffers ──► give it back
//!                        own device locked                  port and device locked          own device locked
//! ```
//!
//! As with [networks](super::networks), the vCPU that has notified its device forwards, and pays for it. No lock is
//! taken while a device of its own is locked, and one port at a time. A packet waits in its sender's queue while the
//! receiver has no buffers: the host keeps none.

mod adopted;
mod port;
mod sending;
pub mod services;
pub mod streams;
pub mod succession;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use bundle::{GuestConfig, VsockConfig};
use vm::devices::pci::Slot;
use vm::devices::virtio;
use vm::devices::vsock::{HOST_CID, Vsock};
use vm::machine::Machine;

use self::port::Plugged;
use crate::arch::guest_memory::GuestRam;
use crate::guests::forwarding::{Kick, Run, work};
use crate::guests::guest::Guest;

pub use self::port::Socket;
pub use self::sending::send;

const SLOT: Slot = Slot(29 << 3);

/// Makes the lines of a bundle's guests to the control channel.
pub fn create(guests: &[GuestConfig]) {
    services::create(guests);
}

/// Adds the port of a guest's socket device, and the streams of its disks.
pub fn enter(guest: u32, config: &GuestConfig) {
    config.vsock.iter().for_each(|vsock| port::add(guest, vsock.cid));
    streams::add(guest, &config.disks);
}

/// Removes what a guest has that does not run.
pub fn leave(guest: u32) {
    port::remove(guest);
    streams::remove(guest);
}

/// Puts a guest's socket device on its bus.
///
/// # Errors
/// Why there can be none.
pub fn attach(guest: &Guest, machine: &mut Machine<GuestRam>) -> Result<Option<Socket>, String> {
    let Some(config) = &guest.config.vsock else { return Ok(None) };
    let bad = |reason: &str| format!("virtio-vsock: {reason}");
    let port = port::of(guest.number).ok_or_else(|| bad("its port is not there"))?;
    let device = virtio::in_slot(SLOT, Vsock::new(config.cid, reachable(config)));
    let device = device.map_err(|_| bad("it fits no function"))?;
    let device = machine.bus_mut().attach_function(device).map_err(|_| bad("its slot on the guest's bus is taken"))?;
    Ok(Some(Socket { port, device }))
}

/// Returns the identifiers to which a guest may open connections.
fn reachable(config: &VsockConfig) -> Vec<u32> {
    let host = config.control.map(|_| HOST_CID);
    config.peers.iter().copied().chain(host).collect()
}

/// The device of a run receives from here on.
pub fn plug(run: &Arc<impl Run + 'static>, socket: Option<&Socket>) {
    if let Some(socket) = socket {
        // The state of the host's streams in another image is gone.
        socket.port.has_old_streams.store(true, Ordering::Relaxed);
        *socket.port.plugged.lock() = Some(Plugged { run: run.clone(), device: socket.device.clone() });
    }
}

/// The device of a run receives nothing any more: no other CPU reaches its memory once this returns. The other ends of
/// its connections are reset.
pub fn unplug(socket: Option<&Socket>) {
    let Some(socket) = socket else { return };
    let unplugged = socket.port.plugged.lock().take();
    // The run may end with this: not while the port is locked.
    drop(unplugged);
    sending::reset_peers(socket.port.cid);
}

/// The other ends of a run's connections are gone: its driver gets RST for each.
pub fn reset_own(run: &dyn Run, socket: Option<&Socket>) {
    if let Some(socket) = socket {
        work(run, Kick::AtOnce, &socket.device, &mut |vsock, io| vsock.reset_all(io));
    }
}
