// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton demo`: an unmodified Linux greets from its userspace and counts; Baton replaces itself under it; the guest
//! counts on, and powers off.

mod counting;
mod replacing;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use baton::config::Config;
use baton::paths::workspace;
use lab::GREETING;

use super::DONE;
use super::session::{Outcome, Session};
use crate::args::LabArgs;
use counting::Count;
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
    replacement: Option<Replacement>,
}

pub(super) fn run(config: Option<PathBuf>, args: &LabArgs) -> Result<u8> {
    let path = match config {
        Some(path) => path,
        None => workspace().context("the demo's host.toml is not here; name one")?.join(CONFIG),
    };
    let config = Config::load(&path).context("the demo is not set up; run `make demo`")?;
    let args = LabArgs { timeout: args.timeout.or(Some(TIMEOUT_SECONDS)), ..args.clone() };
    let mut show = Show { host: args.name.clone(), has_greeted: false, count: Count::default(), replacement: None };
    match Session::start(&config, &args)?.run(|_, line| show.see(line)) {
        Outcome::Ended(ending) if ending.is_good() => show.end(),
        outcome => Ok(outcome.process_status()),
    }
}

impl Show {
    fn see(&mut self, line: &str) {
        self.has_greeted |= line.contains(GREETING);
        self.count.see(line);
        if self.count.beats() == BEATS_BEFORE && self.replacement.is_none() {
            self.replacement = Some(Replacement::begin(&self.host, self.count.beats()));
        }
    }

    fn end(self) -> Result<u8> {
        if !self.has_greeted {
            bail!("the guest ended without its greeting ({GREETING:?}); its last lines say why")
        }
        if let Some(replacement) = self.replacement {
            let before = replacement.beats_before();
            print!("\n{}", replacement.end()?);
            println!("{}", self.count.since(before)?);
        }
        println!("The demo is done: an unmodified guest ran to its userspace and powered off.");
        Ok(DONE)
    }
}
