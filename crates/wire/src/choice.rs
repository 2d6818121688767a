// SPDX-License-Identifier: MIT OR Apache-2.0
//! Choices within requests.

use serde::{Deserialize, Serialize};

/// The image that is to replace the running one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpdateBy {
    /// The one in the host's bundle.
    #[default]
    Bundle,
    /// The file that has been sent, or the one in it.
    Upload,
    /// The one that ran before the last update.
    Previous,
}

/// Kind of a file that is sent to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UploadKind {
    /// A boot bundle.
    Bundle,
    /// An image of Baton with its seal.
    Image,
}

/// Choice of the messages that the host sends unasked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Log records.
    pub log: bool,
    /// Events.
    pub events: bool,
    /// True for the console output of every machine.
    pub consoles: bool,
}
