// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host that measures how fast it hashes.

use std::ffi::OsString;

use anyhow::{Context as _, Result, bail};
use baton::size::Size;
use lab::{Accelerator, Happening, Lab, Machine, RunDir, What};

use crate::Context;

/// Begins each figure in the host's log.
const PREFIX: &str = "hash-cost: ";
const MEMORY: Size = Size::mebibytes(64);

/// The host's engines with the cycles (counted instructions) that each takes for a byte.
pub(super) fn measure(context: &Context, processor: &str, is_counted: bool) -> Result<Vec<(String, f64)>> {
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    let machine = Machine {
        qemu: context.qemu.clone(),
        accelerator: Accelerator::Tcg,
        cpus: 1,
        memory: MEMORY,
        image: context.image.clone(),
        bundle: None,
        disc: None,
        cmdline: "selftest=hash-cost".to_owned(),
        extra: machine_options(processor, is_counted),
    };
    let mut lab = Lab::start(&machine, RunDir::take_at(&folder.path().join("run"))?)?;
    let mut lines = Vec::new();
    while let Some(left) = context.timeout.checked_sub(lab.elapsed()) {
        let Some(Happening { what, .. }) = lab.next(left) else { break };
        let What::HostLine(line) = what else { continue };
        if let Some((_, row)) = line.split_once(PREFIX) {
            if row == "done" {
                lab.kill();
                return lines.iter().map(|row: &String| read(row)).collect();
            }
            lines.push(row.to_owned());
        }
    }
    bail!("the host did not measure hashing within {:?}; raise --timeout on a slow machine", context.timeout)
}

/// A second `-cpu` replaces the first.
pub(super) fn machine_options(processor: &str, is_counted: bool) -> Vec<OsString> {
    let clock: &[&str] = if is_counted { &["-icount", "shift=0,sleep=off"] } else { &[] };
    clock.iter().copied().chain(["-cpu", processor]).map(Into::into).collect()
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
    bail!("the host says {row:?}: it and this tool are of different releases")
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
