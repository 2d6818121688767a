// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every course of a preparation up to five slices: drafts that are late, fail or are outdated; an image that needs
//! long, hangs, gives up or gets ready. Whatever comes, guests run in between, and it ends.

use update::platform::Clock;
use update::prepare::{Drafts, Failure, LIMIT_US, LONGEST_PAUSE_US, Preparation, Progress, SLICE_US, SliceEnd, Turn};

mod virtual_time;

use virtual_time::{Time, at};

/// So many microseconds pass.
fn pass(time: &Time, us: u64) {
    time.0.set(time.0.get() + us);
}

const WATCHDOG_US: u64 = 5_000;
/// A CPU of an emulator that was kept away: three of these are more than a preparation may take.
const LONG_US: u64 = 4_000_000;
const MOST_SLICES: usize = 5;

const HANGS: SliceEnd = SliceEnd::Watchdog { was_masked: true };
const ENDS: [SliceEnd; 5] =
    [SliceEnd::Interrupt, SliceEnd::Watchdog { was_masked: false }, HANGS, SliceEnd::Prepared, SliceEnd::Failed];
const LENGTHS: [u64; 2] = [SLICE_US, LONG_US];

/// A preparation whose drafts were saved after so many polls. None of these may have been a slice.
fn after_drafts(time: &Time, polls: u32) -> Preparation {
    let mut preparation = Preparation::begin(WATCHDOG_US, time);
    for _ in 0..polls {
        assert_eq!(preparation.turn(time, || Drafts::Missing), Turn::Wait);
        assert!(preparation.alarm() > time.now(), "the caller is called all the time");
        assert_eq!(preparation.turn(time, || panic!("the drafts are read too often")), Turn::Wait);
        pass(time, preparation.alarm() - time.now());
    }
    assert_eq!(preparation.turn(time, || Drafts::Saved), Turn::Slice);
    preparation
}

/// Goes through slices that end so; returns how it ends, and checks what holds at each of them.
fn run(polls: u32, slices: &[(SliceEnd, u64)]) -> Progress {
    let time = at(0);
    let mut preparation = after_drafts(&time, polls);
    let mut spent = 0;
    for (number, &(end, length)) in (1..).zip(slices) {
        let began = time.now();
        pass(&time, length);
        spent += length;
        let progress = preparation.end_slice(began, time.now(), end, &time);
        assert_eq!((preparation.spent(), preparation.slices()), (spent, number));
        if progress != Progress::UnderWay {
            return progress;
        }
        assert!(spent <= LIMIT_US, "it goes on after {spent} us");
        assert_eq!(preparation.turn(&time, || panic!("drafts are saved once")), Turn::Wait, "no guest runs in between");
        assert_eq!(preparation.alarm() - time.now(), length.min(LONGEST_PAUSE_US), "guests have half of the time");
        pass(&time, preparation.alarm() - time.now());
        assert_eq!(preparation.turn(&time, || panic!("drafts are saved once")), Turn::Slice);
    }
    Progress::UnderWay
}

/// The end that these slices ought to have, and how many of them it takes.
fn expected(slices: &[(SliceEnd, u64)]) -> Progress {
    let ends_at = |at: usize| {
        let spent: u64 = slices[..=at].iter().map(|(_, length)| length).sum();
        let hangs = at > 0 && slices[at - 1].0 == HANGS && slices[at].0 == HANGS;
        match slices[at].0 {
            SliceEnd::Prepared => Some(Progress::Prepared),
            SliceEnd::Failed => Some(Progress::Failed(Failure::Ended)),
            _ if hangs => Some(Progress::Failed(Failure::Hangs)),
            _ if spent > LIMIT_US => Some(Progress::Failed(Failure::TooLong)),
            _ => None,
        }
    };
    (0..slices.len()).find_map(ends_at).unwrap_or(Progress::UnderWay)
}

/// Calls `check` for each course of up to `most` slices that no earlier slice ends.
fn for_each_course(most: usize, slices: &mut Vec<(SliceEnd, u64)>, check: &mut impl FnMut(&[(SliceEnd, u64)])) {
    check(slices);
    if slices.len() == most || expected(slices) != Progress::UnderWay {
        return;
    }
    for (end, length) in ENDS.into_iter().flat_map(|end| LENGTHS.map(|length| (end, length))) {
        slices.push((end, length));
        for_each_course(most, slices, check);
        slices.pop();
    }
}

#[test]
fn every_course_of_slices_ends_as_it_ought_to() {
    let (mut courses, mut seen) = (0, Vec::new());
    for polls in [0, 1, 100] {
        for_each_course(MOST_SLICES, &mut Vec::new(), &mut |slices| {
            let progress = run(polls, slices);
            assert_eq!(progress, expected(slices), "{polls} {slices:?}");
            courses += 1;
            if !seen.contains(&progress) {
                seen.push(progress);
            }
        });
    }
    assert!(courses > 10_000, "{courses}");
    assert_eq!(seen.len(), 5, "{seen:?}");
}

#[test]
fn drafts_that_are_late_fail_or_are_outdated_end_it_before_any_slice() {
    for (drafts, failure) in [(Drafts::Failed, Failure::DraftFailed), (Drafts::Outdated, Failure::GuestsChanged)] {
        for polls in 0..3 {
            let time = at(0);
            let mut preparation = Preparation::begin(WATCHDOG_US, &time);
            for _ in 0..polls {
                assert_eq!(preparation.turn(&time, || Drafts::Missing), Turn::Wait);
                pass(&time, preparation.alarm() - time.now());
            }
            assert_eq!(preparation.turn(&time, || drafts), Turn::Failed(failure));
            assert_eq!((preparation.slices(), preparation.spent()), (0, 0));
        }
    }
    let time = at(0);
    let mut preparation = Preparation::begin(WATCHDOG_US, &time);
    let polls = (0..).take_while(|_| {
        let turn = preparation.turn(&time, || Drafts::Missing);
        pass(&time, preparation.alarm().saturating_sub(time.now()));
        turn == Turn::Wait
    });
    assert!(polls.count() < 10_000);
    assert_eq!(preparation.turn(&time, || Drafts::Missing), Turn::Failed(Failure::DraftsLate));
}
