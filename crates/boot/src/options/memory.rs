// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operator's choices for memory: `frames`, `hvo`, `huge-frames`, `bad-memory`.

use core::str::FromStr;

use arrayvec::ArrayVec;
use units::{PAGE_BYTES, PHYSICAL_LIMIT, PhysAddr, PhysRange};

use super::word::{UnknownValue, number};

/// Ranges of bad memory that one command line can name.
pub const MAXIMUM_BAD_RANGES: usize = 8;
const MOST_HUGE_FRAMES: u32 = 1 << 20;

/// Way in which the owner of each frame is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramePolicy {
    /// A record per frame, all written at boot by one CPU: the baseline.
    Eager,
    /// A record per frame, written when a frame changes hands, the rest once guests run, by all CPUs that are
    /// idle.
    Deferred,
    /// A record per extent, made when it is split off.
    Extents,
}

impl FromStr for FramePolicy {
    type Err = UnknownValue;

    fn from_str(value: &str) -> Result<Self, UnknownValue> {
        match value {
            "eager" => Ok(Self::Eager),
            "deferred" => Ok(Self::Deferred),
            "extents" => Ok(Self::Extents),
            _ => Err(UnknownValue),
        }
    }
}

/// Huge frames to be set aside for guests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HugeFrames {
    /// Of 1 GiB.
    pub gib1: u32,
    /// Of 2 MiB.
    pub mib2: u32,
}

impl FromStr for HugeFrames {
    type Err = UnknownValue;

    fn from_str(value: &str) -> Result<Self, UnknownValue> {
        let mut frames = Self::default();
        for part in value.split(',').filter(|_| value != "none") {
            let (size, count) = part.split_once(':').ok_or(UnknownValue)?;
            let count = number(count, 0, MOST_HUGE_FRAMES).ok_or(UnknownValue)?;
            match size {
                "1G" => frames.gib1 = count,
                "2M" => frames.mib2 = count,
                _ => return Err(UnknownValue),
            }
        }
        Ok(frames)
    }
}

/// Memory that must not be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadMemory(ArrayVec<PhysRange, MAXIMUM_BAD_RANGES>);

impl BadMemory {
    /// Returns the ranges.
    pub fn ranges(&self) -> impl Iterator<Item = PhysRange> + '_ {
        self.0.iter().copied()
    }
}

impl FromStr for BadMemory {
    type Err = UnknownValue;

    /// Addresses, each standing for its frame, and ranges of them (last address included), joined by commas.
    fn from_str(value: &str) -> Result<Self, UnknownValue> {
        let mut bad = Self::default();
        for part in value.split(',').filter(|_| value != "none") {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (address(first).ok_or(UnknownValue)?, address(last).ok_or(UnknownValue)?);
            let range = PhysRange::new(PhysAddr(first), PhysAddr(last)).ok_or(UnknownValue)?;
            let end = PhysAddr(range.end().align_down(PAGE_BYTES).0 + PAGE_BYTES);
            let frames = PhysRange::new(range.start().align_down(PAGE_BYTES), end).ok_or(UnknownValue)?;
            bad.0.try_push(frames).map_err(|_| UnknownValue)?;
        }
        Ok(bad)
    }
}

/// `0x` and hexadecimal digits.
fn address(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("0x").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u64::from_str_radix(digits, 16).ok().filter(|address| *address < PHYSICAL_LIMIT)
}
