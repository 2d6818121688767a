// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's timeline.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// A page of one CPU's timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelinePage {
    /// Its owner.
    #[serde(rename = "processor")]
    pub cpu: u32,
    /// Ticks of the time stamp counter in a second; 0 while that is not known.
    pub ticks_per_second: u64,
    /// In the order in which they were recorded.
    pub points: Vec<TimelinePoint>,
    /// Number of records before and between them that are gone.
    pub lost: u64,
    /// Start of the next page; `None` after the last one.
    pub next: Option<TimelinePlace>,
}

/// Something that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelinePoint {
    /// Time in ticks of the time stamp counter.
    pub ticks: u64,
    /// Its name: a number of the crate `timeline`, which a tool of another release may not know.
    pub name: u16,
    /// 1 an instant, 2 the beginning of a span, 3 the end of one.
    pub kind: u8,
    /// Its argument; the name gives the meaning.
    pub argument: u32,
}

/// A place in the timelines of all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TimelinePlace {
    /// In this CPU's, or the next one's that has any.
    #[serde(rename = "processor")]
    pub cpu: u32,
    /// The record's number.
    pub number: u64,
}
