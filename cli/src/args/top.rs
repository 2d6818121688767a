// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments of `baton top`.

use std::time::Duration;

use clap::Args;

use super::Format;
use crate::top::Sort;

/// Interval, order and format of `baton top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Seconds between two readings, from 0.5 to 4
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = interval)]
    pub interval: Duration,
    /// The order of guests; the keys c, w, e, m and n change it
    #[arg(long, value_enum, default_value_t = Sort::Cpu)]
    pub sort: Sort,
    /// Print one table, of one interval, and end
    #[arg(long)]
    pub once: bool,
    /// The output's format: with --json an object for each interval.
    #[command(flatten)]
    pub format: Format,
}

/// Parses an interval: the host ends its counters after five seconds without a request.
fn interval(word: &str) -> Result<Duration, String> {
    let seconds = word.parse().ok().filter(|seconds| (0.5..=4.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "write a number of seconds from 0.5 to 4".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_within_the_limit_of_the_host() {
        assert!(["0", "0.4", "4.1", "-1", "nan", "x"].iter().all(|word| interval(word).is_err()));
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
    }
}
