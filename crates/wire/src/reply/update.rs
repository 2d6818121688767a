// SPDX-License-Identifier: MIT OR Apache-2.0
//! Report of an update.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// CPUs with steps in a report: more would not fit a frame.
pub const MAX_UPDATE_STEPS: usize = 52;

/// Report of an update, or of a dry run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UpdateReport {
    /// Nothing was replaced: only tried how far the new image comes.
    pub is_dry_run: bool,
    /// Images that have run since the machine was powered on, the new one included.
    pub generation: u64,
    /// The old image's version.
    pub old_version: String,
    /// The new image's.
    pub new_version: String,
    /// From the request until the new image had prepared everything, machines running.
    pub preparation_ns: u64,
    /// Of that, the time that the new image had a CPU.
    pub preparation_busy_ns: u64,
    /// Number of its slices; 0 where the new image reports, which does not know it.
    pub slices: u32,
    /// Memory that the new image had of its own.
    pub memory_bytes: u64,
    /// From the moment at which the first CPU left its guests until the last one entered them again; 0 in a
    /// trial.
    #[serde(rename = "gap_ns")]
    pub blackout_ns: u64,
    /// Each CPU's steps; none in a dry run. Of more than [`MAX_UPDATE_STEPS`], those that were last to enter
    /// guests.
    #[serde(rename = "processors")]
    pub cpus: Vec<UpdateSteps>,
    /// Build of the old image; empty where that is not known.
    pub old_build: String,
    /// Build of the new image.
    pub new_build: String,
    /// Short form of the key that signed the new image; `None` where it is not signed or not checked.
    #[serde(default)]
    pub signer: Option<String>,
}

/// Times of a CPU's steps in the blackout, in nanoseconds since the order to leave the guests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UpdateSteps {
    /// Its number.
    pub index: u32,
    /// It had left its guests.
    pub left_ns: u64,
    /// It had saved them.
    pub saved_ns: u64,
    /// All had: it went.
    pub gone_ns: u64,
    /// It was in the new image.
    pub arrived_ns: u64,
    /// It had restored them.
    pub restored_ns: u64,
    /// All had: there was no way back.
    pub committed_ns: u64,
    /// It entered a guest, or waited for one.
    pub entered_ns: u64,
}
