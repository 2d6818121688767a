// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vCPUs of one CPU: wake those that may go on, choose one, run it, or wait for an interrupt. The layers above make
//! this a loop (`control::cpu_loop`), and have their own work done in between.
//!
//! ```text
//! work ──► wake vCPUs that may go on ──► pick ──► switch in ──► run ──► account
//!   ▲                                   └── none: halt until an interrupt  │
//!   └─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Nothing here is shared: a vCPU is on one CPU, and moves only through the other CPU's place
//! ([`crate::kernel::places`]).

pub mod counting;
mod following;
mod handing_over;
mod homes;
mod leaving;
mod pausing;

use alloc::boxed::Box;
use core::sync::atomic::Ordering;

use pmu::host_time::HostCounters;
use sched::{RunQueue, State, Ticks};

use crate::arch::percpu::PerCpu;
use crate::arch::virt::{Unavailable, Virt};
use crate::arch::{cpu, timer};
use crate::guests::device_interrupts::{self, Checking};
use crate::guests::machine_checks::MachineChecks;
use crate::guests::pci;
use crate::guests::task::{Pause, Task, WokenBy};
use crate::kernel::console::{self, Step};
use crate::kernel::places::{self, SLOTS};
use crate::kernel::storm::Storm;
use crate::kernel::{ledger, trial_pages};

/// Fills of the console's FIFO that guests wait for, where the UART takes them at once.
const FILLS_BETWEEN_GUESTS: u32 = 16;

/// One CPU's vCPUs, and its work for them.
pub struct Executive {
    virt: Result<Virt, Unavailable>,
    me: &'static PerCpu,
    slots: [Option<Box<Task>>; SLOTS],
    queue: RunQueue<SLOTS>,
    /// A bit for each slot with a paused guest.
    paused: u32,
    /// The slot of the vCPU that has its registers loaded in the CPU.
    loaded: Option<usize>,
    storm: Storm,
    machine_checks: MachineChecks,
    /// The host's own counters, while they are wanted.
    counting: Option<Box<Counting>>,
    /// The time at which the layers above are to be called although nothing has come for them.
    alarm_above: Option<u64>,
    has_left: bool,
}

/// The host's own counters on one CPU, while they are wanted.
struct Counting {
    counters: HostCounters,
    /// The time at which they were begun.
    since: u64,
    /// The same in nanoseconds since the host started.
    began_ns: u64,
    /// Ticks that each vCPU had had by then, or when it came.
    came: [u64; SLOTS],
    /// Ticks since then of those that have gone.
    gone: u64,
}

impl Executive {
    /// The calling CPU's, without any vCPU. Without `virt` no guest runs. Not inlined: an update's blackout finds the
    /// very code that the rehearsal has run.
    #[inline(never)]
    pub fn new(virt: Result<Virt, Unavailable>) -> Self {
        let me = PerCpu::current();
        Self {
            virt,
            me,
            slots: [const { None }; SLOTS],
            queue: RunQueue::new(timer::us_to_ticks(1000)),
            paused: 0,
            loaded: None,
            storm: Storm::new(),
            machine_checks: MachineChecks::new(),
            counting: None,
            alarm_above: None,
            has_left: false,
        }
    }

    /// Begins a loop that no other image has begun.
    pub fn begin(&mut self) {
        if self.virt.is_err() {
            places::close(self.me.index);
        }
        self.machine_checks.prepare();
    }

    /// Returns whether there is work to do before the next turn: [`Self::work`], and that of the layers above. Once for
    /// each piece of work.
    #[inline]
    pub fn take_call(&mut self) -> bool {
        let is_due = || self.alarm_above.is_some_and(|alarm| alarm <= cpu::tsc());
        self.me.calls.take_work() || is_due()
    }

    /// Sets when the layers above are to be called although nothing has come for them.
    pub fn set_alarm_above(&mut self, alarm: Option<u64>) {
        self.alarm_above = alarm;
    }

    /// Returns whether the CPU has given away all that it held, and is to leave the host.
    #[inline]
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Runs a vCPU until it waits, its slice is over or there is work; where none can run, waits for an interrupt.
    #[inline]
    pub fn turn(&mut self) {
        self.me.timer_fired.store(false, Ordering::Relaxed);
        let is_behind = self.me.calls.take_choice();
        device_interrupts::deliver_raised(self.me, Checking::All);
        let now = cpu::tsc();
        self.storm.step(now);
        self.machine_checks.step(now);
        self.wake_sleepers(now, is_behind);
        match (self.queue.pick(Ticks(now)), self.virt) {
            (Some(choice), Ok(_)) => self.run_slot(choice.slot, choice.slice_end.map(|end| end.0)),
            _ => self.wait(),
        }
    }

