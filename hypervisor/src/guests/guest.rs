// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guests of this host: the configuration of each, its present state, and the way its CPU and the control channel
//! reach each other.
//!
//! Each vCPU has a CPU of its own, and runs there while that CPU is online. The first vCPU's own CPU is the guest's
//! home: it loads the guest and carries out the operator's orders. Other CPUs send orders and read the status. When a
//! CPU leaves the host, its vCPUs and guests move to others. So an order is recorded first, and then the CPU that is
//! home at that moment is woken ([`CpuLocation`]).

mod console;
mod diagnosis;
pub mod figures;
mod location;
mod settings;
mod status;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use bundle::GuestConfig;
use sched::CpuLocation;
use spin::Mutex;
use vm::machine::ExitStatistics;
use watch::lease::Lease;
use wire::{VcpuPerf, VmState};

use self::settings::Settings;
use crate::arch::figures::Figures;
use crate::arch::percpu::{self, BOOT_CPU};
use crate::arch::timer;
use crate::guests::console::Console;
use crate::guests::freeze::PausedRun;
use crate::guests::health::Health;
use crate::guests::staged::Staged;

/// One guest.
pub struct Guest {
    /// The number of its slot, from 0: its place in the bundle, if it was there at boot.
    pub number: u32,
    /// Its configuration as it was when this was made.
    pub config: GuestConfig,
    /// The settings that have changed since.
    pub settings: Settings,
    /// Its number in the record of a hand-over: the number of guests before it.
    rank: AtomicU32,
    /// The exits of each vCPU, by reason.
    pub exits: Vec<Arc<ExitStatistics>>,
    /// The health of its kernel.
    pub health: Health,
    /// Its memory and registers while it is paused.
    pub frozen: PausedRun,
    /// The figures of each vCPU.
    pub figures: Vec<Figures<VcpuPerf>>,
    status: Mutex<Status>,
    /// Its status when it was paused.
    before_pause: Mutex<Option<Status>>,
    orders: AtomicU32,
    /// Its CPU carries out an order.
    carries_out: AtomicBool,
    /// Its devices have something to do.
    wants_poll: AtomicBool,
    /// Its virtio console takes input.
    virtio_takes_input: AtomicBool,
    /// It has ejected a PCI function that it was asked for.
    has_ejected: AtomicBool,
    /// When it may be logged again that it waits for memory.
    next_memory_report_ns: AtomicU64,
    /// The CPU that each vCPU belongs to.
    own: Vec<u32>,
    /// The CPU that each vCPU is on, or was on last.
    placement: Vec<CpuLocation>,
    home: CpuLocation,
    /// The run that is under way, if one is: a `Weak` of an instance, boxed because a static cannot be generic.
    run: Mutex<Option<Box<dyn Any + Send>>>,
    console: Arc<Console>,
    /// The pause for a client that reads it. For the control channel.
    lease: Mutex<Lease>,
    /// The state from which its next run goes on, if it was saved.
    staged: Mutex<Option<Staged>>,
}

/// The state of a guest, since when and why.
#[derive(Clone, Debug)]
pub struct Status {
    /// The state.
    pub state: VmState,
    /// Since when, in nanoseconds of the host's time.
    pub since_ns: u64,
    /// The reason, where there is more to report.
    pub reason: Option<String>,
}

/// An order to a guest's CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum Order {
    Start = 1 << 0,
    Stop = 1 << 1,
    Pause = 1 << 2,
    Resume = 1 << 3,
    Reset = 1 << 4,
    /// Its kernel has failed: apply the operator's policy.
    GiveUp = 1 << 5,
}

impl Order {
    /// In the order in which they are carried out when several wait.
    pub const ALL: [Self; 6] = [Self::Stop, Self::Start, Self::Reset, Self::GiveUp, Self::Pause, Self::Resume];
}

