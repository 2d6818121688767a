// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connections between guests, by TCP and by virtio sockets, while the host is updated.
//!
//! A guest sends blocks that another one sends back, one at a time, verifies each, and prints its slowest round trip
//! every second. A window is all that it prints from before an update until behind it; as many reports follow without
//! one.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use baton::config::{Guest, Image};
use baton::size::Size;
use bundle::{NetworkConfig, VsockConfig};
use lab::What;
use wire::{ReplyBody, RequestBody, UpdateBy};

use super::nic;
use super::window::Ticks;
use crate::Context;
use crate::setup::{HostSetup, Started, linux, temporary_folder};

const MEMORY: Size = Size::mebibytes(1024);
const CPUS: u32 = 2;
const SERVER: &str = "server";
const SERVER_CID: u32 = 100;
/// The ways, by the names of the guests that use them.
pub(super) const WAYS: [&str; 2] = ["tcp", "vsock"];

/// The slowest round trips of one way, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Stalls {
    /// In the window of each update.
    pub with: Vec<f64>,
    /// In the window behind it.
    pub without: Vec<f64>,
}

impl Stalls {
    /// By how much the slowest of all updates was slower than the slowest without one.
    pub(super) fn excess(&self) -> f64 {
        let slowest = |stalls: &[f64]| stalls.iter().copied().fold(0.0, f64::max);
        slowest(&self.with) - slowest(&self.without)
    }
}

/// Measures both ways over so many updates of one machine, in the order of [`WAYS`].
pub(super) fn measure(context: &Context, updates: u64, ticks: Ticks) -> Result<[Stalls; 2]> {
    let folder = temporary_folder()?;
    let ends = WAYS.map(|name| End { name, ..End::default() });
    let mut machine =
        Machine { host: setup(context, folder.path(), ticks)?.start(context)?, ends, timeout: context.timeout };
    machine.reports()?;
    let mut stalls = WAYS.map(|_| Stalls::default());
    for update in 1..=updates {
        context.step(&format!("net: update {update} of {updates}"));
        machine.window(&mut stalls)?;
    }
    Ok(stalls)
}

fn setup(context: &Context, folder: &Path, ticks: Ticks) -> Result<HostSetup> {
    let drivers = ["virtio_pci", "virtio_net", "vmw_vsock_virtio_transport"];
    let linux = |name: &str, tasks: &str| linux(context, folder, name, &drivers, &format!("{tasks},wait"));
    let socket = |cid, peers| Some(VsockConfig { cid, peers, control: None });
    let [tcp, vsock] = WAYS;
    let guests = vec![
        Guest {
            nics: vec![nic(1)],
            vsock: socket(SERVER_CID, Vec::new()),
            ..linux(SERVER, "serve:10.9.0.1:7,vsock-serve:7")?
        },
        Guest { nics: vec![nic(2)], ..linux(tcp, "echo:10.9.0.2:10.9.0.1:7")? },
        Guest {
            vsock: socket(SERVER_CID + 1, vec![SERVER_CID]),
            ..linux(vsock, &format!("vsock-echo:{SERVER_CID}:7"))?
        },
    ];
    let networks = vec![NetworkConfig { name: "lan".to_owned(), mtu: 1500 }];
    let extra = ticks.arguments();
    Ok(HostSetup { cpus: CPUS, guests, networks, image: Image::Usual, extra, ..HostSetup::new(MEMORY) })
}

/// The machine, and what the guests have reported that verify.
struct Machine {
    host: Started,
    ends: [End; 2],
    /// The longest wait for a report.
    timeout: Duration,
}

impl Machine {
    /// Updates the host, and adds the stalls of both windows.
    fn window(&mut self, stalls: &mut [Stalls; 2]) -> Result<()> {
        self.reports()?;
        let body = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
        match self.host.lab.client()?.request_within(self.timeout, body)? {
            ReplyBody::Updated(_) => {}
            other => bail!("not the answer to an update: {other:?}"),
        }
        let with = self.reports()?;
        for (way, (with, stalls)) in with.iter().zip(stalls).enumerate() {
            stalls.with.push(slowest(with));
            let mut without = Vec::new();
            while without.len() < with.len() {
                without.push(self.next(way)?);
            }
            stalls.without.push(slowest(&without));
        }
        Ok(())
    }

