// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ports for guests' socket devices.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bundle::limits;
use spin::Mutex;
use vm::devices::pci::Endpoint;
use vm::devices::virtio::{Chain, Fault, Io, Virtio};
use vm::devices::vsock::{Key, Vsock};

use super::adopted;
use crate::arch::guest_memory::GuestRam;
use crate::guests::forwarding::{Kick, Run, work};

/// The ports of the guests with sockets, by their numbers.
static PORTS: [Mutex<Option<Arc<Port>>>; limits::GUESTS] = [const { Mutex::new(None) }; limits::GUESTS];
/// The identifiers of these guests; [`NO_CID`] where there is none. No lock is taken to find one.
static CIDS: [AtomicU32; limits::GUESTS] = [const { AtomicU32::new(NO_CID) }; limits::GUESTS];
/// No guest's identifier.
const NO_CID: u32 = 0;

/// A socket device on its guest's bus.
pub type Device = Arc<Mutex<Endpoint<Virtio<Vsock>>>>;

/// The port of a guest.
pub struct Port {
    /// The guest's number.
    pub guest: u32,
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
    /// A bit for each guest that has given no buffers for too long, by its number.
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
    /// The port.
    pub port: Arc<Port>,
    /// The device.
    pub device: Device,
}

const _: () = assert!(limits::GUESTS <= u64::BITS as usize);

impl Port {
    fn new(guest: u32, cid: u32) -> Self {
        let sender = Sender { chain: Box::default(), full_since_ns: None, stuck: 0 };
        let has_old_streams = AtomicBool::new(false);
        Self { guest, cid, has_old_streams, sender: Mutex::new(sender), plugged: Mutex::new(None) }
    }

    /// The bit of its guest among [`Sender::stuck`].
    pub fn bit(&self) -> u64 {
        1u64.checked_shl(self.guest).unwrap_or(0)
    }
}

/// Adds the port of a guest.
pub(super) fn add(guest: u32, cid: u32) {
    let port = Arc::new(Port::new(guest, cid));
    // The guest that had the number before may have been stuck.
    ports().for_each(|other| other.sender.lock().stuck &= !port.bit());
    if let (Some(slot), Some(its_cid)) = (PORTS.get(guest as usize), CIDS.get(guest as usize)) {
        *slot.lock() = Some(port);
        its_cid.store(cid, Ordering::Release);
    }
}

/// Removes the port of a guest that does not run.
pub(super) fn remove(guest: u32) {
    if let (Some(slot), Some(its_cid)) = (PORTS.get(guest as usize), CIDS.get(guest as usize)) {
        its_cid.store(NO_CID, Ordering::Release);
        let removed = slot.lock().take();
        // This may be the last of it: not under the lock.
        drop(removed);
    }
}

/// The port of a guest.
pub(super) fn of(guest: u32) -> Option<Arc<Port>> {
    PORTS.get(guest as usize)?.lock().clone()
}

/// All ports.
pub(super) fn ports() -> impl Iterator<Item = Arc<Port>> {
    let has_port = |(_, cid): &(u32, &AtomicU32)| cid.load(Ordering::Acquire) != NO_CID;
    (0..).zip(&CIDS).filter(has_port).filter_map(|(guest, _)| of(guest))
}

/// The port of the guest with this identifier.
pub(super) fn find(cid: u32) -> Option<Arc<Port>> {
    let guest = CIDS.iter().position(|its| its.load(Ordering::Acquire) == cid)?;
    of(guest as u32).filter(|port| port.cid == cid)
}

/// Works with the device at a port. False if its guest does not run, or its driver has done what it must not.
pub(super) fn with(port: &Port, act: impl FnMut(&mut Vsock, &mut Io<'_>, &GuestRam) -> Result<(), Fault>) -> bool {
    with_by(port, Kick::AtOnce, act)
}

/// The same; the CPU of its guest is notified so.
pub(super) fn with_by(
    port: &Port,
    kick: Kick,
    mut act: impl FnMut(&mut Vsock, &mut Io<'_>, &GuestRam) -> Result<(), Fault>,
) -> bool {
    let plugged = port.plugged.lock();
    plugged.as_ref().is_some_and(|plugged| {
        let memory = plugged.run.machine().memory();
        if port.has_old_streams.load(Ordering::Relaxed) && port.has_old_streams.swap(false, Ordering::Relaxed) {
            let is_gone = |key: &Key| !adopted::has(port.cid, key);
            work(&*plugged.run, kick, &plugged.device, &mut |vsock, io| vsock.reset_of_host(&is_gone, io));
        }
        work(&*plugged.run, kick, &plugged.device, &mut |vsock, io| act(vsock, io, memory))
    })
}
