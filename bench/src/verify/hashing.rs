// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host that measures its speed of hashing.

use std::ffi::OsString;

use anyhow::{Result, bail};
use baton::size::Size;
use lab::What;

use crate::Context;
use crate::setup::HostSetup;

/// Begins each figure in the host's log.
const PREFIX: &str = "hash-cost: ";
const MEMORY: Size = Size::mebibytes(64);

/// The host's engines with the cycles (counted instructions) that each takes for a byte.
pub(super) fn measure(context: &Context, cpu: &str, is_counted: bool) -> Result<Vec<(String, f64)>> {
    let extra = machine_options(cpu, is_counted);
    let setup = HostSetup { options: "selftest=hash-cost".to_owned(), extra, ..HostSetup::new(MEMORY) };
    let mut rows: Vec<String> = Vec::new();
    setup.start(context)?.wait(context.timeout, "the speed of hashing", |what| {
        let What::HostLine(line) = what else { return None };
        let (_, row) = line.split_once(PREFIX)?;
        rows.push(row.to_owned());
        (row == "done").then_some(())
    })?;
    rows.iter().filter(|row| *row != "done").map(|row| read(row)).collect()
}

/// A second `-cpu` replaces the first.
pub(super) fn machine_options(cpu: &str, is_counted: bool) -> Vec<OsString> {
    let clock: &[&str] = if is_counted { &["-icount", "shift=0,sleep=off"] } else { &[] };
    clock.iter().copied().chain(["-cpu", cpu]).map(Into::into).collect()
}

/// A row: the engine, bytes, cycles.
fn read(row: &str) -> Result<(String, f64)> {
    let words: Vec<&str> = row.split(' ').collect();
    if let [engine, bytes, cycles] = words[..]
        && let (Ok(bytes), Ok(cycles)) = (bytes.parse::<f64>(), cycles.parse::<f64>())
        && bytes > 0.0
    {
        return Ok((engine.to_owned(), cycles / bytes));
    }
    bail!("the host printed {row:?}: it and this tool are of different releases")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_cycles_for_bytes() {
        assert_eq!(read("portable 100 1250").expect("a row"), ("portable".to_owned(), 12.5));
        assert!(read("portable 0 1250").is_err() && read("portable 100").is_err() && read("portable a b").is_err());
    }
}
