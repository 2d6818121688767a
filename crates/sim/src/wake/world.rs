// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boot CPU's surroundings: time passes only while it acts or waits, and with it everything that is due.

mod hardware;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bringup::state::Phase;
use bringup::{Crew, Entry, GROUP_CPUS, ParkSlot, State};

use super::cpu::{Activity, Cpu, Due, Moment};
use super::machine::Machine;
use super::setup::{Fate, Setup};
use crate::random::Random;

/// Lines of other CPUs that the boot CPU reads per poll at most.
const LINES_PER_POLL: u64 = 64;

pub(super) struct World<'a> {
    crew: Crew<'a>,
    machine: &'a Machine,
    slots: &'a [ParkSlot],
    pub cpus: Vec<Cpu<'a>>,
    due: BinaryHeap<Reverse<(u64, u32)>>,
    now: u64,
    random: Random,
    /// Time at which each core's first thread has, or had, prepared the core.
    core_done: Vec<Option<u64>>,
    /// Time at which each package can serve the next fetch of shared lines.
    package_free: Vec<u64>,
    /// Time at which the next arrival can be counted, group by group.
    group_free: Vec<u64>,
    /// Lines written by others that the boot CPU has not read since.
    unread_lines: u64,
    /// Groups with a count that has changed since: all of them are read every turn.
    unread_groups: Vec<bool>,
    /// Time at which the boot CPU is woken.
    boot_wake: Option<u64>,
}

impl<'a> World<'a> {
    pub fn new(crew: Crew<'a>, machine: &'a Machine, slots: &'a [ParkSlot], setup: &Setup) -> Self {
        let count = setup.cpus;
        let mut random = Random(setup.seed);
        let cpus = (0..count).map(|index| cpu(setup, index, &mut random)).collect();
        let cores = count.div_ceil(machine.threads_per_core);
        let mut core_done = vec![None; cores as usize];
        // The boot CPU's core is up.
        core_done[0] = Some(0);
        Self {
            crew,
            machine,
            slots,
            cpus,
            due: BinaryHeap::new(),
            now: 1,
            random,
            core_done,
            package_free: vec![0; count.div_ceil(machine.threads_per_package) as usize],
            group_free: vec![0; (count as usize).div_ceil(GROUP_CPUS)],
            unread_lines: 0,
            unread_groups: vec![false; (count as usize).div_ceil(GROUP_CPUS)],
            boot_wake: None,
        }
    }

    /// Lets the boot CPU spend time; what falls due meanwhile happens.
    fn spend(&mut self, ticks: u64) {
        self.now += ticks;
        while let Some((time, index)) = self.next_due().filter(|due| due.0 <= self.now) {
            self.due.pop();
            self.happen(index, time);
        }
    }

    /// Returns the next event. Those that were overtaken (the CPU was woken before) are dropped.
    fn next_due(&mut self) -> Option<(u64, u32)> {
        while let Some(&Reverse((time, index))) = self.due.peek() {
            if self.cpus[index as usize].next.is_some_and(|(next, _)| next == time) {
                return Some((time, index));
            }
            self.due.pop();
        }
        None
    }

    /// Delivers an interrupt. A CPU that does not sleep polls anyway.
    fn interrupt_at(&mut self, index: u32, time: u64) {
        let time = time + self.machine.halt_wake;
        if index == 0 {
            self.boot_wake = Some(self.boot_wake.map_or(time, |earlier| earlier.min(time)));
        } else if self.cpus[index as usize].next.is_some_and(|(next, sleeps)| sleeps && time < next) {
            self.schedule(index, time);
        }
    }

    /// Fetches the lines that others wrote since the boot CPU's last poll as they are checked, some lines per poll.
    fn read_lines(&mut self, cells: u64) {
        let cells = self.unread_lines.min(cells);
        self.unread_lines -= cells;
        let groups = self.unread_groups.iter_mut().map(|is_unread| u64::from(core::mem::take(is_unread)));
        let lines = cells + groups.sum::<u64>();
        self.spend(lines * self.machine.line);
    }

    fn happen(&mut self, index: u32, time: u64) {
        let before = self.crew.state(index);
        self.cpus[index as usize].next = None;
        let Cpu { fate, mut skew, mut adjust, .. } = self.cpus[index as usize];
        let Machine { read_clock, line, interrupt, .. } = *self.machine;
        let (skew_now, adjust_now, released, woken) = (&mut skew, &mut adjust, Vec::new(), Vec::new());
        let mut moment =
            Moment { time, spent: 0, read_clock, line, interrupt, skew: skew_now, adjust: adjust_now, released, woken };
        let crew = self.crew;
        let due = self.cpus[index as usize].act(&crew, index, fate, line, &mut moment);
        let (time, released, woken) = (moment.time + moment.spent, moment.released, moment.woken);
        let cpu = &mut self.cpus[index as usize];
        (cpu.skew, cpu.adjust) = (skew, adjust);
        released.into_iter().for_each(|(child, time)| _ = self.release_at(child, time));
        woken.into_iter().for_each(|(target, time)| self.interrupt_at(target, time));
        let after = self.crew.state(index);
        self.unread_lines += u64::from(before != after);
        self.unread_groups[index as usize / GROUP_CPUS] |= before != after && after == State::Online;
        match due {
            Due::Never => {}
            Due::Fetch => self.queue_for_fetch(index, time),
            Due::Initialisation => self.begin_initialisation(index, time),
            Due::In(_) if before != after && after == State::TscSynchronised => self.queue_for_counting(index, time),
            Due::In(ticks) => self.schedule(index, time + ticks.max(1)),
            Due::Sleep(ticks) => {
                self.schedule(index, time + ticks.max(1));
                self.cpus[index as usize].next = Some((time + ticks.max(1), true));
            }
        }
    }