    /// Takes all reports of each way that are there, and waits for one more.
    fn reports(&mut self) -> Result<[Vec<f64>; 2]> {
        while let Some(happening) = self.host.lab.next(Duration::ZERO) {
            self.ends.iter_mut().for_each(|end| end.take(&happening.what));
        }
        let mut all = self.ends.each_mut().map(|end| end.reports.drain(..).collect::<Vec<_>>());
        for (way, reports) in all.iter_mut().enumerate() {
            reports.push(self.next(way)?);
        }
        Ok(all)
    }

    /// Waits for the next report of a way.
    fn next(&mut self, way: usize) -> Result<f64> {
        loop {
            if let Some(line) = &self.ends[way].wrong {
                bail!("guest {} printed {line:?}", self.ends[way].name);
            }
            if let Some(report) = self.ends[way].reports.pop_front() {
                return Ok(report);
            }
            let (limit, ends) = (self.host.lab.elapsed() + self.timeout, &mut self.ends);
            self.host.wait(limit, "the next report of a connection", |what| {
                ends.iter_mut().for_each(|end| end.take(what));
                let end = &ends[way];
                (end.wrong.is_some() || !end.reports.is_empty()).then_some(())
            })?;
        }
    }
}

fn slowest(reports: &[f64]) -> f64 {
    reports.iter().copied().fold(0.0, f64::max)
}

/// The output of a guest that verifies.
#[derive(Debug, Default)]
struct End {
    name: &'static str,
    /// The text behind the last whole line.
    rest: String,
    /// Milliseconds of the reports that were not taken.
    reports: VecDeque<f64>,
    /// A line that reports an error.
    wrong: Option<String>,
}

impl End {
    fn take(&mut self, what: &What) {
        let What::Console { name, bytes } = what else { return };
        if name != self.name {
            return;
        }
        self.rest += &String::from_utf8_lossy(bytes);
        while let Some(at) = self.rest.find('\n') {
            let line: String = self.rest.drain(..=at).collect();
            self.reports.extend(slowest_ms(&line));
            if line.contains("WRONG") {
                self.wrong = Some(line);
            }
        }
    }
}

/// Reads `echo NUMBER verified=… slowest_us=…`; `None` for other lines.
fn slowest_ms(line: &str) -> Option<f64> {
    let words = line.trim().strip_prefix("echo ")?;
    let slowest = words.split_whitespace().find_map(|word| word.strip_prefix("slowest_us="))?;
    slowest.parse::<f64>().ok().map(|microseconds| microseconds / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_across_pieces_of_output() {
        let mut end = End { name: "tcp", ..End::default() };
        let console = |name: &str, text: &str| What::Console { name: name.to_owned(), bytes: text.into() };
        for (name, text) in [("tcp", "echo 3 verif"), ("vsock", "echo 1 verified=1 slowest_us=9\r\n")] {
            end.take(&console(name, text));
        }
        assert!(end.reports.is_empty());
        end.take(&console("tcp", "ied=7 slowest_us=2500\r\nbooted\r\necho 4 verified=9 slowest_us=1000\r\n"));
        assert_eq!(end.reports, [2.5, 1.0]);
        assert_eq!(end.wrong, None);
        end.take(&console("tcp", "echo: WRONG: 10.9.0.1:7: reset\n"));
        assert_eq!(end.wrong.as_deref(), Some("echo: WRONG: 10.9.0.1:7: reset\n"));
        assert_eq!(end.reports.len(), 2);
    }

    #[test]
    fn the_slowest_of_all_windows_are_compared() {
        let stalls = Stalls { with: vec![5.0, 30.0, 7.0], without: vec![4.0, 6.0, 12.0] };
        assert!((stalls.excess() - 18.0).abs() < 1e-9);
    }
}
