// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host on a Unix socket that answers as a real one does.

use std::borrow::Cow;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use wire::{
    CpuPerf, Decoder, Event, EventKind, Frame, HostInfo, Level, LogRecord, MAX_CONSOLE_BYTES, MAX_FRAME_BYTES,
    PciProgress, Refusal, RefusalCode, ReplyBody, Request, RequestBody, Response, Stream, Subscription, TimelinePage,
    TimelinePoint, UpdateReport, UpdateSteps, VcpuPerf, VmInfo, VmState, Vulnerability, encode,
};

use super::fake_own::Own;
use super::parts::{boot, count, cpu, guest, pci_functions, port, survey, update};

/// The state of a host.
pub struct State {
    pub info: HostInfo,
    pub guests: Vec<VmInfo>,
    pub events: Vec<Event>,
    pub log: Vec<LogRecord<'static>>,
    pub points: Vec<TimelinePoint>,
    pub received: u64,
    /// The figures of each vCPU, and the nanoseconds of 10 ms that it runs.
    pub figures: VcpuPerf,
    pub load_ns: u64,
    /// The counters of its CPU.
    pub counts: CpuPerf,
    /// True while an update goes on.
    pub holds_update: bool,
    /// True if it answers nothing.
    pub is_mute: bool,
    /// The refusal of an update.
    pub refuses: Option<Refusal>,
    /// The output of guests, which a subscriber to consoles gets.
    pub output: Vec<(&'static str, Vec<u8>)>,
    /// True if a client has subscribed to consoles, and the guests that it has chosen; none: all.
    pub has_consoles: bool,
    pub consoles_of: Vec<String>,
    /// The bytes that were typed on `web`, which echoes them.
    pub typed: Vec<u8>,
    /// The number of requests that it has answered.
    pub answered: u64,
    /// The configuration, files and keys.
    pub own: Own,
}

/// A host that runs.
#[derive(Clone)]
pub struct FakeHost {
    pub socket: PathBuf,
    pub state: Arc<Mutex<State>>,
    lines: Arc<Mutex<Vec<UnixStream>>>,
}

impl FakeHost {
    /// Starts a host with the guests `web`, which runs, and `db`, which does not.
    pub fn start(folder: &Path, name: &str) -> Self {
        let mut info = baton::testing::host_info();
        info.generation = 1;
        let log = LogRecord {
            sequence: 0,
            time_ns: 7,
            cpu: 0,
            level: Level::Warn,
            module: "boot".into(),
            text: "<script>alert(1)</script>".into(),
        };
        let state = State {
            info,
            guests: vec![guest("web", VmState::Running), guest("db", VmState::Stopped)],
            events: vec![Event { sequence: 0, time_ns: 5, kind: EventKind::HostReady }],
            log: vec![log],
            points: boot(),
            received: 0,
            figures: VcpuPerf { ran_ns: 1_500_000_000, waited_ns: 250_000_000, ..VcpuPerf::default() },
            load_ns: 0,
            counts: CpuPerf::default(),
            holds_update: false,
            is_mute: false,
            refuses: None,
            output: vec![],
            has_consoles: false,
            consoles_of: vec![],
            typed: vec![],
            answered: 0,
            own: Own::new(folder),
        };
        let socket = folder.join(format!("{name}.sock"));
        let host = Self { socket, state: Arc::new(Mutex::new(state)), lines: Arc::default() };
        host.listen();
        host
    }

    /// Listens (again).
    pub fn listen(&self) {
        let _ = fs::remove_file(&self.socket);
        let listener = UnixListener::bind(&self.socket).expect("a socket");
        let host = self.clone();
        thread::spawn(move || {
            while let Ok((line, _)) = listener.accept() {
                host.lines.lock().expect("lines").push(line.try_clone().expect("a copy"));
                let host = host.clone();
                thread::spawn(move || host.speak(line));
            }
        });
    }

    /// Cuts every line; no client gets another one until [`Self::listen`].
    pub fn vanish(&self) {
        let _ = fs::remove_file(&self.socket);
        for line in self.lines.lock().expect("lines").drain(..) {
            let _ = line.shutdown(std::net::Shutdown::Both);
        }
    }

