// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest that has been loaded: what its vCPUs share, from power-on to its end.

mod config;
pub mod ending;
mod frozen;
mod loading;
mod restoring;
mod saved;
pub mod saving;

use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use demand::Hiding;
use spin::Mutex;
use switch::Occasion;
use vm::machine::Machine;
use wire::VcpuRegisters;

use self::ending::{Ending, finish};
use self::saving::Saving;
use crate::arch::guest_memory::GuestRam;
use crate::arch::virt::Space;
use crate::arch::{machine_check, percpu};
use crate::guests::assigned;
use crate::guests::assigned::functions::Functions;
use crate::guests::balloon;
use crate::guests::disks::{self, Disk};
use crate::guests::forwarding::{Next, Run};
use crate::guests::guest::Guest;
use crate::guests::networks::{self, Nic};
use crate::guests::sockets::{self, Socket};

/// One run of a guest. Its memory is given back when the last vCPU has let go of it.
pub struct Instance {
    /// The guest.
    pub guest: Arc<Guest>,
    /// Its machine.
    pub machine: Machine<GuestRam>,
    is_paused: AtomicBool,
    is_ending: AtomicBool,
    ending: Mutex<Option<Ending>>,
    /// vCPUs that have not let go yet.
    tasks_left: AtomicU32,
    /// Of each vCPU, while it stands still.
    pub registers: Vec<Mutex<Option<VcpuRegisters>>>,
    /// Its state, as far as a client has asked for it.
    pub saving: Saving,
    /// The vCPUs' control blocks point into it.
    space: Arc<Space>,
    /// Physical functions on its bus.
    functions: Functions,
    /// Network devices on its bus.
    nics: Vec<Nic>,
    /// The socket device on its bus.
    socket: Option<Socket>,
    /// Disks on its bus with their storage in another guest.
    disks: Vec<Disk>,
    /// The balloon on its bus.
    balloon: Option<balloon::Device>,
    /// For each vCPU, the change of the space since which it has flushed its TLB.
    flushed: Vec<AtomicU64>,
}

impl Instance {
    /// Returns where its nested page tables begin.
    pub fn space_root(&self) -> u64 {
        self.space.root()
    }

    /// The physical functions on its bus.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Returns whether there is work without a notification of its guest: the answers of its disks' servers.
    pub fn has_disks(&self) -> bool {
        !self.disks.is_empty()
    }

    /// Returns whether there is work when its devices are polled: that of disks, or memory that its balloon has
    /// released.
    pub fn works_when_polled(&self) -> bool {
        self.has_disks() || self.balloon.is_some()
    }

    /// Forwards frames and packets that its guest has sent, and works for its disks, in a vCPU's time, `until` others
    /// want the CPU.
    pub fn send(&self, vcpu: usize, occasion: Occasion, until: u64) -> Next {
        let frames = networks::send(self, vcpu, &self.nics, occasion, until);
        let packets = self.socket.as_ref().and_then(|socket| sockets::send(self, vcpu, socket, until));
        let requests = disks::work(self, vcpu, &self.disks, until);
        let freed = self.balloon.as_ref().and_then(|device| balloon::work(self, vcpu, device));
        Next { others: packets.into_iter().chain(requests).chain(freed).min(), ..frames }
    }

    /// Its address space.
    pub fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// Resumes the functions, once this image drives the IOMMUs, and notes those that the guest has ejected.
    pub fn resume_functions(&self) {
        assigned::resume(&self.guest, &self.machine, &self.functions);
        self.guest.note_ejected();
    }

    /// Returns whether each vCPU has flushed its TLB since a change of the address space.
    pub fn all_know_change(&self, change: u64) -> bool {
        self.flushed.iter().all(|flushed| flushed.load(Ordering::Acquire) >= change)
    }

    /// How often something was taken out of its address space.
    #[inline]
    pub fn space_changes(&self) -> u64 {
        self.space.changes()
    }

    /// A vCPU has flushed its TLB since so many changes.
    #[cold]
    pub fn note_flushed(&self, vcpu: usize, changes: u64) {
        if let Some(flushed) = self.flushed.get(vcpu) {
            flushed.store(changes, Ordering::Release);
        }
        let all = self.change_known_to_all();
        self.space.reclaim(all);
        self.release_hidden(all);
    }

