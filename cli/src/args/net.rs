// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton net`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Format;
use super::perf::seconds;
use crate::client::MAX_SNAP_BYTES;

/// A command for networks between guests.
#[derive(Debug, Subcommand)]
pub enum NetCommand {
    /// List the ports of all networks, with the frames and bytes that have passed
    List(Format),
    /// Show one network: its ports, their VLANs and rights, and the frames that were dropped, by reason
    Show(NetShow),
    /// Capture a network's frames in a file that Wireshark and tcpdump read (pcapng)
    Capture(NetCapture),
}

/// The arguments of `baton net show`.
#[derive(Debug, Args)]
pub struct NetShow {
    /// The network, as `baton net list` shows it
    pub network: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub format: Format,
}

/// The arguments of `baton net capture`.
#[derive(Debug, Args)]
pub struct NetCapture {
    /// The network, as `baton net list` shows it
    pub network: String,
    /// Only frames that this guest sends or receives
    #[arg(long, value_name = "NAME")]
    pub guest: Option<String>,
    /// The most bytes of a frame that are kept
    #[arg(long, value_name = "BYTES", default_value_t = MAX_SNAP_BYTES)]
    #[arg(value_parser = clap::value_parser!(u32).range(14..=i64::from(MAX_SNAP_BYTES)))]
    pub snap: u32,
    /// Seconds for which to capture: more than 0
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    pub seconds: f64,
    /// The file; `-`: standard output, as for `| wireshark -k -i -` [default: NETWORK.pcapng]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
