// SPDX-License-Identifier: MIT OR Apache-2.0
//! PEBS with adaptive records (Intel SDM vol. 3, section 20.9.2): what a counter that overflows has written.
//!
//! The model is exact where a CPU is not: the record is of the very occurrence that overflowed, and none is
//! pending.

use pmu::not_yet_wired::pebs::{Group, ds, record_bytes};

use super::activity::Activity;
use super::lbr::LbrRing;
use super::register::{Register, WIDTH_BITS};

/// Memory as the software that runs sees it, by linear address, 8 bytes at a time. `None` is the user's page fault.
pub trait Linear {
    /// Reads eight bytes.
    fn read(&mut self, address: u64) -> Option<u64>;
    /// Writes eight bytes.
    fn write(&mut self, address: u64, value: u64) -> Option<()>;
}

/// The registers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct PebsUnit {
    pub enable: u64,
    pub data_config: u64,
    pub ds_area: u64,
    pub is_full: bool,
    pub interrupts: u64,
}

/// Content of one counter's records.
pub(super) struct Source<'a> {
    pub bit: usize,
    pub is_adaptive: bool,
    pub activity: &'a Activity<'a>,
    pub branches: &'a LbrRing,
}

impl PebsUnit {
    /// Advances a counter, and writes a record each time it overflows.
    pub fn count(&mut self, counter: &mut Register, mut more: u64, source: &Source<'_>, memory: &mut impl Linear) {
        let full = 1 << WIDTH_BITS;
        while more >= full - counter.value {
            more -= full - counter.value;
            // A fault is the user's: its record is lost, and the counter begins with zero.
            let reset = self.record(source, memory).unwrap_or(0);
            counter.value = reset & (full - 1);
        }
        counter.value += more;
    }

    fn record(&mut self, source: &Source<'_>, memory: &mut impl Linear) -> Option<u64> {
        let area = |offset: u64| self.ds_area.checked_add(offset);
        let index = memory.read(area(ds::INDEX)?)?;
        let groups = if source.is_adaptive { self.data_config } else { 0 };
        let bytes = record_bytes(groups);
        let end = index.checked_add(bytes)?;
        if end <= memory.read(area(ds::MAXIMUM)?)? {
            for (at, word) in words(groups, bytes, source).into_iter().enumerate() {
                memory.write(index + 8 * at as u64, word)?;
            }
            memory.write(area(ds::INDEX)?, end)?;
            if end >= memory.read(area(ds::THRESHOLD)?)? {
                self.is_full = true;
                self.interrupts += 1;
            }
        }
        let reset = match source.bit.checked_sub(32) {
            None => ds::GENERAL_RESET + 8 * source.bit as u64,
            Some(fixed) => ds::FIXED_RESET + 8 * fixed as u64,
        };
        memory.read(area(reset)?)
    }
}

/// Returns a record. Of what the model does not know (registers, the access) there are zeros.
fn words(groups: u64, bytes: u64, source: &Source<'_>) -> Vec<u64> {
    let contents = groups & (Group::MEMORY | Group::REGISTERS | Group::VECTORS | Group::BRANCHES | Group::BRANCH_COUNT);
    let mut words = vec![contents | bytes << 48, source.activity.address, 1 << source.bit, source.activity.stamp];
    if groups & Group::BRANCHES == 0 {
        words.resize(bytes as usize / 8, 0);
        return words;
    }
    let count = ((groups & Group::BRANCH_COUNT) >> 24) as usize + 1;
    words.resize(bytes as usize / 8 - 3 * count, 0);
    for at in 0..count {
        words.extend(source.branches.entry(at));
    }
    words
}
