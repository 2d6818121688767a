// SPDX-License-Identifier: MIT OR Apache-2.0
//! One boot of a host with a tiny guest, and what its timeline says of it.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use baton::config::{Config, Guest, Host, Image};
use baton::size::Size;
use baton::timeline::{Run, host};
use bundle::{OnPanic, Pmu, WhenDone};
use lab::{Accelerator, Happening, Lab, Machine, RunDir, What};
use timeline::Name;
use wire::{EventKind, TimelinePage};

use crate::Context;

/// The guest has what it needs and no more: its memory is cleared before it starts, and that is the guest's share.
const GUEST_MEMORY: Size = Size::mebibytes(4);
/// Parts that are told of each boot, besides the whole.
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

/// What the time of a machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// A nanosecond is an instruction of any processor, or a nanosecond in which none had anything to do: the same each
    /// time.
    Instructions,
    /// The wall's.
    Wall,
}

impl Clock {
    /// What the emulator is told. A second -cpu replaces the first.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Instructions => &["-icount", "shift=0,sleep=off", "-cpu", "max,-x2apic"],
            Self::Wall => &[],
        }
    }
}

/// One host's boot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Boot {
    /// From the image's first instruction to the first guest's.
    pub milliseconds: f64,
    /// What of it went into what, in milliseconds.
    pub parts: Vec<(String, f64)>,
}

/// Boots a host of so many GiB and processors, with a guest that ends at once.
pub(super) fn boot(context: &Context, size: (u64, u32), clock: Clock, options: &str) -> Result<Boot> {
    let (gibibytes, processors) = size;
    let folder = tempfile::tempdir().context("no temporary folder can be made")?;
    let bundle = folder.path().join("bundle.cpio");
    let memory = Size { bytes: gibibytes << 30 };
    std::fs::write(&bundle, baton::bundle::build(&config(context, processors, memory)?, None)?)?;
    let machine = Machine {
        qemu: context.qemu.clone(),
        accelerator: Accelerator::Tcg,
        cpus: processors,
        memory,
        image: context.image.clone(),
        bundle: Some(bundle),
        disc: None,
        cmdline: options.to_owned(),
        extra: lazy_memory(gibibytes).into_iter().chain(clock.arguments().iter().map(OsString::from)).collect(),
    };
    let mut lab = Lab::start(&machine, RunDir::take_at(&folder.path().join("run"))?)?;
    let mut lines = Vec::new();
    while let Some(left) = context.timeout.checked_sub(lab.elapsed()) {
        let Some(Happening { what, .. }) = lab.next(left) else { break };
        match what {
            What::HostLine(line) | What::EmulatorLine(line) => lines.push(line),
            What::Event(event) if matches!(event.kind, EventKind::VmStopped { .. } | EventKind::VmDebugExit { .. }) => {
                let pages = lab.client()?.timeline()?;
                lab.kill();
                return read(&pages);
            }
            What::Ended(ending) => bail!("the host ended: {ending}; its lines were\n{}", lines.join("\n")),
            _ => {}
        }
    }
    let timeout = context.timeout;
    bail!("the guest did not end within {timeout:?}; raise --timeout; the host's lines were\n{}", lines.join("\n"))
}

/// Arguments by which the emulator reserves so much memory only when it is written to.
pub(super) fn lazy_memory(gibibytes: u64) -> Vec<OsString> {
    let backend = format!("memory-backend-ram,id=lazy,size={gibibytes}G,reserve=off");
    ["-object", &backend, "-machine", "memory-backend=lazy"].map(OsString::from).to_vec()
}

fn config(context: &Context, cpus: u32, memory: Size) -> Result<Config> {
    let guest = Guest {
        name: "keeper".to_owned(),
        kernel: context.made("target/guests/keeper.elf")?,
        initrd: None,
        modules: Vec::new(),
        cmdline: "do=fresh".to_owned(),
        vcpus: 1,
        memory: GUEST_MEMORY,
        debug_exit: true,
        weight: 100,
        on_panic: OnPanic::default(),
        hung_s: 0,
        pmu: Pmu::Off,
        pmu_events: None,
        autostart: true,
    };
    let host = Host { cpus, memory, when_done: WhenDone::Stay, cmdline: String::new(), image: Image::None };
    Ok(Config { path: PathBuf::from("bench"), trusted_keys: vec![], allow_downgrade: None, host, guests: vec![guest] })
}

fn read(pages: &[TimelinePage]) -> Result<Boot> {
    let runs = host::runs(pages, &host::Known::default());
    let run = runs.first().context("the host has no timeline: it and this tool are of different releases")?;
    let whole = span_ms(run, host::OVERVIEW, |_| true);
    if whole == 0.0 {
        bail!("the first guest's first instruction is not on the host's timeline");
    }
    let part = |name: &Name| {
        let took = span_ms(run, "processor 0", |title| title.starts_with(name.text()));
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
        let page = TimelinePage { processor: 0, ticks_per_second: 1_000_000, points, lost: 0, next: None };
        let boot = read(std::slice::from_ref(&page)).unwrap();
        assert_eq!(boot.milliseconds, 8.0);
        assert!(boot.parts.contains(&("ACPI_tables".to_owned(), 3.0)));
        let without_guest = TimelinePage { points: page.points[..3].to_vec(), ..page };
        assert!(read(&[without_guest]).unwrap_err().to_string().contains("first guest"));
    }
}