    fn speak(&self, mut line: UnixStream) {
        let mut decoder = Decoder::default();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = line.read(&mut buffer) {
            let mut requests = Vec::new();
            decoder.push(&buffer[..count], |frame| {
                if let Ok(Frame::Request(request)) = frame {
                    requests.push(request);
                }
            });
            for request in requests {
                self.answer(&mut line, request);
            }
        }
    }

    fn answer(&self, line: &mut UnixStream, Request { id, body }: Request) {
        while matches!(body, RequestBody::Update { .. }) && self.state.lock().expect("state").holds_update {
            thread::sleep(Duration::from_millis(10));
        }
        let before = self.state.lock().expect("state").events.len();
        let result = self.carried_out(body);
        let mut state = self.state.lock().expect("state");
        if state.is_mute {
            return;
        }
        state.answered += 1;
        let mut send = |frame: &Frame<'_>| {
            let mut buffer = [0; MAX_FRAME_BYTES];
            let _ = line.write_all(encode(frame, &mut buffer).expect("it fits"));
        };
        for event in &state.events[before..] {
            send(&Frame::Stream(Stream::Event(Cow::Borrowed(event))));
        }
        send(&Frame::Response(Response { id, result }));
        let output = state.take_output();
        drop(state);
        for (name, bytes) in &output {
            for piece in bytes.chunks(MAX_CONSOLE_BYTES) {
                let (name, bytes) = (Cow::Borrowed(*name), Cow::Borrowed(piece));
                let mut buffer = [0; MAX_FRAME_BYTES];
                let frame = Frame::Stream(Stream::Console { name, bytes });
                let _ = line.write_all(encode(&frame, &mut buffer).expect("it fits"));
            }
        }
    }

    fn carried_out(&self, body: RequestBody) -> Result<ReplyBody, Refusal> {
        let mut state = self.state.lock().expect("state");
        Ok(match body {
            RequestBody::Info => {
                state.info.uptime_ns += 1_000_000;
                ReplyBody::Info(state.info.clone())
            }
            RequestBody::VmList { .. } => ReplyBody::Vms { vms: state.guests.clone(), next_index: None },
            RequestBody::CpuList { .. } => ReplyBody::Cpus { cpus: vec![cpu()], next_index: None },
            RequestBody::DiskList { .. } => ReplyBody::Disks { disks: vec![baton::testing::disk()], next_index: None },
            RequestBody::NetList { .. } => ReplyBody::NetPorts { ports: vec![port()], next_index: None },
            RequestBody::Iommus => ReplyBody::Iommus(vec![]),
            RequestBody::Vulnerabilities => ReplyBody::Vulnerabilities(vec![Vulnerability {
                name: "spectre_v2".to_owned(),
                status: "Mitigation: Retpolines".to_owned(),
            }]),
            RequestBody::Events { from_sequence, .. } => {
                let events: Vec<_> = state.events.iter().skip(from_sequence as usize).cloned().collect();
                ReplyBody::Events { next_sequence: from_sequence + events.len() as u64, events }
            }
            RequestBody::Log { from_sequence, .. } => {
                let records: Vec<_> = state.log.iter().skip(from_sequence as usize).cloned().collect();
                ReplyBody::Log { next_sequence: from_sequence + records.len() as u64, records }
            }
            RequestBody::Timeline { .. } => {
                let points = state.points.clone();
                ReplyBody::Timeline(TimelinePage { cpu: 0, ticks_per_second: 1_000_000, points, lost: 0, next: None })
            }
            RequestBody::PciList { .. } => {
                ReplyBody::PciFunctions { survey: survey(), functions: pci_functions(), next_index: None }
            }
            RequestBody::CpuPerf { .. } => ReplyBody::CpuPerf { asked_ns: 1, latest: Some(count(&mut state.counts)) },
            RequestBody::VmPerf { .. } => {
                state.figures.at_ns += 10_000_000;
                state.figures.ran_ns += state.load_ns;
                ReplyBody::Perf { asked_ns: 1, latest: Some(Box::new(state.figures.clone())) }
            }
            RequestBody::PciAssign { guest, .. } => {
                ReplyBody::PciAssignment { place: (0, 0, 4, 0), guest, progress: PciProgress::Done }
            }
            RequestBody::VmStart { name } => state.set(&name, VmState::Stopped, VmState::Running)?,
            RequestBody::VmStop { name } => state.set(&name, VmState::Running, VmState::Stopped)?,
            RequestBody::Subscribe(Subscription { consoles, .. }) => {
                (state.has_consoles, state.consoles_of) = (consoles, vec![]);
                ReplyBody::Done
            }
            RequestBody::SubscribeConsoles { names } => {
                (state.has_consoles, state.consoles_of) = (!names.is_empty(), names);
                ReplyBody::Done
            }
            RequestBody::ConsoleInput { bytes, .. } => {
                state.typed.extend(&bytes);
                state.output.push(("web", bytes));
                ReplyBody::Done
            }
            RequestBody::UploadBegin { kind, bytes, sha256 } => {
                state.own.announce(kind, bytes, &sha256);
                ReplyBody::Received { next_offset: state.received }
            }
            RequestBody::UploadData { offset, bytes } => {
                state.received = state.received.max(offset + bytes.len() as u64);
                ReplyBody::Received { next_offset: state.received }
            }
            RequestBody::UploadPacked { offset, bytes, .. } => {
                state.received = state.received.max(offset + u64::from(bytes));
                ReplyBody::Received { next_offset: state.received }
            }
            RequestBody::Update { is_dry_run, .. } => state.update(is_dry_run)?,
            other => state.configured(other)?,
        })
    }
}

