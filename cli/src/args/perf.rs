// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton perf`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Format, Target};

/// How long to look, how often, and how to tell.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct PerfArgs {
    /// What to do instead of drawing.
    #[command(subcommand)]
    pub command: Option<PerfCommand>,
    /// Which host.
    #[command(flatten)]
    pub target: Target,
    /// For how long to look: more than 0
    #[arg(long, default_value_t = 5.0, value_parser = seconds)]
    pub seconds: f64,
    /// How often in a second each processor is looked at
    #[arg(long, default_value_t = 99, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub hz: u32,
    /// Where to draw the picture [default: baton.svg]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
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

/// What else is to be told of a host's processors.
#[derive(Debug, Subcommand)]
pub enum PerfCommand {
    /// Count each processor's cycles: the host's own, each guest's, and those for which it waited
    Stat {
        /// For how long to count
        #[arg(long, default_value_t = 1.0, value_parser = seconds)]
        seconds: f64,
        /// How to print it.
        #[command(flatten)]
        format: Format,
    },
}

/// A stretch of time in which something can be seen.
fn seconds(word: &str) -> Result<f64, String> {
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
    fn a_look_takes_time() {
        for word in ["0", "0.0", "-1", "nan", "inf", "1e9"] {
            assert!(seconds(word).is_err_and(|error| error.contains("more than 0")), "{word}");
        }
        assert!(seconds("soon").is_err());
        assert_eq!(seconds("0.5"), Ok(0.5));
    }
}
