// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole ends on a model of CPUs: some answer, some have interrupts masked, some are gone.

use endstate::{Action, Command, CpuSet, Ending, Limits, Rest, Role, Stopper, Watch, pvpanic_event, stop_others};
use proptest::prelude::*;

/// Signals that a modelled CPU answers to.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// An interrupt, after so many ticks.
    Prompt(u64),
    /// An NMI only, after so many ticks.
    Masked(u64),
    /// Nothing.
    Gone,
    /// It has failed and stopped by itself before any CPU asks.
    FailedToo,
}

struct Model<'a> {
    ending: &'a Ending,
    manners: &'a [Manner],
    now: u64,
    /// Times at which CPUs will stop.
    due: Vec<(u64, u32)>,
    interrupted: Vec<u32>,
    woken: Vec<u32>,
    is_clock_broken: bool,
    pauses: u64,
}

impl<'a> Model<'a> {
    fn new(ending: &'a Ending, manners: &'a [Manner]) -> Self {
        let due = Vec::new();
        let (interrupted, woken) = (Vec::new(), Vec::new());
        Self { ending, manners, now: 0, due, interrupted, woken, is_clock_broken: false, pauses: 0 }
    }
}

impl Stopper for Model<'_> {
    fn now(&mut self) -> u64 {
        if self.is_clock_broken { 0 } else { self.now }
    }

    fn pause(&mut self) {
        self.now += 1;
        self.pauses += 1;
        for (_, cpu) in self.due.extract_if(.., |(at, _)| *at <= self.now) {
            self.ending.has_stopped(cpu);
        }
    }

    fn interrupt(&mut self, cpu: u32) {
        self.interrupted.push(cpu);
        if let Manner::Prompt(ticks) = self.manners[cpu as usize - 1] {
            self.due.push((self.now + ticks, cpu));
        }
    }

    fn nmi(&mut self, cpu: u32) {
        self.woken.push(cpu);
        if let Manner::Masked(ticks) = self.manners[cpu as usize - 1] {
            self.due.push((self.now + ticks, cpu));
        }
    }
}

const LIMITS: Limits = Limits { interrupt_ticks: 100, nmi_ticks: 50, polls: 100_000 };

fn manner() -> impl Strategy<Value = Manner> {
    prop_oneof![
        (0_u64..200).prop_map(Manner::Prompt),
        (0_u64..100).prop_map(Manner::Masked),
        Just(Manner::Gone),
        Just(Manner::FailedToo)
    ]
}

proptest! {
    #[test]
    fn everyone_is_stopped_or_named_within_the_time(manners in proptest::collection::vec(manner(), 0..255)) {
        let ending = Ending::new();
        prop_assert_eq!(ending.claim(0), Role::Owner);
        for (at, _) in manners.iter().enumerate().filter(|(_, manner)| matches!(manner, Manner::FailedToo)) {
            prop_assert_eq!(ending.claim(at as u32 + 1), Role::Bystander { owner: 0 });
            ending.has_stopped(at as u32 + 1);
        }
        let others: CpuSet = (1..=manners.len() as u32).collect();
        let mut model = Model::new(&ending, &manners);
        let call = stop_others(&ending, others, &mut model, LIMITS);
        let count = call.by_interrupt.count() + call.by_nmi.count() + call.unresponsive.count();
        prop_assert_eq!(count, others.count(), "each is in one set: {:?}", call);
        prop_assert!(model.now <= LIMITS.interrupt_ticks + LIMITS.nmi_ticks, "it took {}", model.now);
        for (at, manner) in manners.iter().enumerate() {
            let cpu = at as u32 + 1;
            match manner {
                Manner::Prompt(0..=100) => prop_assert!(call.by_interrupt.contains(cpu), "{} {:?}", cpu, call),
                Manner::Masked(0..=50) => prop_assert!(call.by_nmi.contains(cpu), "{} {:?}", cpu, call),
                Manner::Gone => prop_assert!(call.unresponsive.contains(cpu)),
                Manner::FailedToo => {
                    prop_assert!(call.by_interrupt.contains(cpu) && !model.interrupted.contains(&cpu));
                    prop_assert!(ending.failed_too().contains(cpu));
                }
                Manner::Prompt(_) | Manner::Masked(_) => {}
            }
            prop_assert!(!(call.by_interrupt.contains(cpu) && model.woken.contains(&cpu)), "a needless NMI");
        }
    }
}

