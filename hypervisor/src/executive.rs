// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each processor's loop: do the work that others left, choose a virtual processor, run it, wait when there is none.
//!
//! ```text
//! work ──► wake whoever may go on ──► pick ──► switch in ──► run ──► account
//!   ▲                                   └── nobody: halt until an interrupt  │
//!   └─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Nothing here is shared: a virtual processor is on one real one, and moves only through the other's place
//! ([`crate::places`]). The loop ends when the processor has been asked to leave the host and has given all away.

mod counting;
mod going_over;
mod homes;
mod leaving;
mod standstill;
mod taking_over;

use alloc::boxed::Box;
use core::sync::atomic::Ordering;

use bundle::WhenDone;
use sched::{RunQueue, State, Ticks};
use wire::VmState;
use wire::exit_code::ExitCode;

use self::counting::Counting;
use crate::arch::percpu::{BOOT_PROCESSOR, PerCpu};
use crate::arch::virt::{Unavailable, Virt};
use crate::arch::{cpu, timer};
use crate::console::{self, Step};
use crate::control::Control;
use crate::guest::{GUESTS, Guests};
use crate::kernel::ledger;
use crate::machine_checks::MachineChecks;
use crate::pci;
use crate::places::{self, SLOTS};
use crate::processors;
use crate::restart::{self, Restart};
use crate::shutdown;
use crate::storm::Storm;
use crate::task::{Pause, Task};
use crate::update::{self, Settling, candidate};

/// Fills of the console's FIFO that guests wait for, where the UART takes them at once.
const FILLS_BETWEEN_GUESTS: u32 = 16;

/// One processor's loop and what it owns.
pub struct Executive<V: Virt> {
    virt: Result<V, Unavailable>,
    me: &'static PerCpu,
    slots: [Option<Box<Task<V>>>; SLOTS],
    queue: RunQueue<SLOTS>,
    /// A bit for each slot whose guest is paused.
    paused: u32,
    /// Whose registers are in the processor.
    loaded: Option<usize>,
    storm: Storm,
    machine_checks: MachineChecks,
    /// The host's own counters, while they are wanted.
    counting: Option<Box<Counting>>,
    control: Option<Box<Control>>,
    /// What is left to do in an image that has taken over.
    settling: Option<Settling>,
    /// When the control channel, or what settles, is to be looked at again.
    control_look: Option<u64>,
    has_left: bool,
}

impl<V: Virt> Executive<V> {
    /// The loop of the calling processor. Without `virt` no guest runs.
    pub fn new(virt: Result<V, Unavailable>) -> Self {
        let me = PerCpu::current();
        let control = (me.index == BOOT_PROCESSOR).then(Control::start);
        if virt.is_err() {
            places::close(me.index);
        }
        Self { control, ..Self::with(virt, me) }
    }

