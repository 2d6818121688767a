// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stations that a trusted port has sent from.
//!
//! Each trusted port has a table of its own, so that no port can fill another's. The CPU that sends by the port writes
//! it; any CPU reads it, without a lock: an entry is a key, and beside it a time that is read between two reads of the
//! key. Of two ports that know a station, the one that it was seen at last has it.

use core::array;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::mac::Mac;

/// The time after which a station that has not sent is aged out (IEEE 802.1Q-2018, table 8-6, recommends 300 s).
pub const AGE_NS: u64 = 300_000_000_000;
/// The most stations of one port.
pub const STATIONS: usize = WAYS * SETS;

const WAYS: usize = 4;
const SETS: usize = 64;
/// The key of an entry that is not used. No station's address is zero.
const FREE: u64 = 0;

/// An address in a VLAN, and the time of its last frame.
#[derive(Debug)]
struct Entry {
    key: AtomicU64,
    seen_ns: AtomicU64,
}

/// The stations of one port.
#[derive(Debug)]
pub struct Learned {
    sets: [[Entry; WAYS]; SETS],
}

impl Default for Learned {
    fn default() -> Self {
        let free = |_| Entry { key: AtomicU64::new(FREE), seen_ns: AtomicU64::new(0) };
        Self { sets: array::from_fn(|_| array::from_fn(free)) }
    }
}

impl Learned {
    /// Returns when a station was seen last; `None` if it is not known or has not sent for too long.
    pub fn find(&self, mac: Mac, vlan: u16, now_ns: u64) -> Option<u64> {
        let key = key(mac, vlan);
        let found = self.set(key).iter().find_map(|entry| entry.read(key))?;
        (!is_old(found, now_ns)).then_some(found)
    }

    /// Notes that a station has sent. Where its set is full, the station that has not sent for the longest is removed.
    pub fn note(&self, mac: Mac, vlan: u16, now_ns: u64) {
        let key = key(mac, vlan);
        let set = self.set(key);
        let known = set.iter().find(|entry| entry.key.load(Ordering::Relaxed) == key);
        let rank = |entry: &&Entry| match entry.key.load(Ordering::Relaxed) {
            FREE => 0,
            _ => entry.seen_ns.load(Ordering::Relaxed),
        };
        let Some(entry) = known.or_else(|| set.iter().min_by_key(rank)) else { return };
        entry.write(key, now_ns);
    }

    /// Returns the number of stations that are known at a time.
    pub fn count(&self, now_ns: u64) -> usize {
        let is_known = |entry: &&Entry| {
            entry.key.load(Ordering::Relaxed) != FREE && !is_old(entry.seen_ns.load(Ordering::Relaxed), now_ns)
        };
        self.sets.iter().flatten().filter(is_known).count()
    }

    fn set(&self, key: u64) -> &[Entry; WAYS] {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the key.
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        &self.sets[(key.wrapping_mul(MULTIPLIER) >> (u64::BITS - SETS.ilog2())) as usize]
    }
}

impl Entry {
    fn read(&self, key: u64) -> Option<u64> {
        if self.key.load(Ordering::Acquire) != key {
            return None;
        }
        let seen_ns = self.seen_ns.load(Ordering::Acquire);
        (self.key.load(Ordering::Acquire) == key).then_some(seen_ns)
    }

    fn write(&self, key: u64, now_ns: u64) {
        if self.key.load(Ordering::Relaxed) != key {
            self.key.store(FREE, Ordering::Release);
        }
        self.seen_ns.store(now_ns, Ordering::Release);
        self.key.store(key, Ordering::Release);
    }
}

fn is_old(seen_ns: u64, now_ns: u64) -> bool {
    now_ns.saturating_sub(seen_ns) > AGE_NS
}

fn key(mac: Mac, vlan: u16) -> u64 {
    u64::from(vlan) << 48 | mac.bits()
}
