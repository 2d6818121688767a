// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton timeline`.

use std::path::PathBuf;

use clap::Args;

/// The runs to show, and the formats.
#[derive(Debug, Args)]
pub struct TimelineArgs {
    /// A Linux boot log (the output of dmesg; - is standard input); twice for two side by side
    #[arg(long, value_name = "FILE")]
    pub dmesg: Vec<PathBuf>,
    /// A picture that --json has printed, to show beside the others
    #[arg(long, value_name = "FILE")]
    pub beside: Vec<PathBuf>,
    /// Only the last one of a host's boot and its restarts
    #[arg(long)]
    pub last: bool,
    /// Write a page for a browser: zoom, hover, the ten longest
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a trace for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Print the picture as JSON
    #[arg(long)]
    pub json: bool,
}
