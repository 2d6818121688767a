// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use baton::connection::Address;
use baton::running;
use clap::{Args, Parser, value_parser};

#[cfg(test)]
mod tests;

/// Share hosts with operators: a JSON API, metrics and a page, over a Unix socket or over TCP with TLS.
#[derive(Clone, Debug, Parser)]
#[command(name = "baton serve", bin_name = "baton serve", version)]
pub struct Options {
    /// A socket for clients: unix:PATH or tcp:ADDRESS:PORT; may be given several times [default:
    /// unix:$XDG_RUNTIME_DIR/baton/serve.sock]
    #[arg(long, value_name = "PLACE")]
    pub listen: Vec<Place>,
    /// A host: its name for clients, and its address as --connect takes it; may be given several times
    #[arg(long, value_name = "NAME=ADDRESS", required = true)]
    pub host: Vec<HostOption>,
    /// The secret key that requests to the hosts are signed with, one of the [[trust.control]] of each [default: none]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// The permissions of the Unix socket, as chmod takes them
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = socket_mode)]
    pub socket_mode: u32,
    /// TLS: its certificate, its key, the authority of clients' certificates, and their roles
    #[arg(long, value_name = "TOML")]
    pub access: Option<PathBuf>,
    /// Without TLS on a loopback address: every user of this machine may read
    #[arg(long)]
    pub insecure_loopback: bool,
    /// The file to which each order and its answer are appended [default: standard error]
    #[arg(long, value_name = "FILE")]
    pub audit: Option<PathBuf>,
    /// Seconds between two readings of a host
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub refresh: Duration,
    /// Seconds for which an update under way is waited for when the service is ended
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub stop_timeout: Duration,
    /// The history.
    #[command(flatten)]
    pub history: HistoryOptions,
}

/// Events, logs and metrics of the past: where they are kept, and how many.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct HistoryOptions {
    /// The file for events, logs and metrics of the past [default: memory, until the service ends]
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Days after which they are removed
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = value_parser!(u32).range(1..=3650))]
    pub history_days: u32,
    /// MiB after which the oldest are removed; 8 at most in memory
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = value_parser!(u32).range(4..=65536))]
    pub history_size: u32,
    /// Seconds between two samples of metrics
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub history_interval: Duration,
    /// Seconds for which a record waits for others, to be written with them
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    pub history_delay: Duration,
}

impl HistoryOptions {
    /// Returns the age after which a record is removed.
    pub fn age(&self) -> Duration {
        Duration::from_secs(u64::from(self.history_days) * 24 * 3600)
    }
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self {
            history: None,
            history_days: 30,
            history_size: 64,
            history_interval: Duration::from_secs(30),
            history_delay: Duration::from_secs(1),
        }
    }
}

impl Options {
    /// Returns the sockets at which clients connect.
    pub fn places(&self) -> Vec<Place> {
        match &self.listen[..] {
            [] => vec![Place::Unix(running::base().join("serve.sock"))],
            places => places.to_vec(),
        }
    }
}

/// A place at which clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A Unix socket.
    Unix(PathBuf),
    /// An address of this machine.
    Tcp(SocketAddr),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "write unix:PATH or tcp:ADDRESS:PORT, as tcp:127.0.0.1:9464";
        match text.split_once(':') {
            Some(("unix", "")) => Err(format!("it has no path; {FORM}")),
            Some(("unix", path)) => Ok(Self::Unix(path.into())),
            Some(("tcp", address)) => {
                address.parse().map(Self::Tcp).map_err(|_| format!("{address:?} is no address with a port; {FORM}"))
            }
            _ => Err(format!("it begins with no scheme; {FORM}")),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// A host by its name for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOption {
    /// Its name in the API.
    pub name: String,
    /// The place where it is reached.
    pub address: Address,
}

impl FromStr for HostOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "write NAME=ADDRESS, as rack1=tty:/dev/ttyS1";
        let (name, address) = text.split_once('=').ok_or_else(|| format!("it has no '='; {FORM}"))?;
        running::path_of(name).map_err(|error| error.to_string())?;
        let address = address.parse().map_err(|error: baton::connection::BadAddress| error.to_string())?;
        Ok(Self { name: name.to_owned(), address })
    }
}

fn socket_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "it is no mode of a file; write three octal digits, as 660".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "write a number of seconds from 0.1 to 3600".to_owned())
}
