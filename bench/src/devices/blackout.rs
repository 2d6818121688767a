// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers that end in the blackouts of updates, which the test image stretches until their interrupt is pending.
//!
//! The guest `edu` lets one transfer follow the other, and reads its device all the time. An update counts if the
//! device's interrupt was pending while all CPUs were between two images, and the guest saw the transfer run at its
//! last read before the blackout.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use baton::config::{Device, Guest, Image, Iommu};
use baton::size::Size;
use bundle::AssignedConfig;
use lab::What;
use lab::blackouts::{Round, shortest_ns, was_pending};
use wire::{Refusal, ReplyBody, RequestBody, UpdateBy};

use super::XAPIC;
use crate::Context;
use crate::context::Build;
use crate::setup::{HostSetup, Started, guest};
use crate::update::hosted::TOO_LONG;

const MEMORY: Size = Size::mebibytes(512);
const GUEST_MEMORY: Size = Size::mebibytes(16);
const EDU: &str = "1234:11e8";
/// Rounds of the guest's behind an update: in the second one at the latest it reports the transfer.
const ROUNDS_BEHIND: usize = 3;
/// A blackout may begin between two transfers, more often the busier the machine is: so many updates are tried for
/// each that is to count.
const MOST_TRIES: usize = 3;

/// The results of the updates of a machine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ended {
    /// Blackouts in which a transfer ended.
    pub counted: usize,
    /// Updates that began between two transfers.
    pub between: usize,
    /// Interrupts that were lost or came twice, wrong bytes, transfers that never ended.
    pub wrong: usize,
}

/// Updates a host of so many CPUs until transfers have ended in `wanted` blackouts.
pub(super) fn measure(
    context: &Context,
    (iommu, name): (Iommu, &str),
    cpus: u32,
    wanted: usize,
    extra: Vec<OsString>,
) -> Result<Ended> {
    let mut machine = Transferring::start(context, iommu, cpus, extra)?;
    let mut ended = Ended::default();
    while ended.counted < wanted {
        let tried = ended.counted + ended.between;
        ensure!(
            tried < MOST_TRIES * wanted,
            "{} of {tried} blackouts began between two transfers: use a machine with fewer programs on it",
            ended.between
        );
        let Ended { counted, .. } = ended;
        let wrong = machine.wrong;
        context.step(&format!("devices: {name}: {counted} of {wanted} blackouts with a transfer's end, {wrong} wrong"));
        match machine.update(context)? {
            true => ended.counted += 1,
            false => ended.between += 1,
        }
    }
    machine.rounds(context, ROUNDS_BEHIND)?;
    ended.wrong = machine.wrong as usize;
    Ok(ended)
}

/// A host with a guest that has transfers under way.
struct Transferring {
    host: Started,
    tsc_hz: u64,
    /// The part of a line that came last.
    partial: String,
    /// The host's line about the last blackout, by generation.
    pending: Option<(u64, bool)>,
    generation: u64,
    wrong: u64,
}

impl Transferring {
    fn start(context: &Context, iommu: Iommu, cpus: u32, extra: Vec<OsString>) -> Result<Self> {
        let functions =
            vec![AssignedConfig { selector: EDU.to_owned(), without_reset: true, gsi: None, virtual_functions: 0 }];
        let kernel = context.made("target/guests/edu.elf")?;
        let edu = Guest { cmdline: "do=blackout".to_owned(), functions, ..guest("edu", kernel, GUEST_MEMORY) };
        let setup = HostSetup {
            cpus,
            guests: vec![edu],
            build: Build::WithFaultPoints,
            image: Image::Usual,
            next_build: Build::WithFaultPoints,
            iommu,
            devices: vec![Device::Edu],
            options: format!("{XAPIC} tsc=skip selftest=update:wait:interrupt"),
            extra,
            ..HostSetup::new(MEMORY)
        };
        let host = setup.start(context)?;
        let mut this = Self { host, tsc_hz: 0, partial: String::new(), pending: None, generation: 1, wrong: 0 };
        this.rounds(context, 1)?;
        this.tsc_hz = this.host.lab.client()?.info()?.tsc_hz;
        Ok(this)
    }

    /// Goes to the next image; returns whether a transfer ended in the blackout. One that was rolled back because a CPU
    /// waited too long for a core shows nothing.
    fn update(&mut self, context: &Context) -> Result<bool> {
        let body = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
        let least = match self.host.lab.client()?.request_within(context.timeout, body) {
            Ok(ReplyBody::Updated(report)) => {
                self.generation += 1;
                ensure!(report.generation == self.generation, "after {} updates: {report:?}", self.generation - 1);
                shortest_ns(&report)
            }
            Ok(other) => bail!("not the answer to an update: {other:?}"),
            Err(error) => match error.downcast_ref::<Refusal>() {
                Some(refusal) if refusal.reason.contains(TOO_LONG) => return Ok(false),
                _ => return Err(error),
            },
        };
        for _ in 0..ROUNDS_BEHIND {
            let rounds = self.rounds(context, 1)?;
            let was_pending = self.pending == Some((self.generation, true));
            if was_pending && rounds.iter().any(|round| round.ended_within(least, self.tsc_hz)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The guest's rounds that have not been returned yet, once `count` more than have ended already are among them,
    /// and the host has reported on the last blackout.
    fn rounds(&mut self, context: &Context, count: usize) -> Result<Vec<Round>> {
        let mut rounds = Vec::new();
        while let Some(happening) = self.host.lab.next(Duration::ZERO) {
            self.take(happening.what, &mut rounds)?;
        }
        let (wanted, until) = (rounds.len() + count, self.host.lab.elapsed() + context.timeout);
        while rounds.len() < wanted || self.pending.map_or(1, |(generation, _)| generation) < self.generation {
            let left = until.saturating_sub(self.host.lab.elapsed());
            match self.host.lab.next(left) {
                Some(happening) => self.take(happening.what, &mut rounds)?,
                None => bail!(
                    "no report of generation {} and {count} more rounds of the guest `edu`; raise --timeout on a slow \
                     machine",
                    self.generation
                ),
            }
        }
        Ok(rounds)
    }

    fn take(&mut self, what: What, rounds: &mut Vec<Round>) -> Result<()> {
        match what {
            What::Console { bytes, .. } => {
                self.partial += &String::from_utf8_lossy(&bytes);
                let whole = self.partial.rfind('\n').map_or(0, |end| end + 1);
                let found: Vec<Round> = self.partial[..whole].lines().filter_map(Round::of).collect();
                self.partial.drain(..whole);
                self.wrong = found.last().map_or(self.wrong, |round| round.wrong);
                rounds.extend(found);
            }
            What::HostLine(line) => {
                let generation = self.generation;
                self.pending = was_pending(&line, generation).map(|pending| (generation, pending)).or(self.pending);
            }
            What::Ended(ending) => bail!("the machine ended: {ending}"),
            _ => {}
        }
        Ok(())
    }
}
