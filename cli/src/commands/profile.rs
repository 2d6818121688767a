// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton perf`: a profile of the hypervisor itself, as a flame graph.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use wire::ProfilePage;

use super::{DONE, connect, stat};
use crate::args::{PerfArgs, PerfCommand, Target};
use crate::client::{Client, Taken};
use crate::paths::default_image;
use crate::profile::{Stacks, draw};
use crate::symbols::Symbols;

/// The number of functions in the list.
const LISTED: usize = 8;

/// The output of `--json`.
#[derive(Serialize)]
struct Summary<'a> {
    period_us: u32,
    asked: u64,
    samples: u64,
    lost: u64,
    cut_short: Option<&'a str>,
    stacks: &'a Stacks,
}

pub(super) fn run(target: &Target, args: &PerfArgs) -> Result<u8> {
    if let Some(PerfCommand::Stat { seconds, format }) = &args.command {
        return stat::run(target, *seconds, *format);
    }
    let image = default_image(args.image.as_deref())?;
    let symbols = Symbols::load(&image)?;
    let mut client = connect(target)?;
    let time = Duration::try_from_secs_f64(args.seconds).context("--seconds is a number of seconds, 0 or more")?;
    let guests: Vec<String> = client.vms()?.into_iter().map(|vm| vm.name).collect();
    let taken = client.profile(args.hz, time, |client, page| same_build(client, page, &image, &symbols))?;
    if let Some(reason) = &taken.cut_short {
        eprintln!("baton: the profile ended before its time: {reason}");
    }
    let guest = |number: u32| guests.get(number as usize).cloned().unwrap_or_else(|| number.to_string());
    let stacks = Stacks::of(&taken.words, taken.head.code, |address| symbols.functions(address), guest);
    print(args, &taken, &stacks)
}

/// Returns the symbols of the running image; another image's would give wrong names.
fn same_build(client: &mut Client, page: &ProfilePage, image: &Path, symbols: &Symbols) -> Result<()> {
    let hex = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match symbols.build_id() {
        Some(build) if *build == page.build => Ok(()),
        known => bail!(
            "the host runs build {} of Baton {}, and {} is {}: name the image that runs with --image",
            hex(&page.build),
            client.info()?.version,
            image.display(),
            known.map_or_else(|| "without symbols".to_owned(), |build| format!("build {}", hex(build)))
        ),
    }
}

fn print(args: &PerfArgs, taken: &Taken, stacks: &Stacks) -> Result<u8> {
    let (head, samples) = (&taken.head, stacks.total());
    if args.folded {
        print!("{}", stacks.folded());
    } else if args.json {
        let cut_short = taken.cut_short.as_deref();
        let summary =
            Summary { period_us: head.period_us, asked: head.asked, samples, lost: head.lost, cut_short, stacks };
        println!("{}", serde_json::to_string(&summary)?);
    } else {
        let path = args.output.clone().unwrap_or_else(|| PathBuf::from("baton.svg"));
        let (drawn, left_out) = if args.all { (stacks.clone(), 0) } else { stacks.without_boilerplate() };
        let mut title = format!("Baton: {samples} samples, one each {} µs and CPU", head.period_us);
        if left_out > 0 {
            title += &format!("; {left_out} closures and library functions left out");
        }
        fs::write(&path, draw(&drawn, &title)).with_context(|| format!("{} cannot be written", path.display()))?;
        println!("{samples} samples of {} polls, {} lost: {}", head.asked, head.lost, path.display());
        for (name, count) in stacks.hottest().into_iter().take(LISTED) {
            println!("{:6.2} %  {name}", count as f64 * 100.0 / samples.max(1) as f64);
        }
    }
    Ok(DONE)
}