impl Guest {
    /// A guest of this number; its vCPUs are dealt out to these CPUs in turn, from `first` on.
    pub fn new(number: u32, config: GuestConfig, first: usize, cpus: &[u32]) -> Self {
        let vcpus = 0..config.vcpus as usize;
        let place = |vcpu| cpus.get((first + vcpu) % cpus.len().max(1)).copied().unwrap_or(BOOT_CPU);
        Self {
            exits: vcpus.clone().map(|_| Arc::new(ExitStatistics::new())).collect(),
            health: Health::default(),
            frozen: PausedRun::default(),
            figures: vcpus.clone().map(|_| Figures::default()).collect(),
            status: Mutex::new(Status { state: VmState::Stopped, since_ns: timer::uptime_ns(), reason: None }),
            before_pause: Mutex::new(None),
            orders: AtomicU32::new(0),
            carries_out: AtomicBool::new(false),
            wants_poll: AtomicBool::new(false),
            virtio_takes_input: AtomicBool::new(false),
            has_ejected: AtomicBool::new(false),
            next_memory_report_ns: AtomicU64::new(0),
            own: vcpus.clone().map(place).collect(),
            placement: vcpus.map(|vcpu| CpuLocation::new(place(vcpu))).collect(),
            home: CpuLocation::new(place(0)),
            run: Mutex::new(None),
            lease: Mutex::new(Lease::NONE),
            staged: Mutex::new(None),
            console: Console::obtain(),
            settings: Settings::of(&config),
            rank: AtomicU32::new(number),
            config,
            number,
        }
    }

    /// Returns its present configuration.
    pub fn config_now(&self) -> GuestConfig {
        let mut config = self.config.clone();
        self.settings.write_to(&mut config);
        config
    }

    /// Its number in the record of a hand-over.
    pub fn rank(&self) -> u32 {
        self.rank.load(Ordering::Relaxed)
    }

    /// Sets that number. Before anything of it is saved.
    pub fn set_rank(&self, rank: u32) {
        self.rank.store(rank, Ordering::Relaxed);
    }

    /// Returns whether something was ordered that has not been carried out.
    pub fn has_orders(&self) -> bool {
        self.orders.load(Ordering::Acquire) != 0 || self.carries_out.load(Ordering::Acquire)
    }

    /// Returns whether it is being started, or is about to be.
    pub fn is_starting(&self) -> bool {
        self.status().state == VmState::Loading || self.orders.load(Ordering::Acquire) & Order::Start as u32 != 0
    }

    /// Returns whether it has ended, and nothing has been ordered.
    pub fn is_done(&self) -> bool {
        self.status().state.has_ended() && self.orders.load(Ordering::Acquire) == 0
    }

    /// Asks the guest's CPU to do something.
    pub fn order(&self, order: Order) {
        self.orders.fetch_or(order as u32, Ordering::AcqRel);
        percpu::wake(self.home.after_message());
    }

    /// It has ejected a PCI function, which the control channel takes.
    pub fn note_ejected(&self) {
        self.has_ejected.store(true, Ordering::Release);
        percpu::wake(BOOT_CPU);
    }

    /// Returns whether that is so, once.
    pub fn take_has_ejected(&self) -> bool {
        self.has_ejected.load(Ordering::Relaxed) && self.has_ejected.swap(false, Ordering::AcqRel)
    }

    /// The run that is under way: `Instance`, of which the guest itself knows nothing.
    pub fn run<Instance: Send + Sync + 'static>(&self) -> Option<Arc<Instance>> {
        self.run.lock().as_ref()?.downcast_ref::<Weak<Instance>>()?.upgrade()
    }

    /// A run begins.
    pub fn set_run<Instance: Send + Sync + 'static>(&self, run: Weak<Instance>) {
        *self.run.lock() = Some(Box::new(run));
    }

    /// Takes the orders that wait, as a set of [`Order`] bits. For its CPU, which then calls
    /// [`Self::note_carried_out`].
    pub fn take_orders(&self) -> u32 {
        if self.orders.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.carries_out.store(true, Ordering::Release);
        self.orders.swap(0, Ordering::AcqRel)
    }

    /// The orders that were taken have been carried out.
    pub fn note_carried_out(&self) {
        self.carries_out.store(false, Ordering::Release);
    }

    /// The next start goes on from this.
    pub fn stage(&self, staged: Staged) {
        let before = self.staged.lock().replace(staged);
        // Its memory is given back with it: not under the lock.
        drop(before);
    }

    /// Takes what it is to go on from; `None`: from its kernel.
    pub fn take_staged(&self) -> Option<Staged> {
        self.staged.lock().take()
    }

    /// The pause that lasts while a client reads the guest.
    pub fn lease(&self) -> spin::MutexGuard<'_, Lease> {
        self.lease.lock()
    }
}
