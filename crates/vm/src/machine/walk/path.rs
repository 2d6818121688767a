// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accessed and dirty bits: a CPU sets them in the entries of a walk before it accesses the page (AMD APM vol. 2,
//! section 5.4.2).

use super::{Purpose, check, walk};
use crate::addr::{AccessSize, Gpa};
use crate::memory::GuestMemory;
use crate::vcpu::{Exception, VcpuState};

pub(crate) const ACCESSED: u64 = 1 << 5;
pub(crate) const DIRTY: u64 = 1 << 6;
/// Entries of a walk at most: five-level tables.
const MOST_ENTRIES: usize = 5;

/// A translated address, and the entries that led to it.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The guest-physical address.
    pub gpa: Gpa,
    entries: [Entry; MOST_ENTRIES],
    count: usize,
}

/// An entry as it was read.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Gpa,
    size: AccessSize,
    value: u64,
}

/// Translates `linear` as [`super::translate`] does, and keeps the entries. The guest's tables are unchanged.
///
/// # Errors
/// The page fault that the guest gets.
pub fn path(
    vcpu: &(impl VcpuState + ?Sized),
    memory: &(impl GuestMemory + ?Sized),
    linear: u64,
    purpose: Purpose,
) -> Result<Path, Exception> {
    let mut entries = [Entry { at: Gpa(0), size: AccessSize::Qword, value: 0 }; MOST_ENTRIES];
    let mut count = 0;
    let found = walk(vcpu, memory, linear, &mut |at, size, value| {
        if let Some(entry) = entries.get_mut(count) {
            *entry = Entry { at, size, value };
            count += 1;
        }
    });
    let gpa = check(vcpu, linear, purpose, found)?;
    Ok(Path { gpa, entries, count })
}

impl Path {
    /// Sets the accessed bit in each entry, for a write the dirty bit in the last one, too. `false` if the guest has
    /// changed an entry since it was read: the address may lead elsewhere by now, and is to be translated again.
    #[must_use]
    pub fn mark(&self, memory: &(impl GuestMemory + ?Sized), purpose: Purpose) -> bool {
        (1..).zip(&self.entries[..self.count]).all(|(number, Entry { at, size, value })| {
            let is_written = purpose == Purpose::Write && number == self.count;
            let marked = value | ACCESSED | if is_written { DIRTY } else { 0 };
            marked == *value || memory.compare_exchange(*at, *size, *value, marked) == Ok(true)
        })
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
