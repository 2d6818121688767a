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

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use bundle::{GuestConfig, VsockConfig};
use spin::Mutex;
use vm::devices::pci::Slot;
use vm::devices::virtio;
use vm::devices::vsock::{HOST_CID, Vsock};
use vm::machine::Machine;

use self::port::{Plugged, Port, SOCKETS, Sender, ports};
use crate::arch::guest_memory::GuestRam;
use crate::guests::forwarding::Run;
use crate::guests::guest::Guest;

pub use self::port::Socket;
pub use self::sending::send;

const SLOT: Slot = Slot(29 << 3);

/// Makes the ports of a bundle's guests.
pub fn create(guests: &[GuestConfig]) {
    let port = |cid| {
        let sender = Sender { chain: Box::default(), full_since_ns: None, stuck: 0 };
        let has_old_streams = AtomicBool::new(false);
        Port { cid, has_old_streams, sender: Mutex::new(sender), plugged: Mutex::new(None) }
    };
    let cids = guests.iter().filter_map(|guest| guest.vsock.as_ref()).map(|vsock| vsock.cid);
    SOCKETS.call_once(|| cids.map(port).collect());
    services::create(guests);
    streams::create(guests);
}

/// Puts a guest's socket device on its bus.
///
/// # Errors
/// Why there can be none.
pub fn attach(guest: &Guest, machine: &mut Machine<GuestRam>) -> Result<Option<Socket>, String> {
    let Some(config) = &guest.config.vsock else { return Ok(None) };
    let bad = |reason: &str| format!("virtio-vsock: {reason}");
    let port = ports().iter().position(|port| port.cid == config.cid).ok_or_else(|| bad("its port is not there"))?;
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
    if let Some((socket, port)) = socket.and_then(|socket| Some((socket, ports().get(socket.port)?))) {
        // The state of the host's streams in another image is gone.
        port.has_old_streams.store(true, Ordering::Relaxed);
        *port.plugged.lock() = Some(Plugged { run: run.clone(), device: socket.device.clone() });
    }
}

/// The device of a run receives nothing any more: no other CPU reaches its memory once this returns. The other ends of
/// its connections are reset.
pub fn unplug(socket: Option<&Socket>) {
    let Some(port) = socket.and_then(|socket| ports().get(socket.port)) else { return };
    let unplugged = port.plugged.lock().take();
    // The run may end with this: not while the port is locked.
    drop(unplugged);
    sending::reset_peers(port.cid);
}
