// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton log` and `baton events`.

use clap::Args;

use super::Format;

/// Arguments of `baton log`.
#[derive(Debug, Args)]
#[allow(missing_docs)]
pub struct LogArgs {
    #[command(flatten)]
    pub records: RecordArgs,
    /// The least severe level to show: error, warn, info, debug or trace
    #[arg(long, value_parser = level)]
    pub level: Option<wire::Level>,
    /// Show the remains of the host before this one: after a panic reason, registers, backtrace and end of its log;
    /// after a restart its log
    #[arg(long, conflicts_with = "follow")]
    pub previous: bool,
}

/// Arguments of commands that read records.
#[derive(Debug, Args)]
#[allow(missing_docs)]
pub struct RecordArgs {
    /// Continue with new ones as they come
    #[arg(short, long)]
    pub follow: bool,
    /// Show the wall-clock time (UTC, by this machine's clock) instead of the seconds since the host's boot; --json has
    /// both
    #[arg(short = 'T', long)]
    pub time: bool,
    #[command(flatten)]
    pub format: Format,
}

fn level(word: &str) -> Result<wire::Level, String> {
    use wire::Level::{Debug, Error, Info, Trace, Warn};
    let found = [Error, Warn, Info, Debug, Trace].into_iter().find(|level| level.to_string() == word);
    found.ok_or_else(|| "there are error, warn, info, debug and trace".to_owned())
}
