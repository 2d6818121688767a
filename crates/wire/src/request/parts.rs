// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of requests.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// Settings of a machine. What is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmSettings {
    /// Its share where several vCPUs have one CPU.
    pub weight: Option<u32>,
    /// The host's action when its kernel has panicked or hangs: a word of `host.toml`.
    pub on_panic: Option<String>,
    /// True if it starts with the host.
    pub autostart: Option<bool>,
    /// Its vCPUs; while it does not run.
    pub vcpus: Option<u32>,
    /// Its memory in bytes; while it does not run.
    pub memory_bytes: Option<u64>,
    /// Percent of one CPU's time that its vCPUs together get at most; 0: as much as there is.
    #[serde(default)]
    pub cap_percent: Option<u32>,
    /// The memory in bytes that it sees, of which it is assured as much as now; while it does not run.
    #[serde(default)]
    pub memory_max_bytes: Option<u64>,
}

impl VmSettings {
    /// Returns them as requests that follow each other. A host that does not know a newer setting passes it over: alone
    /// in a request it leaves nothing to set, which is refused.
    pub fn in_requests(self) -> impl Iterator<Item = Self> {
        let (cap_percent, memory_max_bytes) = (self.cap_percent, self.memory_max_bytes);
        let newer = Self { cap_percent, memory_max_bytes, ..Self::default() };
        let rest = Self { cap_percent: None, memory_max_bytes: None, ..self };
        [newer, rest].into_iter().filter(|settings| *settings != Self::default())
    }
}

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
    /// A file from which machines start. Once all of it is there the host keeps it, by the digits of its SHA-256.
    File,
    /// A piece of the memory of a machine that is to go on from what was saved, for the next
    /// [`crate::RequestBody::VmRestore`].
    Memory,
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

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
