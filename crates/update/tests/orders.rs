// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the request to the blackout, and what is answered: in virtual time.

use update::finish::{Finishing, Step};
use update::order::{End, Order, Progress};
use update::platform::Clock;
use update::prepare::{self, Drafts, Failure, Preparation, SliceEnd, Turn};

mod virtual_time;

use virtual_time::{Time, at};

/// So many microseconds pass.
fn pass(time: &Time, us: u64) {
    time.0.set(time.0.get() + us);
}

const REQUEST: u32 = 9;
const WATCHDOG_US: u64 = 5_000;

type Polled = Option<(u32, End<&'static str, &'static str>)>;

fn begun(is_dry_run: bool) -> Order<u32, &'static str> {
    let mut order = Order::default();
    assert!(order.is_idle());
    order.begin(REQUEST, is_dry_run, "begun");
    order
}

fn poll(order: &mut Order<u32, &'static str>, time: &Time, progress: Progress<&'static str, &'static str>) -> Polled {
    order.poll(time, |_| progress, || false)
}

fn unchanged(_: &&'static str) -> Option<&'static str> {
    None
}

#[test]
fn a_failed_preparation_is_answered_once() {
    let (time, mut order) = (at(0), begun(false));
    assert_eq!(poll(&mut order, &time, Progress::UnderWay("on")), None);
    assert_eq!((order.is_idle(), order.request(), order.may_depart(&time, true)), (false, None, false));
    assert_eq!(order.alarm(&time, |_| 77), Some(77));
    assert_eq!(poll(&mut order, &time, Progress::Failed("why")), Some((REQUEST, End::Failed("why"))));
    assert!(order.is_idle() && order.alarm(&time, |_| 77).is_none());
    assert_eq!(poll(&mut order, &time, Progress::Failed("again")), None);
}

#[test]
fn a_dry_run_ends_where_the_blackout_would_begin() {
    let (time, mut order) = (at(0), begun(true));
    assert_eq!(poll(&mut order, &time, Progress::Prepared("all")), Some((REQUEST, End::DryRun("all"))));
    assert!(order.is_idle() && order.depart(unchanged).is_none());
}

#[test]
fn the_blackout_waits_for_a_quiet_channel_but_not_for_ever() {
    let (time, mut order) = (at(0), begun(false));
    assert_eq!(poll(&mut order, &time, Progress::Prepared("all")), None);
    assert_eq!((order.request(), order.may_depart(&time, false)), (Some(REQUEST), false));
    assert!(order.may_depart(&time, true));
    assert_eq!(order.alarm(&time, |_| 0), Some(1_000));
    pass(&time, 199_999);
    assert_eq!((order.may_depart(&time, false), order.alarm(&time, |_| 0)), (false, Some(200_000)));
    pass(&time, 1);
    assert!(order.may_depart(&time, false));
    assert_eq!(order.alarm(&time, |_| 0), Some(201_000), "a caller that waits on is not called all the time");
}

#[test]
fn guests_that_have_changed_end_it() {
    let (time, mut order) = (at(0), begun(false));
    assert_eq!(order.depart(unchanged), None);
    assert!(!order.is_idle());
    assert_eq!(poll(&mut order, &time, Progress::Prepared("all")), None);
    assert_eq!(order.depart(|_| Some("paused")), Some(Err((REQUEST, "paused"))));
    assert!(order.is_idle());
}

#[test]
fn a_roll_back_is_answered_once_all_cpus_are_back() {
    let (time, mut order) = (at(0), begun(false));
    assert_eq!(poll(&mut order, &time, Progress::Prepared("all")), None);
    assert_eq!(order.depart(unchanged), Some(Ok("all")));
    assert_eq!((order.request(), order.may_depart(&time, true)), (Some(REQUEST), false));
    pass(&time, 5);
    assert_eq!(order.alarm(&time, |_| 0), Some(1_005));
    let on = |_| Progress::<_, ()>::UnderWay("on");
    assert_eq!(order.poll(&time, on, || false), None);
    assert_eq!(order.poll(&time, on, || true), Some((REQUEST, End::RolledBack)));
    assert_eq!(order.poll(&time, on, || true), None);
}

fn preparation(time: &Time) -> Preparation {
    Preparation::begin(WATCHDOG_US, time)
}

#[test]
fn no_slice_before_all_cpus_have_saved() {
    let time = at(0);
    let mut preparation = preparation(&time);
    assert_eq!(preparation.turn(&time, || Drafts::Missing), Turn::Wait);
    assert_eq!(preparation.alarm(), 250);
    assert_eq!(preparation.turn(&time, || panic!("it is not due")), Turn::Wait);
    pass(&time, 250);
    assert_eq!(preparation.turn(&time, || Drafts::Saved), Turn::Slice);
    assert_eq!(preparation.turn(&time, || panic!("they were saved")), Turn::Slice);
}

#[test]
fn what_is_wrong_with_the_drafts_is_known_before_the_first_slice() {
    let time = at(0);
    let failed = |drafts| preparation(&time).turn(&time, || drafts);
    assert_eq!(failed(Drafts::Failed), Turn::Failed(Failure::DraftFailed));
    assert_eq!(failed(Drafts::Outdated), Turn::Failed(Failure::GuestsChanged));
    let mut late = preparation(&time);
    pass(&time, 2_000_000);
    assert_eq!(late.turn(&time, || Drafts::Missing), Turn::Wait);
    pass(&time, 250);
    assert_eq!(late.turn(&time, || Drafts::Missing), Turn::Failed(Failure::DraftsLate));
}

#[test]
fn guests_have_the_cpu_between_two_slices() {
    let time = at(0);
    let mut preparation = preparation(&time);
    pass(&time, 100);
    assert_eq!(preparation.end_slice(0, 100, SliceEnd::Interrupt, &time), prepare::Progress::UnderWay);
    assert_eq!((preparation.alarm(), preparation.spent(), preparation.slices()), (350, 100, 1));
    assert_eq!(preparation.turn(&time, || Drafts::Saved), Turn::Wait);
    assert_eq!(preparation.end_slice(350, 500, SliceEnd::Prepared, &time), prepare::Progress::Prepared);
    assert_eq!((preparation.spent(), preparation.slices()), (250, 2));
}

#[test]
fn an_image_hangs_if_the_watchdog_finds_it_masked_twice_in_a_row() {
    let time = at(0);
    let mut preparation = preparation(&time);
    let masked = SliceEnd::Watchdog { was_masked: true };
    let mut end = |end| preparation.end_slice(0, WATCHDOG_US, end, &time);
    assert_eq!(end(masked), prepare::Progress::UnderWay);
    assert_eq!(end(SliceEnd::Interrupt), prepare::Progress::UnderWay);
    assert_eq!(end(masked), prepare::Progress::UnderWay);
    assert_eq!(end(SliceEnd::Watchdog { was_masked: false }), prepare::Progress::UnderWay);
    assert_eq!(end(masked), prepare::Progress::UnderWay);
    assert_eq!(end(masked), prepare::Progress::Failed(Failure::Hangs));
}

#[test]
fn an_nmi_long_before_the_watchdogs_time_is_not_its_own() {
    let time = at(0);
    let preparation = preparation(&time);
    assert_eq!(preparation.watchdog_us(), WATCHDOG_US);
    assert!(!preparation.is_watchdog(10, 10 + WATCHDOG_US / 2 - 1, &time));
    assert!(preparation.is_watchdog(10, 10 + WATCHDOG_US / 2, &time));
}

#[test]
fn all_slices_together_have_a_limit() {
    let time = at(0);
    let mut preparation = preparation(&time);
    assert_eq!(preparation.end_slice(0, 10_000_000, SliceEnd::Interrupt, &time), prepare::Progress::UnderWay);
    let over = preparation.end_slice(0, 1, SliceEnd::Interrupt, &time);
    assert_eq!(over, prepare::Progress::Failed(Failure::TooLong));
    assert_eq!(preparation.end_slice(0, 1, SliceEnd::Failed, &time), prepare::Progress::Failed(Failure::Ended));
}

#[test]
fn what_is_left_is_done_step_by_step_with_guests_in_between() {
    let time = at(0);
    let mut finishing = Finishing::begin(&time);
    let mut steps = Vec::new();
    while steps.last() != Some(&Step::Control) {
        assert_eq!(finishing.turn(&time, || true), None);
        assert_eq!(finishing.alarm(), time.now() + 200);
        pass(&time, 200);
        steps.extend(finishing.turn(&time, || true));
        finishing.end_step(&time);
    }
    let host = [Step::Memory, Step::Account, Step::Logs, Step::Iommus, Step::Functions];
    assert_eq!(steps[..5], host);
    assert_eq!(steps[5..], [Step::Console, Step::Consoles, Step::Cpus, Step::Control]);
    assert_eq!(finishing.turn(&time, || true), None);
}

#[test]
fn guests_run_three_times_as_long_as_a_step_took() {
    for (took, rest) in [(10, 200), (1_000, 3_000), (50_000, 20_000)] {
        let time = at(0);
        let mut finishing = Finishing::begin(&time);
        pass(&time, 200);
        assert_eq!(finishing.turn(&time, || true), Some(Step::Memory));
        pass(&time, took);
        finishing.end_step(&time);
        assert_eq!(finishing.alarm(), time.now() + rest);
    }
}

#[test]
fn the_old_images_memory_waits_for_every_cpu_but_not_for_ever() {
    let time = at(0);
    let mut finishing = Finishing::begin(&time);
    pass(&time, 200);
    assert_eq!((finishing.turn(&time, || false), finishing.alarm()), (None, 400));
    pass(&time, 2_000_000 - 201);
    assert_eq!(finishing.turn(&time, || false), None);
    let mut exact = Finishing::begin(&at(0));
    assert_eq!(exact.turn(&at(2_000_000), || false), Some(Step::Memory));
    pass(&time, 200);
    assert_eq!(finishing.turn(&time, || panic!("it is too late to ask")), Some(Step::Memory));
}
