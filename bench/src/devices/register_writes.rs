// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes to registers in the blackouts of updates, counted by the emulator's trace of all accesses.

use std::fs::File;
use std::io::BufReader;

use anyhow::{Context as _, Result, ensure};
use baton::config::Iommu;
use lab::accesses;

use super::blackout;
use crate::Context;
use crate::setup::temporary_folder;

/// Blackouts that are traced.
const BLACKOUTS: usize = 10;
/// With more CPUs the image that has taken over may begin its own work, of which the IOMMUs are part, before the
/// emulator's thread of the guest's CPU has had a core: its writes would count.
const CPUS: u32 = 1;

/// The register writes of CPUs.
pub(super) struct Traced {
    /// Blackouts with bounds that the trace shows exactly.
    pub blackouts: f64,
    /// Writes to IOMMUs, configuration space and the device in all of them.
    pub written: f64,
    /// The same at all other times.
    pub outside: f64,
    /// Other writes in each: to interrupt controllers and timers.
    pub others: Vec<f64>,
}

/// Traces [`BLACKOUTS`] blackouts in which a transfer ends.
pub(super) fn measure(context: &Context, unit: (Iommu, &str)) -> Result<Traced> {
    let folder = temporary_folder()?;
    let trace = folder.path().join("trace");
    let ended = blackout::measure(context, unit, CPUS, BLACKOUTS, accesses::arguments(&trace))?;
    ensure!(ended.wrong == 0, "of {} transfers in blackouts {} went wrong", ended.counted, ended.wrong);
    let file =
        File::open(&trace).context("the emulator wrote no trace: it is built without, name another with --qemu")?;
    let found = accesses::read(BufReader::new(file))?;
    let control = found.control();
    ensure!(
        control.are_all_there(),
        "the emulator's trace shows no write to an IOMMU, to configuration space or to the device even outside of \
         blackouts, so it proves nothing; its names may have changed (lab/src/accesses.rs): {control:?}"
    );
    let exact: Vec<_> = found.blackouts.iter().filter(|blackout| !blackout.has_guests_own).collect();
    ensure!(!exact.is_empty(), "the emulator's trace shows no blackout: is the host in xAPIC mode?");
    let written = |blackout: &accesses::Blackout| blackout.counts().sum();
    for blackout in exact.iter().filter(|blackout| written(blackout) > 0) {
        context.note(&format!("devices: {}: written in a blackout: {:?}", unit.1, blackout.writes));
    }
    let others = |blackout: &&accesses::Blackout| blackout.writes.values().sum::<u64>() - written(blackout);
    Ok(Traced {
        blackouts: exact.len() as f64,
        written: exact.iter().map(|blackout| written(blackout) as f64).sum(),
        outside: control.sum() as f64,
        others: exact.iter().map(|blackout| others(blackout) as f64).collect(),
    })
}
