// SPDX-License-Identifier: MIT OR Apache-2.0
use units::{PhysAddr, PhysRange};

use crate::{Found, Pending, Severity, Status};

fn damage(bank: u32) -> Found {
    Found {
        bank,
        status: Status(Status::VALID | u64::from(bank)),
        address: Some(0x1234),
        memory: PhysRange::from_start(PhysAddr(0x1000), 0x1000),
        severity: Severity::Optional,
    }
}

#[test]
fn what_is_put_is_taken_once_and_in_order() {
    let pending = Pending::new();
    let unnamed = Found { address: None, memory: None, severity: Severity::Unsignalled, ..damage(7) };
    assert!(pending.is_empty() && pending.put(&damage(3)) && pending.put(&unnamed) && !pending.is_empty());
    assert_eq!([pending.take(), pending.take(), pending.take()], [Some(damage(3)), Some(unnamed), None]);
}

#[test]
fn what_finds_no_slot_is_refused_and_overwrites_nothing() {
    let pending = Pending::new();
    for round in 0..3 {
        let taken = (0..9).filter(|bank| pending.put(&damage(round * 10 + bank))).count();
        assert_eq!(taken, 8);
        (0..8).for_each(|bank| assert_eq!(pending.take(), Some(damage(round * 10 + bank))));
    }
}