impl State {
    pub fn event(&mut self, kind: EventKind) {
        let sequence = self.events.len() as u64;
        self.events.push(Event { sequence, time_ns: 9, kind });
    }

    /// Takes the output that the client gets; the rest stays.
    fn take_output(&mut self) -> Vec<(&'static str, Vec<u8>)> {
        let (has, of) = (self.has_consoles, &self.consoles_of);
        let is_chosen = |name: &str| has && (of.is_empty() || of.iter().any(|chosen| chosen == name));
        let (chosen, kept) = std::mem::take(&mut self.output).into_iter().partition(|(name, _)| is_chosen(name));
        self.output = kept;
        chosen
    }

    pub fn set(&mut self, name: &str, from: VmState, to: VmState) -> Result<ReplyBody, Refusal> {
        let refusal = |code, reason: String| Refusal { code, reason, hint: "`baton vm list` shows it".to_owned() };
        let Some(guest) = self.guests.iter_mut().find(|guest| guest.name == name) else {
            return Err(refusal(RefusalCode::UnknownVm, format!("there is no machine {name}")));
        };
        if guest.state != from {
            return Err(refusal(RefusalCode::Invalid, format!("{name} is {}", guest.state)));
        }
        guest.state = to;
        let name = name.to_owned();
        self.event(match to {
            VmState::Running => EventKind::VmStarted { name },
            _ => EventKind::VmStopped { name, reason: "the operator stopped it".to_owned() },
        });
        Ok(ReplyBody::Done)
    }

    pub fn update(&mut self, is_dry_run: bool) -> Result<ReplyBody, Refusal> {
        self.received = 0;
        if let Some(refusal) = self.refuses.clone() {
            return Err(refusal);
        }
        // Long enough for a person to see it under way.
        thread::sleep(Duration::from_millis(20));
        if !is_dry_run {
            self.info.generation += 1;
            let generation = self.info.generation as u32;
            self.points.extend(update(generation));
            self.event(EventKind::HostUpdated { generation: generation.into() });
        }
        Ok(ReplyBody::Updated(UpdateReport {
            is_dry_run,
            generation: self.info.generation,
            blackout_ns: if is_dry_run { 0 } else { 150_000 },
            cpus: vec![UpdateSteps { entered_ns: 150_000, ..UpdateSteps::default() }],
            ..UpdateReport::default()
        }))
    }
}