    /// Not inlined: see [`Self::arrive`].
    #[inline(never)]
    fn with(virt: Result<V, Unavailable>, me: &'static PerCpu) -> Self {
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
            control: None,
            settling: None,
            control_look: None,
            has_left: false,
        }
    }

    /// Runs until the processor leaves the host.
    pub fn run(mut self) {
        self.machine_checks.prepare();
        // Who was sent here before this loop began is here already.
        self.work();
        self.turn();
    }

    fn turn(&mut self) {
        loop {
            let now = cpu::tsc();
            if self.me.work_pending.load(Ordering::Relaxed) || self.control_look.is_some_and(|alarm| alarm <= now) {
                self.me.work_pending.store(false, Ordering::Relaxed);
                self.work();
            } else if console::next_look().is_some() {
                self.print_log();
            }
            if self.has_left {
                return;
            }
            self.me.timer_fired.store(false, Ordering::Relaxed);
            let now = cpu::tsc();
            self.storm.step(now);
            self.machine_checks.step::<V>(now);
            self.wake_sleepers(now);
            match (self.queue.pick(Ticks(now)), self.virt) {
                (Some(choice), Ok(virt)) => self.run_slot(virt, choice.slot, choice.slice_end.map(|end| end.0)),
                _ => self.wait(),
            }
        }
    }

    fn run_slot(&mut self, virt: V, slot: usize, slice_end: Option<u64>) {
        self.switch_to(virt, slot);
        let others = self.earliest_alarm();
        let others = slice_end.into_iter().chain(others).chain(self.control_look).min();
        let Some(task) = &mut self.slots[slot] else { return };
        let pause = task.run(virt, self.me, others);
        let now = Ticks(cpu::tsc());
        self.queue.account(now);
        match pause {
            Pause::Idle | Pause::Rest => {
                task.instance().guest.flush_console();
                self.queue.block(slot, now);
            }
            Pause::Yield => self.queue.yield_now(slot, now),
            Pause::Work | Pause::Alarm => {}
        }
    }

    fn switch_to(&mut self, virt: V, slot: usize) {
        if self.loaded == Some(slot) {
            return;
        }
        self.unload(virt);
        if let Some(task) = &mut self.slots[slot] {
            task.switch_in(virt, self.queue.stolen_ticks(slot).0);
            self.loaded = Some(slot);
        }
    }

    fn unload(&mut self, virt: V) {
        let Some(slot) = self.loaded.take() else { return };
        if let Some(task) = &mut self.slots[slot] {
            task.switch_out(virt, self.queue.state(slot) == Some(State::Runnable));
        }
    }

    /// The next alarm of those that sleep. One that waits for the processor needs none: its timer is looked at when its
    /// turn comes, and an alarm in the past would keep whoever runs from executing anything.
    #[inline(never)]
    fn earliest_alarm(&self) -> Option<u64> {
        let sleepers = self.queue.blocked().filter_map(|slot| self.slots.get(slot)?.as_ref());
        let alarms = sleepers.filter(|task| !task.instance().is_paused()).filter_map(|task| task.next_alarm());
        alarms.chain(console::next_look()).chain(self.storm.next_alarm()).chain(self.machine_checks.next_alarm()).min()
    }

    /// Asks the control channel when it wants to look at its clock: only [`Self::work`] changes that.
    fn note_control_alarm(&mut self) {
        let control = self.control.as_ref().and_then(|control| control.alarm());
        self.control_look = control.into_iter().chain(self.settling.as_ref().map(Settling::alarm)).min();
    }

    fn wake_sleepers(&mut self, now: u64) {
        for slot in self.queue.blocked() {
            if let Some(Some(task)) = self.slots.get_mut(slot)
                && !task.instance().is_paused()
                && task.may_wake(now)
            {
                // Whom to run is chosen right after this.
                let _ = self.queue.wake(slot, Ticks(now));
            }
        }
    }

    /// Nobody can run: prints what is logged, looks at a PCI function, does what memory wants done, or else halts until
    /// an interrupt. After a step interrupts are let in, and the vCPUs that they wake are looked for again: a kick
    /// leaves no flag behind where the processor holds one virtual processor. From that look to the halt they are
    /// masked.
    fn wait(&mut self) {
        candidate::note_entered(self.me.index);
        if console::step() == Step::More || pci::step_while_idle() || ledger::background::step() {
            return cpu::take_pending_interrupts();
        }
        match self.earliest_alarm().into_iter().chain(self.control_look).chain(pci::next_look()).min() {
            Some(alarm) => timer::set_alarm(alarm),
            None => timer::clear_alarm(),
        }
        match &self.counting {
            _ if self.me.work_pending.load(Ordering::Relaxed) => {}
            None => self.me.wait_for_interrupt(),
            Some(_) => self.counted_wait(),
        }
    }

    /// What others have left to do: the log, arrivals, pauses and ends, orders, the control channel.
    fn work(&mut self) {
        if restart::is_parking() {
            self.park();
        }
        if update::is_gap_open() {
            self.go_over();
        }
        if update::is_draft_wanted() {
            self.draft();
        }
        console::log::tell_follower(self.me);
        self.machine_checks.account_for_damage::<V>(self.me);
        let is_homecoming = self.receive();
        self.follow_guests();
        if is_homecoming {
            self.send_home();
        }
        homes::carry_out_orders(self.me.index, self.virt);
        self.type_on();
        self.tell_figures();
        self.follow_counts();
        self.serve_control();
        self.leave_if_asked();
        self.print_log();
        self.note_control_alarm();
    }

    /// Guests wait meanwhile: a few fills of the UART's FIFO, interrupts open after each. It interrupts for the next.
    fn print_log(&mut self) {
        for _ in 0..FILLS_BETWEEN_GUESTS {
            match console::step() {
                Step::More => cpu::take_pending_interrupts(),
                Step::Busy => return self.me.work_pending.store(true, Ordering::Relaxed),
                Step::Done | Step::Full => return,
            }
        }
        self.me.work_pending.store(true, Ordering::Relaxed);
    }

    /// The processor leaves this image; its guests end where they are.
    fn park(&mut self) -> ! {
        self.forget_guests();
        restart::park(self.me.index)
    }

    fn forget_guests(&mut self) {
        if let Ok(virt) = self.virt {
            self.unload(virt);
        }
        if self.me.index != BOOT_PROCESSOR {
            processors::forget_guests();
        }
    }

    /// Takes who has arrived; says whether who belongs elsewhere is to go there.
    fn receive(&mut self) -> bool {
        let (arrivals, is_homecoming) = places::take(self.me.index);
        for task in arrivals {
            match self.virt {
                Ok(virt) => self.take_in(virt, task),
                Err(_) => {
                    places::close(self.me.index);
                    places::vacate(self.me.index, task.weight());
                    places::settle(task, self.me.index);
                }
            }
        }
        self.count();
        is_homecoming
    }

    /// It was not sent without a place, and runs first: whatever has happened to it on the way, it looks.
    fn take_in(&mut self, virt: V, mut task: Box<Task<V>>) {
        // No two have one tag, so that nothing need be flushed between them.
        let Some(slot) = self.slots.iter().take(places::room(&virt)).position(Option::is_none) else {
            places::vacate(self.me.index, task.weight());
            return places::settle(task, self.me.index);
        };
        task.arrive(virt, slot as u32 + 1);
        let now = Ticks(cpu::tsc());
        if let Err(error) = self.queue.insert(slot, task.weight(), now) {
            log::error!("processor {}: {error}", self.me.index);
        }
        if !task.instance().is_paused() {
            let _ = self.queue.wake(slot, now);
        }
        self.slots[slot] = Some(task);
        self.counted_comes(virt, slot);
    }

    /// Virtual processors of guests that end let go; those of paused guests stand still.
    fn follow_guests(&mut self) {
        let Ok(virt) = self.virt else { return };
        for slot in 0..SLOTS {
            let Some(task) = &self.slots[slot] else { continue };
            let now = Ticks(cpu::tsc());
            if task.instance().is_ending() {
                if self.loaded == Some(slot) {
                    self.unload(virt);
                }
                self.queue.remove(slot, now);
                self.paused &= !(1 << slot);
                self.counted_goes(virt, slot);
                if let Some(task) = self.slots[slot].take() {
                    places::vacate(self.me.index, task.weight());
                    task.let_go();
                }
            } else if task.instance().is_paused() {
                self.queue.block(slot, now);
                if self.paused & 1 << slot == 0 {
                    task.publish_registers();
                }
                self.paused |= 1 << slot;
            } else if self.paused & 1 << slot != 0 {
                task.forget_registers();
                // It runs, and waits again if it has to.
                let _ = self.queue.wake(slot, now);
                self.paused &= !(1 << slot);
            }
        }
        self.count();
    }

    /// A kick can be meant for one virtual processor only while there is but one.
    fn count(&self) {
        let holds_one = self.slots.iter().flatten().count() <= 1;
        self.me.holds_one.store(holds_one, Ordering::Relaxed);
    }

    /// First virtual processors look for what has been typed on their guests' consoles.
    fn type_on(&mut self) {
        for task in self.slots.iter_mut().flatten().filter(|task| task.index() == 0) {
            if task.instance().guest.take_typed_on() {
                task.console_input();
            }
        }
    }

    /// Those whose figures are wanted tell them.
    fn tell_figures(&mut self) {
        for (slot, task) in self.slots.iter_mut().enumerate() {
            if let Some(task) = task {
                task.tell_figures(self.queue.times(slot).unwrap_or_default());
            }
        }
    }

    fn serve_control(&mut self) {
        self.settle();
        let Some(control) = &mut self.control else { return };
        // Its time, and what an image on trial takes, is the guests' loss.
        self.queue.account(Ticks(cpu::tsc()));
        let restart = control.serve::<V>();
        self.queue.lose(Ticks(cpu::tsc()));
        if control.is_to_power_off() {
            control.finish();
            shutdown::power_off();
        }
        if control.is_departing() {
            return;
        }
        let is_over = GUESTS.get().is_some_and(Guests::are_done) && control.has_started_guests();
        match restart {
            Some((request, restart)) => {
                self.forget_guests();
                self.restart(request, *restart);
            }
            None if update::is_gap_open() => self.go_over(),
            None if is_over => self.after_guests(),
            None => {}
        }
    }

    /// What an image that has taken over has still to do, a step at a time. After the last one it serves the control
    /// channel.
    fn settle(&mut self) {
        if let Some(settling) = self.settling.take() {
            match settling.step() {
                Ok(settling) => self.settling = Some(settling),
                Err(control) => self.control = Some(control),
            }
        }
    }

    /// Goes to the next image, which answers the request.
    fn restart(&mut self, request: u32, restart: Restart) {
        if let Some(control) = &mut self.control {
            control.hand_over(Some(request), restart);
        }
    }

    /// Every guest has ended. Returns if the host is to stay.
    fn after_guests(&mut self) {
        let (Some(control), Some(guests)) = (&mut self.control, GUESTS.get()) else { return };
        control.finish();
        if let Some(restart) = restart::after_guests() {
            control.hand_over(None, restart);
        }
        leave(guests);
    }
}

/// Every guest has ended: what the bundle says comes next. Returns if the host is to stay.
fn leave(guests: &Guests) {
    let is_failed = guests.all.iter().any(|guest| guest.status().state == VmState::Failed);
    match guests.when_done() {
        WhenDone::Stay => {}
        WhenDone::PowerOff => {
            log::info!("every guest has ended: power off");
            shutdown::power_off();
        }
        WhenDone::DebugExit => {
            let code = if is_failed { ExitCode::Failed } else { ExitCode::Success };
            log::info!("every guest has ended: exit with {code:?}");
            shutdown::debug_exit(code);
        }
    }
}
