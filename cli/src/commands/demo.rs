// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton demo`: an unmodified Linux greets from its userspace, and the host powers off.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use super::DONE;
use super::session::{Outcome, Session};
use crate::GREETING;
use crate::args::LabArgs;
use crate::config::Config;
use crate::lab::workspace;

/// The demo's host.toml in the workspace.
const CONFIG: &str = "guests/demo.toml";
/// Seconds a demo may take: a translated machine on a busy laptop.
const TIMEOUT_SECONDS: u64 = 300;

pub(super) fn run(config: Option<PathBuf>, args: &LabArgs) -> Result<u8> {
    let path = match config {
        Some(path) => path,
        None => workspace().context("the demo's host.toml is not here; name one")?.join(CONFIG),
    };
    let config = Config::load(&path).context("the demo is not set up; run `make demo`")?;
    let args = LabArgs { timeout: args.timeout.or(Some(TIMEOUT_SECONDS)), ..args.clone() };
    let mut has_greeted = false;
    let outcome = Session::start(&config, &args)?.run(|_, line| has_greeted |= line.contains(GREETING));
    match outcome {
        Outcome::Ended(ending) if ending.is_good() && has_greeted => {
            println!("The demo is done: an unmodified guest ran to its userspace and powered off.");
            Ok(DONE)
        }
        Outcome::Ended(ending) if ending.is_good() => {
            bail!("the guest ended without its greeting ({GREETING:?}); its last lines say why")
        }
        outcome => Ok(outcome.process_status()),
    }
}
