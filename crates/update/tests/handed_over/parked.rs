// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that are taken from their mailboxes, and those that are not.

use std::cell::RefCell;

use handover::layout::CpuState::{Lost, Parked};
use update::parked::{LeftOut, Mailboxes, OtherVersion, find, last, left_behind};

use crate::record::{SWITCH_PAGES, Sample, mailbox};

const VERSION: u32 = 1;

/// Mailboxes by address; a CPU waits at each but one.
struct Pages {
    absent: Option<u32>,
    checked: RefCell<Vec<u32>>,
}

impl Mailboxes for Pages {
    type Mailbox = u64;
    type Error = &'static str;

    fn at(&self, address: u64) -> Option<u64> {
        (SWITCH_PAGES..SWITCH_PAGES + 0x1_0000).contains(&address).then_some(address)
    }

    fn check(&self, _: u64, apic_id: u32) -> Result<(), &'static str> {
        self.checked.borrow_mut().push(apic_id);
        if self.absent == Some(apic_id) { Err("it does not wait there") } else { Ok(()) }
    }
}

fn host(cpus: &[(u32, handover::layout::CpuState, u64)]) -> Sample {
    Sample { cpus: cpus.to_vec(), mailbox_version: VERSION, ..Sample::default() }
}

type Found = Result<Vec<Option<(u32, u64)>>, OtherVersion>;

fn found(sample: &Sample, absent: Option<u32>, ids: &[u32]) -> (Found, Vec<(u32, LeftOut<&'static str>)>) {
    let pages = Pages { absent, checked: RefCell::default() };
    let (mut result, mut left_out) = (Ok(Vec::new()), Vec::new());
    sample.with(|record| {
        result = find(record, VERSION, ids, &pages, |apic_id, why| left_out.push((apic_id, why)));
    });
    (result, left_out)
}

#[test]
fn each_parked_cpu_is_found_at_its_place_among_this_machines() {
    let sample = host(&[(4, Parked, mailbox(1)), (2, Parked, mailbox(2)), (6, Lost, mailbox(3))]);
    let (parked, left_out) = found(&sample, None, &[0, 2, 4, 6]);
    let parked = parked.expect("the version is known");
    assert_eq!(parked, [None, Some((2, mailbox(2))), Some((4, mailbox(1))), None]);
    assert_eq!((last(&parked), left_out), (Some(2), vec![]));
    assert_eq!(last::<u64>(&[None, None]), None);
}

#[test]
fn a_cpu_that_is_none_of_this_machines_is_left_out() {
    let sample = host(&[(4, Parked, mailbox(1)), (8, Parked, mailbox(2))]);
    let (parked, left_out) = found(&sample, None, &[0, 4]);
    assert_eq!(parked, Ok(vec![None, Some((4, mailbox(1)))]));
    assert_eq!(left_out, [(8, LeftOut::Unknown)]);
}

#[test]
fn a_mailbox_outside_the_switch_pages_is_never_touched() {
    let sample = host(&[(4, Parked, 0x123_4000)]);
    let (parked, left_out) = found(&sample, None, &[0, 4]);
    assert_eq!((parked, left_out), (Ok(vec![None, None]), vec![(4, LeftOut::Unknown)]));
}

#[test]
fn a_cpu_that_does_not_wait_is_left_out_with_the_reason() {
    let sample = host(&[(2, Parked, mailbox(1)), (4, Parked, mailbox(2))]);
    let (parked, left_out) = found(&sample, Some(2), &[0, 2, 4]);
    assert_eq!(parked, Ok(vec![None, None, Some((4, mailbox(2)))]));
    assert_eq!(left_out, [(2, LeftOut::Absent("it does not wait there"))]);
}

#[test]
fn mailboxes_of_another_version_are_not_read() {
    let sample = Sample { mailbox_version: VERSION + 1, ..host(&[(2, Parked, mailbox(1))]) };
    assert_eq!(found(&sample, None, &[0, 2]), (Err(OtherVersion(VERSION + 1)), vec![]));
}

#[test]
fn parked_cpus_that_are_not_online_are_left_behind() {
    let sample = host(&[(2, Parked, mailbox(1)), (4, Parked, mailbox(2)), (6, Lost, mailbox(3))]);
    sample.with(|record| {
        assert_eq!(left_behind(record, &[0, 4]), [2]);
        assert_eq!(left_behind(record, &[0]), [2, 4]);
        assert_eq!(left_behind(record, &[0, 2, 4]), [] as [u32; 0]);
    });
}
