// SPDX-License-Identifier: MIT OR Apache-2.0
//! `neighbours`: how late a guest wakes beside others that send and store as much as they can, on the CPU that they all
//! have.
//!
//! The guest `keeper` sleeps until its timer, over and over, and writes down how many ticks behind that its handler
//! began: instructions, as they are counted (`-icount shift=0`). The same machine with the same guests at rest is the
//! baseline.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};
use baton::config::Guest;
use baton::size::Size;
use bundle::NetworkConfig;
use lab::What;

use super::net::{DRIVERS, nic};
use super::report::{Figure, Goal, Report};
use super::setup::{COUNT_INSTRUCTIONS, HostSetup, keeper, linux, temporary_folder};
use super::{Bench, Context, blk};

pub(super) static BENCH: Bench = Bench {
    name: "neighbours",
    about: "how late a guest wakes beside storms of network frames and disk requests",
    goals: &[Goal::at_most("neighbour_wakeup_p99", 2.0, "ratio")],
    run,
};

const KEEPER: &str = "keeper";
/// Every Linux guest's.
const GREETING: &str = "Hello from a guest";
const INSTRUCTIONS: &str = "instructions";
const MEMORY: Size = Size::mebibytes(1024);
const KEEPER_MEMORY: Size = Size::mebibytes(4);
/// Wake-ups of a window, of some 2 ms each.
const SAMPLES: u32 = 1000;

/// The guests' doings beside the keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storm {
    /// Frames of 64 bytes from one to the other.
    Frames,
    /// Blocks of 4 KiB of one's disk, which the other serves.
    Blocks,
}

impl Storm {
    const ALL: [Self; 2] = [Self::Frames, Self::Blocks];

    fn name(self) -> &'static str {
        match self {
            Self::Frames => "frames",
            Self::Blocks => "blocks",
        }
    }

    /// Guests, and their words once the storm is there, or all rest.
    fn signs(self, is_storm: bool) -> &'static [(&'static str, &'static str)] {
        match (self, is_storm) {
            (Self::Frames, true) => &[("sink", "sink: "), ("sender", "flood: ")],
            (Self::Frames, false) => &[("sink", GREETING), ("sender", GREETING)],
            (Self::Blocks, true) => &[("web", "disk 1 ")],
            (Self::Blocks, false) => &[("storage", "storage: serving"), ("web", GREETING)],
        }
    }

    fn setup(self, context: &Context, folder: &Path, is_storm: bool) -> Result<HostSetup> {
        let mut setup = match self {
            Self::Frames => {
                let guests = frames(context, folder, is_storm)?;
                let networks = vec![NetworkConfig { name: "lan".to_owned(), mtu: 1500 }];
                HostSetup { guests, networks, ..HostSetup::new(MEMORY) }
            }
            Self::Blocks => blk::setup(context, folder, is_storm)?,
        };
        setup.guests.push(keeper(context, &format!("do=wakeups rounds={SAMPLES}"), KEEPER_MEMORY)?);
        setup.extra = COUNT_INSTRUCTIONS.map(Into::into).to_vec();
        Ok(setup)
    }
}

fn frames(context: &Context, folder: &Path, is_storm: bool) -> Result<Vec<Guest>> {
    let linux = |name: &str, number: u8, tasks: &str| -> Result<Guest> {
        let tasks = if is_storm { tasks } else { "wait" };
        Ok(Guest { nics: vec![nic(number)], ..linux(context, folder, name, DRIVERS, tasks)? })
    };
    let sender = linux("sender", 2, "packets:10.9.0.2:10.9.0.1:9,wait")?;
    Ok(vec![linux("sink", 1, "sink:10.9.0.1:9,wait")?, sender])
}

/// A window of wake-ups, in instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    number: u64,
    median: u64,
    p99: u64,
    most: u64,
}

fn run(context: &Context, report: &mut Report<'_>) -> Result<()> {
    let mut worst = 0.0_f64;
    for storm in Storm::ALL {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for run in 1..=context.runs {
            context.step(&format!("neighbours: {}, run {run} of {}", storm.name(), context.runs));
            without.push(measure(context, storm, false)?);
            with.push(measure(context, storm, true)?);
        }
        let [rest, beside] = [("at rest", &without), ("storm", &with)].map(|(state, windows)| {
            let variant = format!("{}, {state}", storm.name());
            let of = |value: fn(&Window) -> u64| windows.iter().map(|window| value(window) as f64).collect::<Vec<_>>();
            report.figure(Figure::measured(variant.clone(), "median", INSTRUCTIONS, of(|window| window.median)))?;
            report.figure(Figure::measured(variant.clone(), "most", INSTRUCTIONS, of(|window| window.most)))?;
            report.figure(Figure::measured(variant, "p99", INSTRUCTIONS, of(|window| window.p99)))
        });
        worst = worst.max(beside? / rest?);
    }
    report.goal("neighbour_wakeup_p99", worst)
}

/// Measures the second window behind the time at which the other guests are where they should be.
fn measure(context: &Context, storm: Storm, is_storm: bool) -> Result<Window> {
    let folder = temporary_folder()?;
    let mut host = storm.setup(context, folder.path(), is_storm)?.start(context)?;
    let (mut consoles, mut first) = (BTreeMap::<String, String>::new(), None);
    let window = host.wait(context.timeout, "the guest's wake-ups", |what| {
        let What::Console { name, bytes } = what else { return None };
        *consoles.entry(name.clone()).or_default() += &String::from_utf8_lossy(bytes);
        let (whole, _) = consoles.get(KEEPER)?.rsplit_once('\n')?;
        let last = whole.lines().filter_map(Window::of).next_back()?;
        let is_there = |(name, sign): &(&str, &str)| consoles.get(*name).is_some_and(|console| console.contains(sign));
        if first.is_none() && storm.signs(is_storm).iter().all(is_there) {
            first = Some(last.number + 2);
        }
        first.filter(|first| last.number >= *first).map(|_| last)
    })?;
    for (name, console) in &consoles {
        ensure!(!console.contains("WRONG"), "guest {name} printed\n{console}");
    }
    Ok(window)
}

impl Window {
    /// Reads `keeper: wakeups NUMBER n=… median=… p99=… most=…`; `None` for other lines.
    fn of(line: &str) -> Option<Self> {
        let words = line.trim().strip_prefix("keeper: wakeups ")?;
        let value = |name: &str| words.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse().ok());
        let number = words.split_whitespace().next()?.parse().ok()?;
        Some(Self { number, median: value("median=")?, p99: value("p99=")?, most: value("most=")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_read_and_a_part_of_its_line_is_none() {
        let line = "keeper: wakeups 3 n=1000 median=1500 p99=2100 most=9000\r";
        assert_eq!(Window::of(line), Some(Window { number: 3, median: 1500, p99: 2100, most: 9000 }));
        assert_eq!(Window::of("keeper: wakeups 3 n=1000 median=1500 p99=21"), None);
        assert_eq!(Window::of("Hello from a guest of Baton"), None);
    }
}
