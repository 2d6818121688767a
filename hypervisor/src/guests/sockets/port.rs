// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ports for guests' socket devices.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use spin::{Mutex, Once};
use vm::devices::pci::Endpoint;
use vm::devices::virtio::{Chain, Fault, Io, Virtio};
use vm::devices::vsock::{Key, Vsock};

use super::adopted;
use crate::arch::guest_memory::GuestRam;
use crate::guests::forwarding::{Run, work};

/// The ports of all guests with sockets, in the bundle's order.
pub static SOCKETS: Once<Vec<Port>> = Once::new();

/// A socket device on its guest's bus.
pub type Device = Arc<Mutex<Endpoint<Virtio<Vsock>>>>;

/// The port of a guest.
pub struct Port {
    /// The guest's identifier.
    pub cid: u32,
    /// The guest may know streams of the host that the image before has had.
    pub has_old_streams: AtomicBool,
    /// Held by the vCPU that forwards packets of this port's guest.
    pub sender: Mutex<Sender>,
    /// The receiver, while its guest runs.
    pub plugged: Mutex<Option<Plugged>>,
}

/// The state that sending packets needs.
pub struct Sender {
    /// The packet that is being sent.
    pub chain: Box<Chain>,
    /// Since when the next packet's receiver has had no buffers.
    pub full_since_ns: Option<u64>,
    /// Bits of the ports of guests that have given no buffers for too long. There are at most
    /// [`GUESTS`](bundle::limits::GUESTS).
    pub stuck: u64,
}

/// A device that receives.
pub struct Plugged {
    /// Its guest's run.
    pub run: Arc<dyn Run>,
    /// The device.
    pub device: Device,
}

/// The socket device of a run, and its port.
pub struct Socket {
    /// The port's number.
    pub port: usize,
    /// The device.
    pub device: Device,
}

/// All ports.
pub fn ports() -> &'static [Port] {
    SOCKETS.get().map_or(&[], |ports| ports)
}

/// The port of a guest, and its number.
pub(super) fn find(cid: u32) -> Option<(usize, &'static Port)> {
    ports().iter().enumerate().find(|(_, port)| port.cid == cid)
}

/// Works with the device at a port. False if its guest does not run, or its driver has done what it must not.
pub(super) fn with(port: &Port, mut act: impl FnMut(&mut Vsock, &mut Io<'_>, &GuestRam) -> Result<(), Fault>) -> bool {
    let plugged = port.plugged.lock();
    plugged.as_ref().is_some_and(|plugged| {
        let memory = plugged.run.machine().memory();
        if port.has_old_streams.load(Ordering::Relaxed) && port.has_old_streams.swap(false, Ordering::Relaxed) {
            let is_gone = |key: &Key| !adopted::has(port.cid, key);
            work(&*plugged.run, None, &plugged.device, &mut |vsock, io| vsock.reset_of_host(&is_gone, io));
        }
        work(&*plugged.run, None, &plugged.device, &mut |vsock, io| act(vsock, io, memory))
    })
}
