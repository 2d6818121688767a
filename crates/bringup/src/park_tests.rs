// SPDX-License-Identifier: MIT OR Apache-2.0
use loom::model;
use loom::sync::Arc;
use loom::thread;
use std::string::ToString;

use super::*;

const ENTRY: Entry = Entry { target: 0x1000, root: 0x2000, argument: 7 };
const OTHER: Entry = Entry { target: 0x3000, root: 0x4000, argument: 8 };

#[test]
fn a_parked_cpu_continues_at_its_entry() {
    model(|| {
        let slot = ParkSlot::new();
        assert_eq!(slot.release(3, ENTRY), Err(SlotError::WrongCpu { found: 0 }));
        assert_eq!(slot.release(0, ENTRY), Err(SlotError::NotParked { state: word::EMPTY }));
        slot.park(3);
        assert_eq!(slot.poll(), ParkOrder::Stay);
        assert_eq!(slot.release(3, ENTRY), Ok(true));
        assert_eq!(slot.release(3, OTHER), Ok(false), "a second release changes nothing");
        assert_eq!(slot.poll(), ParkOrder::Go(ENTRY));
        assert_eq!(slot.poll(), ParkOrder::Stay, "once");
        slot.park(3);
        assert_eq!(slot.release(3, OTHER), Ok(true), "and again after the next restart");
    });
}

#[test]
fn a_foreign_slot_or_an_entry_without_sense_is_refused_and_nothing_changes() {
    model(|| {
        let slot = ParkSlot::new();
        slot.park(1);
        for entry in [Entry { target: 0, ..ENTRY }, Entry { root: 0, ..ENTRY }, Entry { root: 0x2001, ..ENTRY }] {
            assert_eq!(slot.release(1, entry), Err(SlotError::BadEntry));
        }
        slot.version.store(2, Ordering::Relaxed);
        assert_eq!(slot.adopt(1), Err(SlotError::BadVersion { found: 2 }));
        slot.magic.store(0, Ordering::Relaxed);
        assert_eq!(slot.adopt(1), Err(SlotError::BadMagic { found: 0 }));
        assert_eq!(slot.poll(), ParkOrder::Stay);
        slot.park(1);
        assert_eq!(slot.adopt(1), Ok(()), "parking makes a valid slot of any bytes");
    });
    let text = SlotError::BadVersion { found: 2 }.to_string();
    assert_eq!(text, "its mailbox has version 2, this image reads 1: reset the host once");
}

#[test]
fn the_condemned_halt() {
    model(|| {
        let slot = ParkSlot::new();
        assert!(!slot.condemn(), "no CPU waits there");
        slot.park(1);
        assert!(slot.condemn());
        assert_eq!(slot.poll(), ParkOrder::Halt);
        assert_eq!(slot.release(1, ENTRY), Err(SlotError::NotParked { state: word::CONDEMNED }));
    });
}

/// Every interleaving of the parent's release, the boot CPU's second release, and the CPU itself.
#[test]
fn of_two_releases_exactly_one_counts_and_its_entry_arrives_whole() {
    model(|| {
        let slot = Arc::new(ParkSlot::new());
        slot.park(1);
        let parent = {
            let slot = slot.clone();
            thread::spawn(move || slot.release(1, ENTRY).unwrap())
        };
        let cpu = {
            let slot = slot.clone();
            thread::spawn(move || slot.poll())
        };
        let is_mine = slot.release(1, OTHER).unwrap();
        let is_parents = parent.join().unwrap();
        assert!(is_mine != is_parents);
        let seen = cpu.join().unwrap();
        let expected = ParkOrder::Go(if is_mine { OTHER } else { ENTRY });
        let later = slot.poll();
        assert!([(expected, ParkOrder::Stay), (ParkOrder::Stay, expected)].contains(&(seen, later)));
    });
}

/// Every interleaving of release, giving up, and the CPU's own poll.
#[test]
fn what_is_condemned_is_never_taken_and_what_is_taken_never_condemned() {
    model(|| {
        let slot = Arc::new(ParkSlot::new());
        slot.park(1);
        let parent = {
            let slot = slot.clone();
            thread::spawn(move || slot.release(1, ENTRY).is_ok_and(|released| released))
        };
        let cpu = {
            let slot = slot.clone();
            thread::spawn(move || slot.poll())
        };
        let is_condemned = slot.condemn();
        let is_released = parent.join().unwrap();
        let seen = cpu.join().unwrap();
        let is_taken = matches!(seen, ParkOrder::Go(_));
        assert!(!(is_taken && is_condemned));
        assert!(is_taken || is_condemned, "given up or gone: never neither, so no CPU waits for ever");
        assert!(!is_taken || is_released);
        assert!(seen != ParkOrder::Halt || is_condemned);
    });
}
