// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use std::cell::RefCell;

/// A disk in memory, whose writes may be lost.
struct Disk {
    content: RefCell<Vec<u8>>,
    loses_writes: bool,
}

impl Disk {
    fn of(blocks: usize) -> Self {
        Self { content: RefCell::new(vec![0; blocks * BLOCK_BYTES]), loses_writes: false }
    }
}

impl FileExt for Disk {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = self.content.borrow();
        let from = content.get(offset as usize..).unwrap_or_default();
        let count = bytes.len().min(from.len());
        bytes[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if !self.loses_writes {
            self.content.borrow_mut()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        Ok(bytes.len())
    }
}

#[test]
fn what_is_written_is_verified_round_after_round() {
    let disk = Disk::of(3);
    let mut use_of_disk = Use::new(&disk, 3);
    (0..12).for_each(|_| use_of_disk.step());
    let report = use_of_disk.report();
    assert!(report.starts_with("written=6 verified=6 wrong=0 errors=0 slowest_us="), "{report}");
}

#[test]
fn a_write_that_is_lost_is_found_in_a_later_round_too() {
    let mut disk = Disk::of(2);
    let mut use_of_disk = Use::new(&disk, 2);
    (0..4).for_each(|_| use_of_disk.step());
    let steps = use_of_disk.steps;
    disk.loses_writes = true;
    let mut use_of_disk = Use { steps, ..Use::new(&disk, 2) };
    (0..4).for_each(|_| use_of_disk.step());
    let report = use_of_disk.report();
    assert!(report.starts_with("written=2 verified=0 wrong=2 errors=0"), "{report}");
}

#[test]
fn a_disk_that_ends_too_soon_is_an_error() {
    let disk = Disk::of(1);
    let mut use_of_disk = Use { steps: 3, ..Use::new(&disk, 2) };
    use_of_disk.step();
    assert_eq!(use_of_disk.errors, 1);
}

#[test]
fn blocks_in_each_others_places_are_found() {
    let mut memory = vec![0; BLOCK_BYTES];
    fill(&mut memory, 4, 7);
    assert!(holds(&memory, 4, 7));
    assert!(!holds(&memory, 4, 8) && !holds(&memory, 5, 7));
    memory[BLOCK_BYTES - 1] ^= 1;
    assert!(!holds(&memory, 4, 7));
}