    /// The latest change of the address space since which each vCPU has flushed its TLB.
    fn change_known_to_all(&self) -> u64 {
        self.flushed.iter().map(|flushed| flushed.load(Ordering::Acquire)).min().unwrap_or(0)
    }

    /// An update is over: its memory on demand changes again.
    pub fn settle_memory(&self) {
        let Some(blocks) = self.machine.memory().blocks() else { return };
        blocks.settle();
        self.release_hidden(self.change_known_to_all());
        // Its balloon goes on, also where nothing was hidden.
        self.guest.poll_devices();
    }

    /// Releases blocks that the guest has freed, and lets its balloon know.
    fn release_hidden(&self, known_change: u64) {
        let Some(blocks) = self.machine.memory().blocks().filter(|blocks| blocks.has_hidden()) else { return };
        if blocks.release_hidden(known_change) == Hiding::Done {
            self.guest.poll_devices();
        }
    }

    /// Pauses it from the moment at which it would go on.
    pub fn begin_paused(&self) {
        self.is_paused.store(true, Ordering::Release);
    }

    /// Ends the guest: every vCPU leaves at its next check. The first reason counts.
    pub fn end(&self, ending: Ending) {
        self.ending.lock().get_or_insert(ending);
        self.is_ending.store(true, Ordering::Release);
        self.guest.frozen.release();
        self.wake_cpus();
    }

    /// Returns whether it is ending.
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }

    /// Returns whether its vCPUs are to be paused.
    pub fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Acquire)
    }

    /// Pauses or resumes its vCPUs.
    pub fn set_paused(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::Release);
        self.wake_cpus();
    }

    /// A machine check has interrupted one of its vCPUs, on the calling CPU. Whether it has ended the guest; what it
    /// was about is left for the CPU's loop.
    #[cold]
    pub fn is_ended_by_machine_check(&self) -> bool {
        match machine_check::in_guest() {
            Ok(true) => {
                let reason = "a machine check interrupted it where it cannot resume; the log names the error";
                self.end(Ending::Damaged(reason.to_string()));
                true
            }
            Ok(false) => false,
            Err(fatal) => panic!("{fatal}"),
        }
    }

    /// Its devices receive from here on.
    pub fn plug(self: &Arc<Self>) {
        networks::plug(self, &self.nics);
        sockets::plug(self, self.socket.as_ref());
    }

    /// It may have been on another host: networks are informed of where it is.
    pub fn announce(&self) {
        networks::announce(&self.nics);
    }

    /// Its devices receive nothing any more. The other ends of its connections are reset.
    fn unplug(&self) {
        networks::unplug(&self.nics);
        sockets::unplug(self.socket.as_ref());
    }

    /// It has no connections to others any more.
    fn disconnect(&self) {
        self.unplug();
        disks::close(&self.disks);
    }

    fn wake_cpus(&self) {
        (0..self.guest.config.vcpus as usize).for_each(|vcpu| percpu::wake(self.guest.cpu_to_notify(vcpu)));
    }

    /// A vCPU leaves the run. After the last one the guest has ended.
    pub fn let_go(instance: Arc<Self>) {
        if instance.tasks_left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let guest = instance.guest.clone();
        instance.disconnect();
        instance.withdraw_functions();
        let ending = instance.ending.lock().take().unwrap_or(Ending::Stopped);
        guest.health.reset();
        // The memory goes before the guest counts as ended: the next start then finds it free.
        drop(instance);
        finish(&guest, ending);
    }

    /// Withdraws its functions, which reach nothing any more. Where that is not certain its memory gets no other owner.
    pub fn withdraw_functions(&self) {
        if !assigned::withdraw_all(&self.guest, &self.functions) {
            self.machine.memory().keep_for_good();
        }
    }
}

impl Run for Instance {
    fn guest(&self) -> &Guest {
        &self.guest
    }

    fn machine(&self) -> &Machine<GuestRam> {
        &self.machine
    }
}
