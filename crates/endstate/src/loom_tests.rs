// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every interleaving of CPUs that fail at once, and of one that stops while another polls.

use loom::model;
use loom::sync::Arc;
use loom::thread;

use crate::{CpuSet, EndProgress, Ending, Limits, Role, Step, Stopper, stop_others};

#[test]
fn of_two_that_fail_at_once_one_owns_the_end_and_names_the_other() {
    model(|| {
        let ending = Arc::new(Ending::new());
        let other = {
            let ending = ending.clone();
            thread::spawn(move || {
                let role = ending.claim(1);
                if role != Role::Owner {
                    ending.has_stopped(1);
                }
                role
            })
        };
        let mine = ending.claim(0);
        let other = other.join().unwrap();
        match (mine, other) {
            (Role::Owner, Role::Bystander { owner: 0 }) => {
                assert_eq!(ending.failed_too(), CpuSet::from_iter([1]));
            }
            (Role::Bystander { owner: 1 }, Role::Owner) => {
                assert_eq!(ending.failed_too(), CpuSet::from_iter([0]));
            }
            both => panic!("{both:?}"),
        }
        assert!(ending.owner().is_some());
    });
}

#[test]
fn a_cpu_seen_stopped_is_seen_to_have_failed() {
    model(|| {
        let ending = Arc::new(Ending::new());
        assert_eq!(ending.claim(0), Role::Owner);
        let other = {
            let ending = ending.clone();
            thread::spawn(move || {
                assert_eq!(ending.claim(1), Role::Bystander { owner: 0 });
                ending.has_stopped(1);
            })
        };
        if ending.stopped().contains(1) {
            assert!(ending.failed_too().contains(1), "the report would not name it");
        }
        other.join().unwrap();
    });
}

/// Time passes with every poll; the interrupted CPU is another thread.
struct Polls(u64);

impl Stopper for Polls {
    fn now(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }

    fn pause(&mut self) {
        thread::yield_now();
    }

    fn interrupt(&mut self, _: u32) {}

    fn nmi(&mut self, _: u32) {}
}

#[test]
fn a_cpu_that_answers_at_any_moment_is_counted_once() {
    model(|| {
        let ending = Arc::new(Ending::new());
        let other = {
            let ending = ending.clone();
            thread::spawn(move || ending.has_stopped(1))
        };
        let others = CpuSet::from_iter([1]);
        let call = stop_others(&ending, others, &mut Polls(0), Limits { interrupt_ticks: 2, nmi_ticks: 2, polls: 3 });
        let times = [call.by_interrupt, call.by_nmi, call.unresponsive].iter().filter(|set| set.contains(1)).count();
        assert_eq!(times, 1, "{call:?}");
        other.join().unwrap();
    });
}

#[test]
fn a_step_hangs_when_it_is_found_three_times_and_each_step_is_counted_again() {
    model(|| {
        let progress = EndProgress::new();
        for step in [Step::Stop, Step::Report] {
            progress.enter(step);
            assert_eq!([(); 3].map(|()| progress.note_found()), [false, false, true], "{step:?}");
        }
        progress.fail_step();
        assert!(!progress.note_found(), "the step after one that hangs has its own time");
    });
}

#[test]
fn a_failure_within_the_end_costs_its_step_and_only_the_first_is_printed() {
    model(|| {
        let progress = EndProgress::new();
        progress.enter(Step::Report);
        let first = progress.fail_step();
        assert_eq!((first.failed, first.resume, first.may_print), (Step::Report, Step::Epitaph, true));
        let second = progress.fail_step();
        assert_eq!((second.failed, second.resume, second.may_print), (Step::Epitaph, Step::Flush, false));
        assert_eq!(progress.fail_step().resume, Step::LastWords);
        assert_eq!(progress.fail_step().resume, Step::Notify);
        assert_eq!(progress.fail_step().resume, Step::Rest);
        assert_eq!(progress.fail_step().resume, Step::Leave, "the machine is reset or left all the same");
        for _ in 0..10 {
            progress.fail_step();
        }
        assert_eq!(progress.step(), Step::Halt, "there is an end to it");
    });
}