    fn schedule(&mut self, index: u32, time: u64) {
        self.cpus[index as usize].next = Some((time, false));
        self.due.push(Reverse((time, index)));
    }

    /// The first thread of a core prepares the core, too; the other waits for it and then prepares itself.
    fn begin_initialisation(&mut self, index: u32, time: u64) {
        let Machine { first_thread, sibling, .. } = self.machine;
        let core = index as usize % self.core_done.len();
        let is_parked = !self.slots.is_empty();
        let done = match self.core_done[core] {
            // A CPU that was not reset has its core prepared.
            _ if is_parked => time + self.random.within(sibling),
            Some(core_done) => time.max(core_done) + self.random.within(sibling),
            None => time + self.random.within(first_thread),
        };
        if !is_parked && self.core_done[core].is_none() {
            self.core_done[core] = Some(done);
        }
        self.cpus[index as usize].begin_initialisation();
        self.schedule(index, done);
    }

    /// Arrivals of a group queue for its line.
    fn queue_for_counting(&mut self, index: u32, time: u64) {
        let ready = time + self.random.within(&self.machine.going_online);
        let free = &mut self.group_free[index as usize / GROUP_CPUS];
        *free = ready.max(*free) + self.machine.line;
        let turn = *free;
        self.schedule(index, turn);
    }

    /// Woken CPUs of a package queue for the first lines of code, which all of them read.
    fn queue_for_fetch(&mut self, index: u32, time: u64) {
        let core = index as usize % self.core_done.len();
        let package = core * self.machine.threads_per_core as usize / self.machine.threads_per_package as usize;
        let free = &mut self.package_free[package];
        *free = time.max(*free) + self.machine.line;
        let turn = *free;
        self.schedule(index, turn);
    }

    fn wake(&mut self, index: u32, time: u64) {
        let cpu = &mut self.cpus[index as usize];
        if cpu.fate == Fate::DiesIn(Phase::FirstSign) || !matches!(cpu.activity, Activity::Asleep) {
            return;
        }
        cpu.activity = Activity::Waking;
        let late = if let Fate::Sleeps(ticks) = cpu.fate { ticks } else { 0 };
        self.schedule(index, time + late);
    }

    fn reset(&mut self, index: u32) {
        let cpu = &mut self.cpus[index as usize];
        if !matches!(cpu.activity, Activity::Asleep) {
            cpu.resets_while_running += 1;
            cpu.activity = Activity::Asleep;
        }
    }

    fn start(&mut self, index: u32) {
        let cpu = &mut self.cpus[index as usize];
        if cpu.startups_to_lose > 0 {
            cpu.startups_to_lose -= 1;
            return;
        }
        let latency = self.random.within(&self.machine.first_sign);
        self.wake(index, self.now + latency);
    }

    fn release_at(&mut self, index: u32, time: u64) -> bool {
        let Some(slot) = self.slots.get(index as usize) else { return false };
        let entry = Entry { target: 0x1000, root: 0x1000, argument: u64::from(index) };
        let released = slot.release(self.crew.apic_id(index).unwrap_or(u32::MAX), entry);
        if released == Ok(true) && matches!(slot.poll(), bringup::park::ParkOrder::Go(found) if found == entry) {
            self.wake(index, time + self.machine.parked_wake);
        }
        released.is_ok()
    }

    fn others(&self) -> core::ops::Range<u32> {
        1..self.crew.count()
    }
}

fn cpu<'a>(setup: &Setup, index: u32, random: &mut Random) -> Cpu<'a> {
    let fate = setup.fates.iter().find(|(number, _)| *number == index).map_or(Fate::Healthy, |(_, fate)| *fate);
    let drawn = random.within(&(0..=2 * setup.largest_skew)) as i64;
    let skew = if index == 0 { 0 } else { drawn - setup.largest_skew as i64 };
    Cpu {
        fate,
        activity: Activity::Asleep,
        skew,
        // The CPU that wrote to the counter left its trace.
        adjust: setup.has_tsc_adjust.then_some(skew as u64),
        startups_to_lose: if let Fate::LosesStartups(count) = fate { count } else { 0 },
        resets_while_running: 0,
        next: None,
    }
}
