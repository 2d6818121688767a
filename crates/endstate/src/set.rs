// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of CPUs, and sets that several CPUs add to at once.

use core::fmt;

use crate::sync::{AtomicU64, Ordering};

/// CPUs that can be distinguished; numbers from here on are not kept.
pub const MAX_CPUS: u32 = 256;
const WORDS: usize = MAX_CPUS as usize / 64;

/// Some CPUs, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuSet {
    words: [u64; WORDS],
}

impl CpuSet {
    /// No CPU.
    pub const EMPTY: Self = Self { words: [0; WORDS] };

    /// Adds one; a number that is too large is not kept.
    pub fn insert(&mut self, cpu: u32) {
        if let Some((word, bit)) = place(cpu) {
            self.words[word] |= bit;
        }
    }

    /// Removes one.
    pub fn remove(&mut self, cpu: u32) {
        if let Some((word, bit)) = place(cpu) {
            self.words[word] &= !bit;
        }
    }

    /// Returns whether a CPU is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        place(cpu).is_some_and(|(word, bit)| self.words[word] & bit != 0)
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.words == [0; WORDS]
    }

    /// Returns how many are in.
    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns the CPUs in it, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        let copy = *self;
        (0..MAX_CPUS).filter(move |&cpu| copy.contains(cpu))
    }

    /// Returns those in this set that are not in `other`.
    pub fn without(&self, other: &Self) -> Self {
        Self { words: core::array::from_fn(|at| self.words[at] & !other.words[at]) }
    }

    /// Returns those in both.
    pub fn common(&self, other: &Self) -> Self {
        Self { words: core::array::from_fn(|at| self.words[at] & other.words[at]) }
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut set = Self::EMPTY;
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

/// As `1, 4, 5`.
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().enumerate().try_for_each(|(at, cpu)| {
            f.write_str(if at == 0 { "" } else { ", " })?;
            write!(f, "{cpu}")
        })
    }
}

fn place(cpu: u32) -> Option<(usize, u64)> {
    (cpu < MAX_CPUS).then_some((cpu as usize / 64, 1 << (cpu % 64)))
}

/// A set that every CPU may add to.
pub(crate) struct SharedSet {
    words: [AtomicU64; WORDS],
}

impl SharedSet {
    crate::sync::const_new! {
        /// No CPU.
        {
            Self { words: [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)] }
        }
    }

    /// Adds one. A CPU that sees it in the set also sees the adder's earlier writes.
    pub(crate) fn insert(&self, cpu: u32) {
        if let Some((word, bit)) = place(cpu) {
            self.words[word].fetch_or(bit, Ordering::AcqRel);
        }
    }

    /// Returns the members of the set.
    pub(crate) fn get(&self) -> CpuSet {
        CpuSet { words: core::array::from_fn(|at| self.words[at].load(Ordering::Acquire)) }
    }
}
