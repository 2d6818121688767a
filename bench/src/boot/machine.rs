// SPDX-License-Identifier: MIT OR Apache-2.0
//! One boot of a host with a tiny guest, measured by its timeline.

use std::ffi::OsString;

use anyhow::{Context as _, Result, bail};
use baton::size::Size;
use baton::timeline::{Run, host};
use lab::What;
use timeline::Name;
use wire::{EventKind, TimelinePage};

use crate::Context;
use crate::setup::{COUNT_INSTRUCTIONS, HostSetup, keeper};

/// The guest has what it needs and no more: its memory is cleared before it starts, and that is the guest's share.
const GUEST_MEMORY: Size = Size::mebibytes(4);
/// Parts of each boot that are reported, besides the whole.
const PARTS: &[Name] = &[
    Name::Console,
    Name::Firmware,
    Name::Frames,
    Name::FrameRecords,
    Name::PageTables,
    Name::Clock,
    Name::Kick,
    Name::PciProbe,
    Name::AwaitOthers,
    Name::GuestLoad,
];

/// The clock of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// A nanosecond is an instruction of any CPU, or a nanosecond in which all are idle: the same each
    /// time.
    Instructions,
    /// The wall clock.
    Wall,
}

impl Clock {
    /// Returns the emulator's arguments.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Instructions => &COUNT_INSTRUCTIONS,
            Self::Wall => &[],
        }
    }
}

/// One host's boot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Boot {
    /// From the image's first instruction to the first guest's.
    pub milliseconds: f64,
    /// Its parts by name, in milliseconds.
    pub parts: Vec<(String, f64)>,
}

/// Boots a host of this size (GiB and CPUs), with a guest that ends at once.
pub(super) fn boot(context: &Context, size: (u64, u32), clock: Clock, options: &str) -> Result<Boot> {
    let (gibibytes, cpus) = size;
    let setup = HostSetup {
        cpus,
        guests: vec![keeper(context, "do=fresh", GUEST_MEMORY)?],
        options: options.to_owned(),
        extra: lazy_memory(gibibytes).into_iter().chain(clock.arguments().iter().map(OsString::from)).collect(),
        ..HostSetup::new(Size { bytes: gibibytes << 30 })
    };
    let mut host = setup.start(context)?;
    host.wait(context.timeout, "the guest's end", |what| match what {
        What::Event(event) => {
            matches!(event.kind, EventKind::VmStopped { .. } | EventKind::VmDebugExit { .. }).then_some(())
        }
        _ => None,
    })?;
    read(&host.lab.client()?.timeline()?)
}

/// Returns the arguments with which the emulator reserves memory only when it is written to.
pub(super) fn lazy_memory(gibibytes: u64) -> Vec<OsString> {
    let backend = format!("memory-backend-ram,id=lazy,size={gibibytes}G,reserve=off");
    ["-object", &backend, "-machine", "memory-backend=lazy"].map(OsString::from).to_vec()
}

fn read(pages: &[TimelinePage]) -> Result<Boot> {
    let runs = host::runs(pages, &host::Known::default());
    let run = runs.first().context("the host has no timeline: it and this tool are of different releases")?;
    let whole = span_ms(run, host::OVERVIEW, |_| true);
    if whole == 0.0 {
        bail!("the first guest's first instruction is not on the host's timeline");
    }
    let part = |name: &Name| {
        let took = span_ms(run, "CPU 0", |title| title.starts_with(name.text()));
        (name.text().replace([' ', ','], "_"), took)
    };
    Ok(Boot { milliseconds: whole, parts: PARTS.iter().map(part).collect() })
}

/// Milliseconds of a track's spans with these titles.
fn span_ms(run: &Run, track: &str, is_wanted: impl Fn(&str) -> bool) -> f64 {
    let spans = run.tracks.iter().filter(|candidate| candidate.name == track).flat_map(|track| &track.spans);
    spans.filter(|span| is_wanted(&span.name)).map(|span| span.length_us / 1e3).sum()
}

#[cfg(test)]
mod tests {
    use wire::TimelinePoint;

    use super::*;

    #[test]
    fn a_boot_is_read_from_its_timeline() {
        let point = |ticks, kind, name: Name| TimelinePoint { ticks, name: name as u16, kind, argument: 0 };
        let points = vec![
            point(1000, 1, Name::FirstInstruction),
            point(2000, 2, Name::Firmware),
            point(5000, 3, Name::Firmware),
            point(9000, 1, Name::FirstGuestInstruction),
        ];
        let page = TimelinePage { cpu: 0, ticks_per_second: 1_000_000, points, lost: 0, next: None };
        let boot = read(std::slice::from_ref(&page)).unwrap();
        assert_eq!(boot.milliseconds, 8.0);
        assert!(boot.parts.contains(&("ACPI_tables".to_owned(), 3.0)));
        let without_guest = TimelinePage { points: page.points[..3].to_vec(), ..page };
        assert!(read(&[without_guest]).unwrap_err().to_string().contains("first guest"));
    }
}
