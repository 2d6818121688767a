// SPDX-License-Identifier: MIT OR Apache-2.0
//! The service as operators build it, with ten hosts: its memory, and how many requests it answers. The ten are one
//! host of the lab under ten names: the service has a line, a thread and all records for each, and each is read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use baton::config::Guest;
use lab::What;

use super::super::report::{Figure, Report};
use super::super::setup::{HostSetup, Started, keeper, temporary_folder};
use super::http::Connection;
use super::{Context, MEMORY, page};

/// The program, below the source's folder.
const PROGRAM: &str = "target/release/baton-serve";
/// The checker of the page, likewise.
const AXE: &str = "target/axe-core/axe.min.js";
const HOSTS: usize = 10;
/// Guests of a host, which sleep.
const GUESTS: usize = 2;
const GUEST_MEMORY: baton::size::Size = baton::size::Size::mebibytes(16);
/// How often each host is read before the memory is.
const READINGS: usize = 5;
/// Clients that ask at a time, and for how long they do.
const CLIENTS: usize = 4;
const SPAN: Duration = Duration::from_secs(3);
const STATUSES: &str = "/api/v1/hosts";
const MIB: f64 = 1024.0;

/// A service that runs.
pub(super) struct Service {
    child: Child,
    pub socket: PathBuf,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the program as operators do.
pub(super) fn program(context: &Context) -> Result<PathBuf> {
    context.step("operating: the service is built");
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&context.root).args(["build", "--locked", "--quiet", "--release", "--package", "serve"]);
    let status = cargo.status().context("cargo cannot be started")?;
    ensure!(status.success(), "the service cannot be built: {status}");
    context.made(PROGRAM)
}

/// Boots a host with sleeping guests.
pub(super) fn host(context: &Context, setup: HostSetup) -> Result<Started> {
    let sleeping = |number| -> Result<Guest> {
        Ok(Guest { name: format!("guest{number}"), debug_exit: false, ..keeper(context, "do=wait", GUEST_MEMORY)? })
    };
    let guests = (0..GUESTS).map(sleeping).collect::<Result<_>>()?;
    let mut host = HostSetup { guests, ..setup }.start(context)?;
    host.wait(context.timeout, "the host's first answer", |what| matches!(what, What::Ready).then_some(()))?;
    Ok(host)
}

impl Service {
    /// Starts the service for `hosts` names of the host with this socket, and waits until it serves.
    pub(super) fn start(program: &Path, folder: &Path, host: &Path, hosts: usize, more: &[&str]) -> Result<Self> {
        let socket = folder.join("serve.sock");
        let mut command = Command::new(program);
        for number in 0..hosts {
            command.arg("--host").arg(format!("host{number}=unix:{}", host.display()));
        }
        command.arg("--listen").arg(format!("unix:{}", socket.display())).args(["--refresh", "0.5"]).args(more);
        let child = command.stderr(Stdio::null()).stdin(Stdio::null()).spawn();
        let service =
            Self { child: child.with_context(|| format!("{} cannot be started", program.display()))?, socket };
        Ok(service)
    }

    /// Returns a connection to it, once it takes one.
    pub(super) fn connect(&self, limit: Duration) -> Result<Connection> {
        let end = Instant::now() + limit;
        loop {
            match Connection::open(&self.socket) {
                Ok(connection) => return Ok(connection),
                Err(error) if Instant::now() >= end => return Err(error.context("the service takes no client")),
                Err(_) => thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Waits until each host was read so often.
    fn wait_read(&self, limit: Duration) -> Result<()> {
        let (end, mut connection) = (Instant::now() + limit, self.connect(limit)?);
        let mut readings: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        loop {
            let statuses = connection.json(STATUSES)?;
            for status in statuses.as_array().into_iter().flatten() {
                let times = readings.entry(status["name"].to_string()).or_default();
                times.extend(status["read_ms"].as_u64());
            }
            if readings.len() == HOSTS && readings.values().all(|times| times.len() >= READINGS) {
                return Ok(());
            }
            if Instant::now() >= end {
                bail!("the hosts were not read {READINGS} times each within {limit:?}: {statuses}");
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns its resident memory in MiB.
    fn resident(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
        Ok(kibibytes.context("the system reports no resident memory")?.trim().parse::<f64>()? / MIB)
    }
}

/// Measures memory, requests and the page.
pub(super) fn run(context: &Context, program: &Path, report: &mut Report<'_>) -> Result<()> {
    let (mut read, mut used, mut rates, mut loads) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let browser = lab::browser::installed();
    for run in 1..=context.runs {
        context.step(&format!("operating: ten hosts, run {run} of {}", context.runs));
        let (host, folder) = (host(context, HostSetup::new(MEMORY))?, temporary_folder()?);
        let port = free_port()?;
        let more = ["--listen", &format!("tcp:{port}"), "--insecure-loopback"];
        let service = Service::start(program, folder.path(), &host.lab.dir().control_socket(), HOSTS, &more)?;
        service.wait_read(context.timeout)?;
        read.push(service.resident()?);
        rates.push(requests_per_second(&service)?);
        if let Some(browser) = &browser {
            let axe = context.root.join(AXE);
            loads.push(page::load(browser, folder.path(), port, &axe)?);
        }
        used.push(service.resident()?);
    }
    report.figure(Figure::measured("10 hosts, read", "resident", "MiB", read))?;
    let value = report.figure(Figure::measured("10 hosts, after all requests", "resident", "MiB", used))?;
    report.goal("serve_rss_mib", value)?;
    let value = report.figure(Figure::measured("4 clients, Unix socket", "requests", "requests/s", rates))?;
    report.goal("api_requests_per_s", value)?;
    report_page(context, &loads, report)
}

fn report_page(context: &Context, loads: &[page::Loaded], report: &mut Report<'_>) -> Result<()> {
    if loads.is_empty() {
        context.note("operating: no Chromium here: the page is left out");
        report.leave_out("axe_violations")?;
        return report.leave_out("page_load_s");
    }
    let seconds = loads.iter().map(|load| load.seconds).collect::<Vec<_>>();
    let value = report.figure(Figure::measured("10 hosts, Chromium", "load", "s", seconds))?;
    report.goal("page_load_s", value)?;
    let violations: Vec<f64> = loads.iter().filter_map(|load| load.violations).collect();
    if violations.is_empty() {
        context.note("operating: no axe-core here: the page is not checked");
        return report.leave_out("axe_violations");
    }
    let value = report.figure(Figure::measured("10 hosts, axe-core", "violations", "violations", violations))?;
    report.goal("axe_violations", value)
}

/// Returns an address that was free a moment ago.
fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Has clients ask for all hosts without a pause.
fn requests_per_second(service: &Service) -> Result<f64> {
    let begun = Instant::now();
    let ask = || -> Result<u64> {
        let (mut connection, mut count) = (Connection::open(&service.socket)?, 0);
        while begun.elapsed() < SPAN {
            connection.get(STATUSES)?;
            count += 1;
        }
        Ok(count)
    };
    let counts: Result<Vec<u64>> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(ask)).collect();
        clients.into_iter().map(|client| client.join().unwrap_or_else(|_| bail!("a client has panicked"))).collect()
    });
    Ok(counts?.iter().sum::<u64>() as f64 / begun.elapsed().as_secs_f64())
}
