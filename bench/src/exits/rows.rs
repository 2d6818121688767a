// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of the guest `exits`.
//!
//! ```text
//! exits: cpuid min=812 median=830 n=1000
//! exits: hlt_wake absent: no TSC-deadline timer
//! exits: done
//! ```

use anyhow::{Context as _, Result, bail};

/// Begins every line of the guest's.
const PREFIX: &str = "exits: ";
/// The row that holds what the timing itself takes.
const EMPTY: &str = "empty";

/// The rows of one run, in the guest's order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rows {
    /// Ticks of the row `empty`.
    empty: f64,
    /// Name and median in ticks, or the reason why there is none.
    rows: Vec<(String, Result<f64, String>)>,
}

impl Rows {
    /// Reads the guest's lines; those of others are skipped.
    pub fn parse(lines: &[impl AsRef<str>]) -> Result<Self> {
        let lines = lines.iter().filter_map(|line| line.as_ref().trim().strip_prefix(PREFIX));
        let rows = lines.filter(|line| *line != "done").map(row).collect::<Result<Vec<_>>>()?;
        let empty = rows.iter().find(|(name, _)| name == EMPTY).context("the row \"empty\" is missing")?;
        let empty = empty.1.clone().map_err(anyhow::Error::msg)?;
        Ok(Self { empty, rows })
    }

    /// Returns the kinds of exit that have rows.
    pub fn names(&self) -> Vec<String> {
        self.rows.iter().map(|(name, _)| name.clone()).filter(|name| name != EMPTY).collect()
    }

    /// Returns the ticks of the row `empty`: those of the timing itself.
    pub fn empty(&self) -> f64 {
        self.empty
    }

    /// Ticks of a round trip without the timing's own; `None` where the row is absent.
    pub fn round_trip(&self, name: &str) -> Option<f64> {
        let ticks = self.find(name)?.as_ref().ok()?;
        Some((ticks - self.empty).max(0.0))
    }

    /// Returns the reason for which a row is absent.
    pub fn reason(&self, name: &str) -> &str {
        match self.find(name) {
            Some(Err(reason)) => reason,
            Some(Ok(_)) => "it was there in this run",
            None => "the guest does not know it",
        }
    }

    fn find(&self, name: &str) -> Option<&Result<f64, String>> {
        self.rows.iter().find(|(row, _)| row == name).map(|(_, row)| row)
    }
}

/// `NAME min=N median=N n=N`, `NAME absent: WHY`; anything else is an error in itself.
fn row(line: &str) -> Result<(String, Result<f64, String>)> {
    let (name, rest) = line.split_once(' ').with_context(|| format!("{line:?} is no row"))?;
    if let Some(reason) = rest.strip_prefix("absent: ") {
        return Ok((name.to_owned(), Err(reason.to_owned())));
    }
    let median = rest.split(' ').find_map(|field| field.strip_prefix("median="));
    match median.map(str::parse::<u64>) {
        Some(Ok(ticks)) => Ok((name.to_owned(), Ok(ticks as f64))),
        _ => bail!("the guest printed {line:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: [&str; 5] = [
        "other line",
        "exits: empty min=20 median=22 n=1000\r",
        "exits: cpuid min=812 median=830 n=1000\r",
        "exits: hlt_wake absent: no TSC-deadline timer",
        "exits: done",
    ];

    #[test]
    fn the_timings_own_ticks_are_subtracted() {
        let rows = Rows::parse(&OUTPUT).expect("rows");
        assert_eq!(rows.names(), ["cpuid", "hlt_wake"]);
        assert_eq!((rows.empty(), rows.round_trip("cpuid")), (22.0, Some(808.0)));
    }

    #[test]
    fn an_absent_row_keeps_its_reason() {
        let rows = Rows::parse(&OUTPUT).expect("rows");
        assert_eq!(rows.round_trip("hlt_wake"), None);
        assert_eq!(rows.reason("hlt_wake"), "no TSC-deadline timer");
        assert_eq!(rows.reason("port"), "the guest does not know it");
    }

    #[test]
    fn what_is_no_row_is_an_error() {
        for line in ["exits: self_ipi WRONG: 3 interrupts never came", "exits: cpuid median=x", "exits: cpuid"] {
            assert!(Rows::parse(&[OUTPUT[1], line]).is_err(), "{line}");
        }
        assert!(Rows::parse(&OUTPUT[2..]).is_err(), "without the row empty");
    }
}
