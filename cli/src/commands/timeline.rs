// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton timeline`: the parts of a boot or a restart, and their times.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{Context as _, Result};

use super::{DONE, connect};
use crate::args::{Target, TimelineArgs};
use crate::client::Client;
use crate::timeline::bars::View;
use crate::timeline::page::Shown;
use crate::timeline::{Picture, Run, bars, chrome, dmesg, host, page};

/// A Linux log has the same time in two ways: phases are drawn, gaps between lines listed.
const LINUX: View =
    View { draws: |track| track == dmesg::PHASES, lists: |track| track == dmesg::GAPS, listed: dmesg::GAPS };
/// All CPUs of a host are drawn.
const HOST: View = View { draws: |_| true, lists: |track| track != host::OVERVIEW, listed: "all CPUs" };

/// Collects the runs, and shows them in the formats of the arguments: without any, on the terminal.
pub(super) fn run(target: &Target, args: &TimelineArgs) -> Result<u8> {
    let picture = collect(target, args)?;
    if let Some(file) = &args.html {
        // Those that are named beside each other are to be compared.
        let is_compared = !args.beside.is_empty() || args.dmesg.len() > 1;
        let shown = if is_compared { Shown::All } else { Shown::Last };
        write(file, page::page(&picture, shown)?.as_bytes())?;
    }
    if let Some(file) = &args.trace {
        write(file, &serde_json::to_vec(&chrome::trace(&picture))?)?;
    }
    if args.json {
        println!("{}", serde_json::to_string(&picture)?);
    } else if args.html.is_none() && args.trace.is_none() {
        let drawn: Vec<String> = picture.runs.iter().map(|run| bars::draw(run, view_of(run))).collect();
        print!("{}", drawn.join("\n"));
    }
    Ok(DONE)
}

fn collect(target: &Target, args: &TimelineArgs) -> Result<Picture> {
    let mut runs = args.dmesg.iter().map(|file| read_log(file)).collect::<Result<Vec<Run>>>()?;
    if args.dmesg.is_empty() {
        match ask(target, args.last) {
            Err(error) if !args.beside.is_empty() => eprintln!("{error:#}; the saved pictures are shown alone"),
            asked => runs.extend(asked?),
        }
    }
    for file in &args.beside {
        let text = fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
        let beside: Picture = serde_json::from_str(&text)
            .with_context(|| format!("{}: it is no picture; make one with `baton timeline --json`", file.display()))?;
        runs.extend(beside.runs);
    }
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    Ok(Picture { title: format!("Timeline: {}", names.join(", ")), runs })
}

fn ask(target: &Target, is_last_only: bool) -> Result<Vec<Run>> {
    let mut runs = host_runs(&mut connect(target)?)?;
    if is_last_only {
        runs.drain(..runs.len().saturating_sub(1));
    }
    Ok(runs)
}

/// Returns the boot of the host and its restarts, as far back as its timeline reaches.
pub fn host_runs(client: &mut Client) -> Result<Vec<Run>> {
    let guests = client.vms()?.into_iter().map(|vm| vm.name).collect();
    Ok(host::runs(&client.timeline()?, &host::Known { guests }))
}

/// Returns how a run is drawn on a terminal.
pub fn view_of(run: &Run) -> View {
    if run.tracks.iter().any(|track| track.name == dmesg::GAPS) { LINUX } else { HOST }
}

fn read_log(file: &Path) -> Result<Run> {
    let bytes = if file == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).context("standard input cannot be read")?;
        bytes
    } else {
        fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?
    };
    let name = file.file_name().map_or_else(|| "standard input".to_owned(), |name| name.to_string_lossy().into_owned());
    let name = if name == "-" { "standard input".to_owned() } else { name };
    dmesg::read(&name, &String::from_utf8_lossy(&bytes)).with_context(|| format!("{}", file.display()))
}

fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(file, bytes).with_context(|| format!("{} cannot be written", file.display()))?;
    eprintln!("wrote {}", file.display());
    Ok(())
}
