// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common part of networks and sockets between guests: working with a device of another guest, and copying from one
//! guest's memory to another's.

use spin::Mutex;
use vm::addr::Gpa;
use vm::devices::outputs::{Outputs, Request};
use vm::devices::pci::Endpoint;
use vm::devices::virtio::{Fault, Io, Outside, Source, Unreachable, Virtio, VirtioDevice};
use vm::machine::Machine;
use vm::memory::{GuestMemory as _, OutOfRange};

use crate::arch::guest_memory::{GuestRam, OutsideOf};
use crate::arch::percpu;
use crate::guests::guest::Guest;

/// How the sending of a guest goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Next {
    /// The time for frames, in ticks; `None`: when the guest notifies a network device again.
    pub frames: Option<u64>,
    /// The guest does not notify a network device of its next frames. They are to be sent as soon as the vCPU leaves
    /// the guest for longer than an exit.
    pub lingers: bool,
    /// The time for packets and disks.
    pub others: Option<u64>,
}

impl Next {
    /// Returns the earliest time.
    pub fn at(&self) -> Option<u64> {
        self.frames.into_iter().chain(self.others).min()
    }
}

/// A run of a guest, as other guests' CPUs reach it.
pub trait Run: Send + Sync {
    /// The guest.
    fn guest(&self) -> &Guest;
    /// Its machine.
    fn machine(&self) -> &Machine<GuestRam>;
}

/// How the CPU of a vCPU is notified of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kick {
    /// At once, unless it is this vCPU: the calling CPU is about to enter it.
    But(usize),
    /// At once.
    AtOnce,
    /// At once; but where it is the calling CPU, the vCPU that runs there keeps it for its slice: it may have more.
    Behind,
}

/// Works with a device, and interrupts its guest. False if the device's driver has done what it must not.
#[inline(never)]
pub fn work<D: VirtioDevice>(
    run: &dyn Run,
    kick: Kick,
    device: &Mutex<Endpoint<Virtio<D>>>,
    act: &mut dyn FnMut(&mut D, &mut Io<'_>) -> Result<(), Fault>,
) -> bool {
    let mut is_faultless = false;
    let (machine, guest) = (run.machine(), run.guest());
    let mut notify = |vcpu: usize, was_notified: bool| match kick {
        _ if was_notified || kick == Kick::But(vcpu) => {}
        Kick::Behind => percpu::kick_behind(guest.cpu_to_notify(vcpu)),
        Kick::But(_) | Kick::AtOnce => percpu::kick(guest.cpu_to_notify(vcpu)),
    };
    machine.with_function(device, &mut notify, |endpoint, outputs| {
        endpoint.work(machine.memory(), outputs, |device, io| act(device, io).map(|()| is_faultless = true));
        report(guest, outputs);
    });
    is_faultless
}

fn report(guest: &Guest, outputs: &mut Outputs) {
    if let Some(Request::DriverFault(kind, fault)) = outputs.take_request() {
        guest.note_driver_fault(kind, fault);
    }
}

/// The memory of the sender and that of the receiver.
pub struct Between<'a> {
    /// The sender's.
    pub from: &'a GuestRam,
    /// The receiver's.
    pub to: &'a GuestRam,
}

impl Source for Between<'_> {
    fn read(&self, from: u64, into: &mut [u8]) -> Result<(), Outside> {
        self.from.read(Gpa(from), into).map_err(outside)
    }

    fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), Unreachable> {
        self.from.copy_to(Gpa(from), self.to, Gpa(to), bytes).map_err(|error| match error {
            OutsideOf::Source(range) => Unreachable::Sender(outside(range)),
            OutsideOf::Destination(range) => Unreachable::Receiver(outside(range)),
        })
    }
}

fn outside(OutOfRange { gpa, bytes }: OutOfRange) -> Outside {
    Outside { address: gpa.0, bytes }
}
