// SPDX-License-Identifier: MIT OR Apache-2.0
//! Updates of a host: those that clients of the service ask for, with their progress, and the times of all that the
//! host's timeline shows, also of those asked for elsewhere.

mod histogram;
mod kept;
mod perform;
mod times;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use wire::{UpdateBy, UpdateReport};

pub use self::histogram::{Buckets, seconds};
pub use self::kept::Sums;
pub use self::perform::{End, NotSent, perform, send};
pub use self::times::{Last, Times};
use crate::clock;

/// The most updates that are kept.
pub const MAX_UPDATES: usize = 64;

/// The update that a client asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct How {
    /// The image: the one in the request's body [default], the one in the host's bundle, or the one before.
    #[serde(default)]
    pub by: By,
    /// Check and rehearse only.
    #[serde(default)]
    pub dry_run: bool,
    /// Go to an image of a lower security version, too, if the host's policy permits that.
    #[serde(default)]
    pub allow_downgrade: bool,
    /// Seconds, 1 to 86,400, after which the host returns to the image before by itself, guests running, unless the
    /// update is confirmed [default: it stays].
    pub confirm_within: Option<u32>,
}

/// The image that is to replace the running one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// An image in the request's body.
    #[default]
    Image,
    /// A bundle in the request's body.
    UploadedBundle,
    /// The one in the host's bundle.
    Bundle,
    /// The one that ran before the last update.
    Previous,
}

impl From<UpdateBy> for By {
    fn from(by: UpdateBy) -> Self {
        match by {
            UpdateBy::Bundle => Self::Bundle,
            UpdateBy::Upload => Self::Image,
            UpdateBy::Previous => Self::Previous,
        }
    }
}

/// Progress of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// It waits for the line.
    Waiting,
    /// The file is being sent.
    Sending,
    /// The host prepares and rehearses it, and then switches.
    Switching,
    /// It was carried out.
    Done,
    /// The host or the service has refused it: nothing has changed.
    Refused,
    /// It has failed; the message states the known facts.
    Failed,
}

impl Step {
    /// Returns whether nothing follows.
    pub fn is_last(self) -> bool {
        matches!(self, Self::Done | Self::Refused | Self::Failed)
    }
}

/// An update that a client of the service has asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Update {
    /// The host.
    pub host: String,
    /// Its number among the host's.
    pub id: u64,
    /// Name of the client that has asked for it.
    pub who: String,
    /// The time at which it was asked for: milliseconds since 1970.
    pub asked_ms: u64,
    /// The image.
    pub by: By,
    /// True if nothing is to be replaced.
    pub is_dry_run: bool,
    /// Seconds after which the host returns to the image before unless the update is confirmed.
    pub confirm_within: Option<u32>,
    /// Its progress.
    pub step: Step,
    /// Bytes of the file that the host has.
    pub sent_bytes: u64,
    /// Bytes of the whole file.
    pub total_bytes: u64,
    /// The reason for its end.
    pub message: Option<String>,
    /// The host's report.
    #[serde(default, deserialize_with = "kept::readable")]
    pub report: Option<UpdateReport>,
}

/// All updates of a host.
#[derive(Debug, Default)]
pub struct Updates {
    /// The last updates that clients have asked for.
    pub asked: VecDeque<Update>,
    /// Sums over all.
    pub sums: Sums,
    last_id: u64,
}

impl Updates {
    /// Notes an update that a client asks for.
    ///
    /// # Errors
    /// One is under way; its number.
    pub fn begin(&mut self, host: &str, who: &str, how: How, total_bytes: u64) -> Result<Update, u64> {
        if let Some(current) = self.under_way() {
            return Err(current.id);
        }
        self.last_id += 1;
        let update = Update {
            host: host.to_owned(),
            id: self.last_id,
            who: who.to_owned(),
            asked_ms: clock::now_ms(),
            by: how.by,
            is_dry_run: how.dry_run,
            confirm_within: how.confirm_within,
            step: Step::Waiting,
            sent_bytes: 0,
            total_bytes,
            message: None,
            report: None,
        };
        if self.asked.len() >= MAX_UPDATES {
            self.asked.pop_front();
        }
        self.asked.push_back(update.clone());
        Ok(update)
    }

    /// Returns the update that is under way.
    pub fn under_way(&self) -> Option<&Update> {
        self.asked.back().filter(|update| !update.step.is_last())
    }

    /// Changes the update that is under way, if it is this one. Returns it as it is now.
    pub fn advance(&mut self, id: u64, change: impl FnOnce(&mut Update)) -> Option<Update> {
        let update = self.asked.back_mut().filter(|update| update.id == id && !update.step.is_last())?;
        change(update);
        if update.step.is_last() {
            *self.sums.ends.entry(update.step).or_default() += 1;
        }
        Some(update.clone())
    }
}