    fn run_slot(&mut self, slot: usize, slice_end: Option<u64>) {
        self.switch_to(slot);
        let others = self.earliest_alarm();
        let others = slice_end.into_iter().chain(others).chain(self.alarm_above).min();
        let Some(task) = &mut self.slots[slot] else { return };
        let pause = task.run(self.me, others);
        let now = Ticks(cpu::tsc());
        self.queue.account(now);
        match pause {
            Pause::Idle => {
                task.instance().guest.flush_console();
                self.queue.block(slot, now);
            }
            Pause::Rest => {
                task.instance().guest.flush_console();
                // It could still run. Once it does again it is shown how long it has waited.
                self.unload();
                self.queue.block(slot, now);
            }
            Pause::Yield => self.queue.yield_now(slot, now),
            Pause::Work | Pause::Alarm => {}
        }
    }

    fn switch_to(&mut self, slot: usize) {
        if self.loaded == Some(slot) {
            return;
        }
        self.unload();
        if let Some(task) = &mut self.slots[slot] {
            task.switch_in(self.queue.stolen_ticks(slot).0);
            self.loaded = Some(slot);
        }
    }

    fn unload(&mut self) {
        let Some(slot) = self.loaded.take() else { return };
        if let Some(task) = &mut self.slots[slot] {
            task.switch_out(self.queue.state(slot) == Some(State::Runnable));
        }
    }

    /// The next alarm of those that sleep. One that waits for the CPU needs none: its timer is checked when its
    /// turn comes, and an alarm in the past would keep the CPU that runs from executing anything.
    #[inline(never)]
    fn earliest_alarm(&self) -> Option<u64> {
        let sleepers = self.queue.blocked().filter_map(|slot| self.slots.get(slot)?.as_ref());
        let alarms = sleepers.filter(|task| !task.instance().is_paused()).filter_map(|task| task.next_alarm());
        alarms.chain(console::next_poll()).chain(self.storm.next_alarm()).chain(self.machine_checks.next_alarm()).min()
    }

    /// Wakes those that may go on: the vCPU to run is chosen right after this. `is_behind`: the running one keeps the
    /// CPU before those that it has something for.
    fn wake_sleepers(&mut self, now: u64, is_behind: bool) {
        if !is_behind && self.me.calls.take_waits_behind() {
            self.queue.make_way(Ticks(now));
        }
        for slot in self.queue.blocked() {
            let Some(Some(task)) = self.slots.get_mut(slot) else { continue };
            if task.instance().is_paused() {
                continue;
            }
            let _ = match task.wakes_by(now) {
                Some(WokenBy::Message) if is_behind => {
                    self.me.calls.note_waits_behind();
                    self.queue.wake_behind(slot, Ticks(now))
                }
                Some(_) => self.queue.wake(slot, Ticks(now)),
                None => continue,
            };
        }
    }

    /// Waits while no vCPU can run: prints the log, checks a PCI function, works on memory that waits for it, or else
    /// halts until an interrupt. After a step interrupts are let in, and the vCPUs that they wake are searched for
    /// again: a kick leaves no flag behind where the CPU holds one vCPU. From that check to the halt they are masked.
    fn wait(&mut self) {
        trial_pages::note_entered(self.me.index);
        if console::step() == Step::More || pci::step_while_idle() || ledger::background::step() {
            return cpu::take_pending_interrupts();
        }
        match self.earliest_alarm().into_iter().chain(self.alarm_above).chain(pci::next_poll()).min() {
            Some(alarm) => timer::set_alarm(alarm),
            None => timer::clear_alarm(),
        }
        match &self.counting {
            _ if self.me.calls.are_any() => {}
            None => self.me.wait_for_interrupt(),
            Some(_) => self.counted_wait(),
        }
    }

    /// Prints a few fills of the UART's FIFO, interrupts open after each. Guests wait meanwhile; the UART interrupts
    /// for the next.
    pub fn print_log(&mut self) {
        for _ in 0..FILLS_BETWEEN_GUESTS {
            match console::step() {
                Step::More => cpu::take_pending_interrupts(),
                Step::Busy => return self.me.calls.for_work(),
                Step::Done | Step::Full => return,
            }
        }
        self.me.calls.for_work();
    }
}
