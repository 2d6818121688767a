// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton perf`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Format;

/// Duration, frequency and format of a profile.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct PerfArgs {
    /// Another command instead of drawing a profile.
    #[command(subcommand)]
    pub command: Option<PerfCommand>,
    /// Seconds for which to sample: more than 0
    #[arg(long, default_value_t = 5.0, value_parser = seconds)]
    pub seconds: f64,
    /// Samples of each CPU in a second
    #[arg(long, default_value_t = 99, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub hz: u32,
    /// The picture's file [default: baton.svg]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Draw closures and library functions that stand between two others, too
    #[arg(long)]
    pub all: bool,
    /// Print a line for each stack instead, as flame graph tools read it
    #[arg(long, conflicts_with_all = ["output", "json"])]
    pub folded: bool,
    /// Print the stacks as JSON instead
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
    /// The image that runs, with its symbols [default: $BATON_IMAGE, target/baton.elf]
    #[arg(long)]
    pub image: Option<PathBuf>,
}

/// Other measurements of a host's CPUs.
#[derive(Debug, Subcommand)]
pub enum PerfCommand {
    /// Count each CPU's cycles: the host's own, each guest's, and idle ones
    Stat {
        /// Seconds for which to count
        #[arg(long, default_value_t = 1.0, value_parser = seconds)]
        seconds: f64,
        /// The output's format.
        #[command(flatten)]
        format: Format,
    },
}

/// Parses a duration in seconds; it is greater than zero.
pub(super) fn seconds(word: &str) -> Result<f64, String> {
    const MOST: f64 = 1e6;
    let seconds: f64 = word.parse().map_err(|_| "write a number of seconds, as 5 or 0.5".to_owned())?;
    match seconds > 0.0 && seconds <= MOST {
        true => Ok(seconds),
        false => Err(format!("in {word} seconds nothing can be seen; write more than 0, and at most {MOST}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_takes_time() {
        for word in ["0", "0.0", "-1", "nan", "inf", "1e9"] {
            assert!(seconds(word).is_err_and(|error| error.contains("more than 0")), "{word}");
        }
        assert!(seconds("soon").is_err());
        assert_eq!(seconds("0.5"), Ok(0.5));
    }
}
