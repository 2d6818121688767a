// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton bench`: figures, and whether goals are met.

use std::time::Duration;

use anyhow::Result;
use baton::output::output;
use bench::report::Style;
use bench::{Context, Sizes};

use super::DONE;
use crate::args::BenchArgs;

/// The exit status of `--check` if a goal is missed.
const MISSED: u8 = 1;

pub(super) fn run(args: &BenchArgs) -> Result<u8> {
    if args.benches.is_empty() {
        bench::ALL.iter().for_each(|bench| println!("{:<12} {}", bench.name, bench.about));
        return Ok(DONE);
    }
    let benches = args.benches.iter().map(|name| bench::named(name)).collect::<Result<Vec<_>>>()?.concat();
    let timeout = Duration::from_secs(args.timeout);
    let sizes = Sizes { quick: args.quick, gibibytes: args.memory.clone(), cpus: args.cpus.clone() };
    let mut context =
        Context::new(args.qemu.as_deref(), args.image.as_deref(), args.runs.into(), timeout, args.minutes)?;
    context.sizes = sizes;
    let style = if args.format.json { Style::Json } else { Style::Table };
    let are_met = bench::run(&benches, &context, style, &mut output())?;
    Ok(if are_met || !args.check { DONE } else { MISSED })
}
