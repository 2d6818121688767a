// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guests of this host: what the bundle states of each, what it does now, and the way its CPU and the control
//! channel reach each other.
//!
//! Each vCPU has a real one of its own, on which it is while that is online. The first one's is the
//! guest's home: it loads the guest and carries out what the operator orders. Everybody else sends orders and reads the
//! status. When a CPU leaves the host, what it held moves to others; so an order is written down first, and then
//! the CPU that is home at that moment is woken ([`Whereabouts`]).

mod console;
mod figures;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bundle::{Bundle, GuestConfig, WhenDone};
use heapless::spsc::{Consumer, Producer, Queue};
use sched::Whereabouts;
use seal::PublicKey;
use spin::{Mutex, Once};
use vm::machine::ExitStatistics;
use watch::lease::Lease;
use wire::{EventKind, VcpuPerf, VmState};

use crate::arch::figures::Figures;
use crate::arch::percpu::{self, BOOT_CPU};
use crate::arch::{cpu, timer};
use crate::guests::events::record;
use crate::guests::freeze::Freezer;
use crate::guests::health::Health;

pub use self::figures::exits_of;

/// Console output that waits for the control channel.
pub const OUTPUT_BYTES: usize = 16 * 1024;
/// Console input that waits for the guest.
pub const INPUT_BYTES: usize = 4 * 1024;
/// Console bytes after which the control channel is woken, whatever the guest does.
const OUTPUT_BATCH: u32 = 4096;
/// At most this often is the control channel woken for a line.
const WAKE_INTERVAL_US: u64 = 5_000;
/// So long after it has found output, the control channel checks once more: for a line that came too soon after another
/// to wake it, of a guest that then never waits.
pub const LOOK_AGAIN_US: u64 = 2 * WAKE_INTERVAL_US;

/// All guests, in the bundle's order.
pub static GUESTS: Once<Guests> = Once::new();

/// The guests and the bundle they come from.
pub struct Guests {
    /// The bundle; its files are the guests' kernels.
    pub bundle: Bundle<'static>,
    /// In the bundle's order.
    pub all: Vec<Guest>,
    /// The signers of the images that may replace this one; none: anybody may have made them.
    pub trusted_keys: Vec<PublicKey>,
}

/// One guest.
pub struct Guest {
    /// Its place in the bundle, from 0.
    pub number: u32,
    /// The bundle's configuration of it.
    pub config: GuestConfig,
    /// The exits of each vCPU, by reason.
    pub exits: Vec<Arc<ExitStatistics>>,
    /// The health of its kernel.
    pub health: Health,
    /// Its memory and registers while it stands still.
    pub frozen: Freezer,
    /// The figures of each vCPU.
    pub figures: Vec<Figures<VcpuPerf>>,
    status: Mutex<Status>,
    /// Its status when it was paused.
    before_pause: Mutex<Option<Status>>,
    orders: AtomicU32,
    /// Something was typed on its console.
    is_typed_on: AtomicBool,
    /// The CPU that each vCPU belongs to.
    own: Vec<u32>,
    /// The CPU that each vCPU is on, or was on last.
    placement: Vec<Whereabouts>,
    home: Whereabouts,
    /// The run that is under way, if one is: a `Weak` of an instance, boxed because a static cannot be generic.
    run: Mutex<Option<Box<dyn Any + Send>>>,
    console: Mutex<GuestConsole>,
    control: Mutex<ControlEnds>,
    /// It is paused for somebody who reads it. For the control channel.
    lease: Mutex<Lease>,
}

/// The state of a guest, since when and why.
#[derive(Clone, Debug)]
pub struct Status {
    /// What.
    pub state: VmState,
    /// Since when, in nanoseconds of the host's time.
    pub since_ns: u64,
    /// Why, where there is more to report.
    pub reason: Option<String>,
}

/// The console as the guest's vCPUs hold it.
struct GuestConsole {
    output: Producer<'static, u8>,
    input: Consumer<'static, u8>,
    /// Input that came before that in `input`.
    typed: VecDeque<u8>,
    /// Output that the control channel has not been informed of.
    waiting: u32,
    last_wake_tsc: u64,
}

/// The console as the control channel holds it.
pub struct ControlEnds {
    /// Output that came before that in `output`.
    backlog: VecDeque<u8>,
    /// The guest's output.
    output: Consumer<'static, u8>,
    /// The operator's input.
    pub input: Producer<'static, u8>,
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
    /// Its kernel is not well: do what the operator wants then.
    GiveUp = 1 << 5,
}

impl Order {
    /// In the order in which they are carried out when several wait.
    pub const ALL: [Self; 6] = [Self::Stop, Self::Start, Self::Reset, Self::GiveUp, Self::Pause, Self::Resume];
}