#[test]
fn a_clock_that_stands_still_ends_the_wait_all_the_same() {
    let ending = Ending::new();
    let manners = [Manner::Gone];
    let mut model = Model { is_clock_broken: true, ..Model::new(&ending, &manners) };
    let limits = Limits { polls: 1000, ..LIMITS };
    let call = stop_others(&ending, [1].into_iter().collect(), &mut model, limits);
    assert!(call.unresponsive.contains(1) && model.pauses <= 2000);
}

#[test]
fn a_single_cpu_waits_for_no_other() {
    let ending = Ending::new();
    let mut model = Model::new(&ending, &[]);
    stop_others(&ending, CpuSet::EMPTY, &mut model, LIMITS);
    assert_eq!(model.pauses, 0);
}

#[test]
fn of_many_threads_that_fail_at_once_one_owns_the_end() {
    for _ in 0..50 {
        let ending = Ending::new();
        let roles: Vec<Role> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|number| {
                    scope.spawn({
                        let ending = &ending;
                        move || ending.claim(number)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("it ran")).collect()
        });
        assert_eq!(roles.iter().filter(|role| **role == Role::Owner).count(), 1);
        let owner = ending.owner().expect("there is one");
        assert_eq!(ending.failed_too(), (0..8).filter(|number| *number != owner).collect());
        assert_eq!(ending.claim(owner), Role::Again);
    }
}

#[test]
fn cpus_are_listed_in_order_and_too_large_a_number_is_not_kept() {
    let set: CpuSet = [255, 3, 64, 256, u32::MAX].into_iter().collect();
    assert_eq!(set.to_string(), "3, 64, 255");
    let ending = Ending::new();
    assert_eq!((ending.claim(u32::MAX - 1), ending.claim(u32::MAX - 1)), (Role::Owner, Role::Again));
}

#[test]
fn only_the_owner_of_the_baseline_spins() {
    assert_eq!(Action::Spin.rest(true), Rest::Spin);
    for (action, is_owner) in [(Action::Spin, false), (Action::Halt, true), (Action::Reboot { after_seconds: 1 }, true)]
    {
        assert_eq!(action.rest(is_owner), Rest::Halt);
    }
}

#[test]
fn every_action_fits_a_number() {
    for action in [
        Action::Spin,
        Action::Halt,
        Action::Exit,
        Action::Reboot { after_seconds: 0 },
        Action::Reboot { after_seconds: 3600 },
    ] {
        assert_eq!(Action::from_number(action.to_number()), action);
    }
}

#[test]
fn the_reboot_is_due_at_its_time_and_not_before() {
    let watch = Watch::new(Action::Reboot { after_seconds: 3 }, 1000, 10);
    assert_eq!(watch.alarm(), Some(1030));
    assert_eq!((watch.due(1029), watch.due(1030)), (None, Some(Command::Reboot)));
    assert_eq!(Watch::new(Action::Halt, 0, 10).due(u64::MAX), None);
    assert_eq!(Watch::new(Action::Reboot { after_seconds: u32::MAX }, 7, u64::MAX).alarm(), Some(u64::MAX));
}

#[test]
fn keys_are_commands_and_noise_is_none() {
    assert_eq!(Command::of_key(b'b'), Some(Command::Reboot));
    assert_eq!((0..=255).filter(|key| Command::of_key(*key).is_some()).count(), 5);
}

#[test]
fn pvpanic_is_written_where_it_is_and_knows_the_event() {
    assert_eq!((pvpanic_event(0x03), pvpanic_event(0x01)), (Some(1), Some(1)));
    assert_eq!((pvpanic_event(0xff), pvpanic_event(0x00), pvpanic_event(0x02)), (None, None, None));
}
