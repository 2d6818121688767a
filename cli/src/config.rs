// SPDX-License-Identifier: MIT OR Apache-2.0
//! `host.toml`: what a host is to run, as its operator writes it.
//!
//! Reading has two steps: `schema` knows the keys, `check` knows what their values can be. Each message names the file,
//! the item and the mend, because whoever reads it has just made a small mistake and wants to go on.

use std::path::{Path, PathBuf};

use bundle::{OnPanic, Pmu, PmuEvent, WhenDone};
use seal::PublicKey;
use thiserror::Error;

use crate::size::Size;

mod check;
mod schema;
#[cfg(test)]
mod tests;

/// A host and its guests; every path leads to a file that was there when the configuration was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where it was read from.
    pub path: PathBuf,
    /// The machine the host runs on, and how the host behaves.
    pub host: Host,
    /// Who signs images that may replace the host's; none: anybody may have made them.
    pub trusted_keys: Vec<PublicKey>,
    /// The guests, in the file's order.
    pub guests: Vec<Guest>,
}

/// The machine the host runs on, and how the host behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Processors of the lab machine.
    pub cpus: u32,
    /// Memory of the lab machine.
    pub memory: Size,
    /// What the host does when no guest is left running.
    pub when_done: WhenDone,
    /// The host's command line.
    pub cmdline: String,
    /// The image for restarts.
    pub image: Image,
}

/// The image by which a restart replaces the running one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Image {
    /// The one that the host is started with.
    #[default]
    Usual,
    /// Another.
    File(PathBuf),
    /// None: the host cannot be restarted warm.
    None,
}

/// One guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Its name, unique.
    pub name: String,
    /// The file with its kernel.
    pub kernel: PathBuf,
    /// The file with its initial RAM disk.
    pub initrd: Option<PathBuf>,
    /// Files handed over as modules.
    pub modules: Vec<PathBuf>,
    /// Its kernel's command line.
    pub cmdline: String,
    /// Its processors.
    pub vcpus: u32,
    /// Its memory.
    pub memory: Size,
    /// Whether it has the debug-exit port.
    pub debug_exit: bool,
    /// Its share where several virtual processors have one processor.
    pub weight: u32,
    /// What becomes of it when its kernel has panicked or hangs.
    pub on_panic: OnPanic,
    /// Seconds with interrupts off after which it counts as hung; 0: never.
    pub hung_s: u32,
    /// Its performance counters.
    pub pmu: Pmu,
    /// The events that they may count; none named: all.
    pub pmu_events: Option<Vec<PmuEvent>>,
    /// Whether it starts with the host.
    pub autostart: bool,
}

/// Why a configuration cannot be used: the file, the place in it where that is known, what is wrong, and the mend.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{}: {message}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct ConfigError {
    /// The configuration file.
    pub path: PathBuf,
    /// The line in it, counted from 1.
    pub line: Option<usize>,
    /// What is wrong with which item, and the mend.
    pub message: String,
}

impl Config {
    /// Reads and checks the file at `path`. Paths in it are relative to its folder.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let refused = |message| ConfigError { path: path.to_owned(), line: None, message };
        let text = std::fs::read_to_string(path)
            .map_err(|error| refused(format!("cannot be read ({error}); give the path of a host.toml")))?;
        Self::parse(path, &text)
    }

    /// Checks `text` as if it stood in the file at `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let written =
            schema::parse(text).map_err(|(line, message)| ConfigError { path: path.to_owned(), line, message })?;
        check::config(path, written).map_err(|message| ConfigError { path: path.to_owned(), line: None, message })
    }
}