impl Guests {
    /// The guests of a bundle on a host with these CPUs: vCPUs are dealt out to them in turn.
    pub fn new(bundle: Bundle<'static>, cpus: &[u32]) -> Self {
        let mut next = 0;
        let mut all = Vec::new();
        for config in &bundle.manifest().guests {
            all.push(Guest::new(all.len() as u32, config.clone(), next, cpus));
            next += config.vcpus as usize;
        }
        let trusted_keys = bundle.manifest().host.trusted_keys.iter().copied().map(PublicKey::from_bytes).collect();
        Self { bundle, all, trusted_keys }
    }

    /// The guest of this name.
    pub fn named(&self, name: &str) -> Option<&Guest> {
        self.all.iter().find(|guest| guest.config.name == name)
    }

    /// Returns what the host does when no guest runs any more.
    pub fn when_done(&self) -> WhenDone {
        self.bundle.manifest().host.when_done
    }

    /// Returns whether no guest is being started, or is about to be.
    pub fn is_none_starting(&self) -> bool {
        self.all.iter().all(|guest| {
            guest.status().state != VmState::Loading && guest.orders.load(Ordering::Acquire) & Order::Start as u32 == 0
        })
    }

    /// Returns whether every guest has ended, and nothing has been ordered.
    pub fn are_done(&self) -> bool {
        self.all.iter().all(|guest| {
            let has_ended = matches!(guest.status().state, VmState::Stopped | VmState::Failed);
            has_ended && guest.orders.load(Ordering::Acquire) == 0
        })
    }
}

impl Guest {
    fn new(number: u32, config: GuestConfig, first: usize, cpus: &[u32]) -> Self {
        let (output, output_end) = queue::<OUTPUT_BYTES>();
        let (input, input_end) = queue::<INPUT_BYTES>();
        let vcpus = 0..config.vcpus as usize;
        let place = |vcpu| cpus.get((first + vcpu) % cpus.len().max(1)).copied().unwrap_or(BOOT_CPU);
        Self {
            exits: vcpus.clone().map(|_| Arc::new(ExitStatistics::new())).collect(),
            health: Health::default(),
            frozen: Freezer::default(),
            figures: vcpus.clone().map(|_| Figures::default()).collect(),
            status: Mutex::new(Status { state: VmState::Stopped, since_ns: timer::uptime_ns(), reason: None }),
            before_pause: Mutex::new(None),
            orders: AtomicU32::new(0),
            is_typed_on: AtomicBool::new(false),
            own: vcpus.clone().map(place).collect(),
            placement: vcpus.map(|vcpu| Whereabouts::new(place(vcpu))).collect(),
            home: Whereabouts::new(place(0)),
            run: Mutex::new(None),
            lease: Mutex::new(Lease::NONE),
            console: Mutex::new(GuestConsole {
                output,
                input: input_end,
                typed: VecDeque::new(),
                waiting: 0,
                last_wake_tsc: 0,
            }),
            control: Mutex::new(ControlEnds { backlog: VecDeque::new(), output: output_end, input }),
            config,
            number,
        }
    }

    /// The CPU that starts it and carries out its orders.
    pub fn home(&self) -> u32 {
        self.home.now()
    }

    /// Another CPU is its home from now on. For the one that was.
    pub fn move_home(&self, cpu: u32) {
        self.home.move_to(cpu);
        percpu::wake(cpu);
    }

    /// The CPU to which a virtual one belongs: it is there whenever that is online and has room.
    pub fn own_cpu(&self, vcpu: usize) -> u32 {
        self.own.get(vcpu).copied().unwrap_or(BOOT_CPU)
    }

    /// The CPU that holds a virtual one.
    pub fn cpu_of(&self, vcpu: usize) -> u32 {
        self.placement.get(vcpu).map_or(BOOT_CPU, Whereabouts::now)
    }

    /// The same for a sender that has just left a message for it, and is about to notify that CPU.
    #[inline]
    pub fn cpu_to_tell(&self, vcpu: usize) -> u32 {
        self.placement.get(vcpu).map_or(BOOT_CPU, Whereabouts::after_message)
    }

    /// Returns where all vCPUs are.
    pub fn cpus(&self) -> Vec<u32> {
        (0..self.placement.len()).map(|vcpu| self.cpu_of(vcpu)).collect()
    }

    /// A vCPU is on this CPU from now on.
    pub fn place(&self, vcpu: usize, cpu: u32) {
        if let Some(at) = self.placement.get(vcpu) {
            at.move_to(cpu);
        }
    }

    /// Returns what it does.
    pub fn status(&self) -> Status {
        self.status.lock().clone()
    }

    /// Notes what it does from now on.
    pub fn set_state(&self, state: VmState, reason: Option<String>) {
        *self.status.lock() = Status { state, since_ns: timer::uptime_ns(), reason };
    }

    /// Notes that it has ended, and records the event. A reader that sees the end finds the event recorded: a host that
    /// powers off once all guests have ended does not leave it behind.
    pub fn note_end(&self, state: VmState, reason: Option<String>, event: EventKind) {
        let mut status = self.status.lock();
        *status = Status { state, since_ns: timer::uptime_ns(), reason };
        record(event);
    }

