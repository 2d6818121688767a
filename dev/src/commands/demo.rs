// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton demo`: an unmodified Linux greets from its userspace, counts, writes and verifies its disk, and sends
//! datagrams through its network card; Baton replaces itself under it; the guest goes on with all of that, and powers
//! off.

mod card;
mod counting;
mod disk;
mod drivers;
mod replacing;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use baton::config::Config;
use baton::paths::workspace;
use lab::GREETING;

use super::DONE;
use super::session::{Outcome, Session};
use crate::args::LabArgs;
use card::Card;
use counting::Count;
use disk::Disk;
use replacing::Replacement;

/// The demo's host.toml in the workspace.
const CONFIG: &str = "guests/demo.toml";
/// The time limit of a demo in seconds: an emulated machine on a busy laptop.
const TIMEOUT_SECONDS: u64 = 300;
/// The count of each guest from which on the host is updated.
const BEATS_BEFORE: usize = 5;

/// The guests' output so far.
struct Show {
    host: String,
    has_greeted: bool,
    count: Count,
    disk: Option<Disk>,
    card: Option<Card>,
    update: Option<Update>,
}

/// The update, and how far all had come at its beginning.
struct Update {
    replacement: Replacement,
    beats: usize,
    disk_reports: usize,
    start: Duration,
}

pub(super) fn run(config: Option<PathBuf>, args: &LabArgs) -> Result<u8> {
    let path = match config {
        Some(path) => path,
        None => workspace().context("the demo's host.toml is not here; name one")?.join(CONFIG),
    };
    let mut config = Config::load(&path).context("the demo is not set up; run `make demo`")?;
    let _folder = drivers::add(&mut config)?;
    let mut show = Show::of(args.name.clone(), &mut config)?;
    let args = LabArgs { timeout: args.timeout.or(Some(TIMEOUT_SECONDS)), ..args.clone() };
    match Session::start(&config, &args)?.run(|_, line| show.see(line)) {
        Outcome::Ended(ending) if ending.is_good() => show.end(),
        outcome => Ok(outcome.process_status()),
    }
}

impl Show {
    /// Prepares for the guests of `config`, of which the last one that uses a disk or a card is the one that is shown.
    fn of(host: String, config: &mut Config) -> Result<Self> {
        let (mut disk, mut card) = (None, None);
        for guest in &mut config.guests {
            disk = Disk::of(&guest.cmdline).or(disk);
            card = Card::listen(&mut guest.cmdline)?.or(card);
        }
        Ok(Self { host, has_greeted: false, count: Count::default(), disk, card, update: None })
    }

    fn see(&mut self, line: &str) {
        self.has_greeted |= line.contains(GREETING);
        let beats = self.count.beats();
        self.count.see(line);
        self.disk.iter_mut().for_each(|disk| disk.see(line));
        if self.count.beats() > beats {
            let now = self.card.as_mut().map(Card::see).unwrap_or_default();
            if self.update.is_none() && self.count.beats() >= BEATS_BEFORE && self.is_all_in_use() {
                self.begin_update(now);
            }
        }
    }

    fn is_all_in_use(&self) -> bool {
        self.disk.as_ref().is_none_or(|disk| disk.reports() > 0) && self.card.as_ref().is_none_or(Card::is_in_use)
    }

    fn begin_update(&mut self, start: Duration) {
        let disk_reports = self.disk.as_ref().map_or(0, Disk::reports);
        let replacement = Replacement::begin(&self.host);
        self.update = Some(Update { replacement, beats: self.count.beats(), disk_reports, start });
    }

    fn end(self) -> Result<u8> {
        if !self.has_greeted {
            bail!("the guest ended without its greeting ({GREETING:?}); its last lines have the reason")
        }
        if let Some(Update { replacement, beats, disk_reports, start }) = self.update {
            print!("\n{}", replacement.end()?);
            println!("{}", self.count.since(beats)?);
            self.disk.map(|disk| disk.since(disk_reports)).transpose()?.iter().for_each(|text| println!("{text}"));
            self.card.map(|card| card.since(start)).transpose()?.iter().for_each(|text| println!("{text}"));
        } else if self.disk.is_some() || self.card.is_some() {
            bail!("the guest did not use its disk and its network card; its lines about drivers have the reason")
        }
        println!("The demo is done: an unmodified guest ran to its userspace and powered off.");
        Ok(DONE)
    }
}
