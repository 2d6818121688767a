// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every interleaving of two CPUs that switch over, and of one that loses patience.

use loom::sync::Arc;
use loom::thread;

use super::*;

fn begun(members: u32) -> Arc<Takeover> {
    let takeover = Arc::new(Takeover::new());
    takeover.begin(members, 9);
    takeover
}

#[test]
fn no_cpu_saves_before_all_have_stopped_and_their_state_is_seen() {
    loom::model(|| {
        let (takeover, left) = (begun(2), Arc::new(AtomicU32::new(0)));
        let (other, others) = (takeover.clone(), left.clone());
        let other = thread::spawn(move || {
            others.store(7, Ordering::Relaxed);
            other.has_stopped();
        });
        takeover.has_stopped();
        if takeover.may_save() == Way::Go {
            assert_eq!(left.load(Ordering::Relaxed), 7);
        }
        other.join().unwrap();
        assert_eq!((takeover.may_save(), takeover.may_go()), (Way::Go, Way::Wait));
    });
}

#[test]
fn no_cpu_goes_on_before_all_have_come_so_far() {
    loom::model(|| {
        let takeover = begun(2);
        assert_eq!(takeover.members(), 2);
        takeover.has_stopped();
        assert_eq!(takeover.may_save(), Way::Wait);
        takeover.has_stopped();
        takeover.has_saved();
        assert_eq!((takeover.may_save(), takeover.may_go()), (Way::Go, Way::Wait));
        takeover.has_saved();
        assert_eq!(takeover.may_go(), Way::Go);
        assert!(takeover.is_back() && !takeover.are_all_back());
        assert!(!takeover.is_back() && takeover.are_all_back());
    });
}

/// Every CPU draws the same conclusion from the verdict.
#[test]
fn all_go_or_all_go_back() {
    loom::model(|| {
        let takeover = begun(2);
        let other = takeover.clone();
        let other = thread::spawn(move || match other.has_restored() {
            // It loses patience.
            Verdict::Open => other.roll_back(1),
            decided => decided,
        });
        let mine = match takeover.has_restored() {
            Verdict::Open => takeover.roll_back(0),
            decided => decided,
        };
        let others = other.join().unwrap();
        assert_ne!(mine, Verdict::Open);
        assert_eq!(mine, others);
        assert_eq!(takeover.blamed().is_some(), mine == Verdict::RolledBack);
    });
}

#[test]
fn a_failure_beside_the_last_one_leaves_one_verdict() {
    loom::model(|| {
        let takeover = begun(1);
        let other = takeover.clone();
        let judge = thread::spawn(move || other.roll_back(7));
        let mine = takeover.has_restored();
        let judged = judge.join().unwrap();
        assert_ne!(mine, Verdict::Open);
        assert_eq!(mine, judged);
        assert_eq!(takeover.blamed(), (mine == Verdict::RolledBack).then_some(7));
    });
}

#[test]
fn who_has_not_left_stays_after_a_roll_back() {
    loom::model(|| {
        let takeover = begun(2);
        takeover.has_stopped();
        assert_eq!((takeover.may_save(), takeover.deadline()), (Way::Wait, 9));
        assert_eq!(takeover.roll_back(0), Verdict::RolledBack);
        assert_eq!((takeover.may_save(), takeover.may_go()), (Way::Stay, Way::Stay));
        assert_eq!((takeover.is_back(), takeover.is_back(), takeover.are_all_back()), (true, false, true));
    });
}

#[test]
fn before_it_has_begun_no_cpu_goes() {
    loom::model(|| assert_eq!(Takeover::new().may_save(), Way::Stay));
}