    /// Returns what it does; and, where it is paused, what it did before.
    pub fn status_and_before_pause(&self) -> (Status, Option<Status>) {
        let status = self.status();
        let before = self.before_pause.lock().clone().filter(|_| status.state == VmState::Paused);
        (status, before)
    }

    /// It goes on from what another image has left, where it belongs. Before anybody runs it.
    pub fn adopt_status(&self, status: Status, before_pause: Option<Status>) {
        *self.status.lock() = status;
        *self.before_pause.lock() = before_pause;
    }

    /// Another image has found this place for a vCPU, and had it on that one. Before anybody runs it.
    pub fn set_placement(&mut self, vcpu: usize, own: u32, at: u32) {
        if let (Some(belongs), Some(place)) = (self.own.get_mut(vcpu), self.placement.get(vcpu)) {
            *belongs = own;
            place.move_to(at);
        }
    }

    /// Returns whether something was ordered that has not been carried out.
    pub fn has_orders(&self) -> bool {
        self.orders.load(Ordering::Acquire) != 0
    }

    /// The operator pauses it. How it was is remembered: a panicked guest is none the better for a pause.
    pub fn mark_paused(&self) {
        let before = self.status();
        self.set_state(VmState::Paused, None);
        *self.before_pause.lock() = Some(before);
    }

    /// It goes on as it was before it was paused.
    pub fn mark_resumed(&self) {
        if self.status().state != VmState::Paused {
            return;
        }
        match self.before_pause.lock().take() {
            Some(before) if before.state != VmState::Running => *self.status.lock() = before,
            _ => self.set_state(VmState::Running, None),
        }
    }

    /// Asks the guest's CPU to do something.
    pub fn order(&self, order: Order) {
        self.orders.fetch_or(order as u32, Ordering::AcqRel);
        percpu::wake(self.home.after_message());
    }

    /// Something was typed on its console: its first vCPU is to check.
    pub fn type_on(&self) {
        self.is_typed_on.store(true, Ordering::Release);
        percpu::wake(self.cpu_to_tell(0));
    }

    /// Returns whether that is so, once. For the CPU that holds the first virtual one.
    pub fn take_typed_on(&self) -> bool {
        self.is_typed_on.load(Ordering::Relaxed) && self.is_typed_on.swap(false, Ordering::AcqRel)
    }

    /// The run that is under way: `Instance`, of which the guest itself knows nothing.
    pub fn run<Instance: Send + Sync + 'static>(&self) -> Option<Arc<Instance>> {
        self.run.lock().as_ref()?.downcast_ref::<Weak<Instance>>()?.upgrade()
    }

    /// A run begins.
    pub fn set_run<Instance: Send + Sync + 'static>(&self, run: Weak<Instance>) {
        *self.run.lock() = Some(Box::new(run));
    }

    /// Takes the orders that wait, as a set of [`Order`] bits. For its CPU.
    pub fn take_orders(&self) -> u32 {
        if self.orders.load(Ordering::Relaxed) == 0 { 0 } else { self.orders.swap(0, Ordering::AcqRel) }
    }

    /// It has written a byte to its console. The control channel is notified at most every few milliseconds, at the end
    /// of a line; the rest is flushed when the guest waits.
    pub fn console_output(&self, byte: u8) {
        let mut console = self.console.lock();
        // A byte that finds no room is lost: the guest is never held up by the reader of its console.
        let _ = console.output.enqueue(byte);
        console.waiting += 1;
        let is_line_due = byte == b'\n' && cpu::tsc() - console.last_wake_tsc > timer::us_to_ticks(WAKE_INTERVAL_US);
        if is_line_due || console.waiting >= OUTPUT_BATCH {
            console.wake_control();
        }
    }

    /// Notifies the control channel of output that waits.
    pub fn flush_console(&self) {
        let mut console = self.console.lock();
        if console.waiting > 0 {
            console.wake_control();
        }
    }

    /// The next byte that was typed on its console.
    pub fn console_typed(&self) -> Option<u8> {
        let mut console = self.console.lock();
        console.typed.pop_front().or_else(|| console.input.dequeue())
    }

    /// The pause that lasts for as long as somebody reads the guest.
    pub fn lease(&self) -> spin::MutexGuard<'_, Lease> {
        self.lease.lock()
    }

    /// The console's ends for the control channel.
    pub fn control_ends(&self) -> spin::MutexGuard<'_, ControlEnds> {
        self.control.lock()
    }

    /// The same where nobody holds them: a CPU that was stopped may, for good.
    pub fn free_control_ends(&self) -> Option<spin::MutexGuard<'_, ControlEnds>> {
        self.control.try_lock()
    }
}

impl GuestConsole {
    fn wake_control(&mut self) {
        self.waiting = 0;
        self.last_wake_tsc = cpu::tsc();
        percpu::wake(BOOT_CPU);
    }
}

/// A queue that lives for ever.
fn queue<const BYTES: usize>() -> (Producer<'static, u8>, Consumer<'static, u8>) {
    let queue: &'static mut Queue<u8, BYTES> = Box::leak(Box::new(Queue::new()));
    queue.split()
}
