// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton top` with a host on a Unix socket that answers as a real one does, on a terminal and without one.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use wire::{
    ApicMode, CpuInfo, CpuPerf, CpuState, CpuVcpu, Decoder, ExitCount, ExitKind, Frame, GuestTicks, HostInfo,
    MAX_FRAME_BYTES, ReplyBody, Request, RequestBody, Response, VcpuPerf, Virtualization, VmInfo, VmState, encode,
};

/// The longest time for anything.
const LIMIT: Duration = Duration::from_secs(60);
const SECOND: u64 = 1_000_000_000;

/// A host; its time goes on by a second with each description that is asked for.
#[derive(Default)]
struct FakeHost {
    seconds: u64,
}

impl FakeHost {
    fn listen(path: &Path) {
        let listener = UnixListener::bind(path).expect("a socket");
        thread::spawn(move || {
            while let Ok((line, _)) = listener.accept() {
                thread::spawn(|| Self::default().speak(line));
            }
        });
    }

    fn speak(mut self, mut line: UnixStream) {
        let (mut decoder, mut buffer) = (Box::<Decoder>::default(), [0; 4096]);
        while let Ok(count @ 1..) = line.read(&mut buffer) {
            let mut requests = Vec::new();
            decoder.push(&buffer[..count], |frame| {
                if let Ok(Frame::Request(request)) = frame {
                    requests.push(request);
                }
            });
            for Request { id, body } in requests {
                let response = Frame::Response(Response { id, result: Ok(self.reply(&body)) });
                let mut bytes = [0; MAX_FRAME_BYTES];
                let _ = line.write_all(encode(&response, &mut bytes).expect("it fits"));
            }
        }
    }

    fn reply(&mut self, body: &RequestBody) -> ReplyBody {
        let at_ns = self.seconds * SECOND;
        match body {
            RequestBody::Info => {
                self.seconds += 1;
                ReplyBody::Info(info(self.seconds * SECOND))
            }
            RequestBody::VmList { .. } => ReplyBody::Vms { vms: vec![guest(7 * self.seconds)], next_index: None },
            RequestBody::CpuList { .. } => ReplyBody::Cpus { cpus: vec![cpu()], next_index: None },
            RequestBody::VmPerf { .. } => {
                let latest = VcpuPerf { at_ns, ran_ns: at_ns / 4 * 3, waited_ns: at_ns / 5, ..VcpuPerf::default() };
                ReplyBody::Perf { asked_ns: at_ns, latest: Some(Box::new(latest)) }
            }
            RequestBody::CpuPerf { .. } => {
                let guests = vec![GuestTicks { guest: 0, vcpu: 0, ticks: at_ns / 4 * 3 }];
                let (host_cycles, idle_ticks) = (at_ns / 100, at_ns / 100 * 24);
                let host_reference_cycles = host_cycles;
                let perf = CpuPerf {
                    at_ns,
                    ticks: at_ns,
                    host_cycles,
                    host_reference_cycles,
                    idle_ticks,
                    guests,
                    ..CpuPerf::default()
                };
                ReplyBody::CpuPerf { asked_ns: at_ns, latest: Some(perf) }
            }
            _ => ReplyBody::Done,
        }
    }
}

fn info(uptime_ns: u64) -> HostInfo {
    HostInfo {
        version: "0.1.0".to_owned(),
        image_bytes: 0,
        cpus: 1,
        memory_total_bytes: 2 << 30,
        memory_free_bytes: 1 << 30,
        host_overhead_bytes: 0,
        uptime_ns,
        virtualization: Virtualization::Svm,
        features: vec![],
        apic_mode: ApicMode::XApic,
        tsc_hz: SECOND,
        generation: 2,
        unclaimed_nmis: 0,
        unexpected_interrupts: 0,
        last_unexpected_vector: None,
        build: String::new(),
        security_version: 1,
        permits_downgrade: true,
        oldest_handover: 3,
        newest_handover: 4,
        trusted_keys: vec![],
        signer: None,
    }
}

fn guest(exits: u64) -> VmInfo {
    VmInfo {
        name: "web".to_owned(),
        state: VmState::Running,
        vcpus: 1,
        memory_bytes: 64 << 20,
        resident_bytes: None,
        cpus: vec![0],
        since_ns: 0,
        throttled_since_ns: None,
        exits_total: exits,
        exits: vec![ExitCount { kind: ExitKind::MsrWrite, count: exits }],
        reason: None,
        console: wire::ConsoleOutput::default(),
    }
}

fn cpu() -> CpuInfo {
    let vcpus = vec![CpuVcpu { vm: "web".to_owned(), vcpu: 0 }];
    CpuInfo { index: 0, apic_id: 0, state: CpuState::Online, reason: None, busy_permille: Some(760), vcpus }
}

/// `baton top` for this host.
fn top(socket: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.arg("top").arg(format!("--connect=unix:{}", socket.display())).args(arguments);
    command
}

fn ended(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().expect("started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn one_interval_is_printed_without_a_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("com2.sock");
    FakeHost::listen(&socket);
    let output = ended(&mut top(&socket, &["--once", "--interval=0.5"]));
    let table = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let cells: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(cells.contains(&vec!["0", "online", "75.0", "1.0", "24.0", "web/0"]), "{table}");
    let web = vec!["web", "running", "1", "64", "MiB", "75.0", "20.0", "(vCPU", "0:20)", "7", "msr-write", "7"];
    assert!(cells.contains(&web), "{table}");
    let output = ended(&mut top(&socket, &["--once", "--json", "--interval=0.5"]));
    let view: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(view["guests"][0]["exits"][0], serde_json::json!({ "kind": "msr-write", "per_s": 7.0 }));
    assert_eq!((&view["cpus"][0]["guest"], &view["guests"][0]["wait"]), (&0.75.into(), &0.2.into()));
}

#[test]
fn objects_are_printed_until_their_reader_has_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("com2.sock");
    FakeHost::listen(&socket);
    let mut child = top(&socket, &["--json", "--interval=0.5"]).stdout(Stdio::piped()).spawn().expect("started");
    let mut lines = Vec::new();
    let mut output = child.stdout.take().expect("its output");
    while lines.iter().filter(|byte| **byte == b'\n').count() < 2 {
        let mut byte = [0];
        assert_eq!(output.read(&mut byte).expect("read"), 1, "it goes on");
        lines.push(byte[0]);
    }
    drop(output);
    assert_eq!(status(&mut child), Some(141));
}

#[test]
fn without_a_terminal_there_is_no_picture_but_a_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = ended(&mut top(&folder.path().join("com2.sock"), &[]));
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
    assert!(error.contains("is no terminal; --once prints one table"), "{error}");
}

/// A terminal, seen from its other end: its output, and a place to type.
struct Terminal {
    keys: File,
    shown: Receiver<Vec<u8>>,
    end: OwnedFd,
}

impl Terminal {
    fn new() -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keys).and_then(|()| unlockpt(&keys)).expect("unlocked");
        let name = ptsname(&keys, Vec::new()).expect("a name");
        let end = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its end");
        tcsetwinsize(&end, Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
        let (send, shown) = channel();
        let keys = File::from(keys);
        let mut screen = keys.try_clone().expect("a copy");
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                if send.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { keys, shown, end }
    }

    fn start(&self, mut command: Command) -> Child {
        let end = || Stdio::from(self.end.try_clone().expect("a copy"));
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm").spawn().expect("started")
    }

    /// Waits until all of these were shown; returns everything until then.
    fn until(&self, wanted: &[&str]) -> String {
        let (mut bytes, end) = (Vec::new(), Instant::now() + LIMIT);
        loop {
            let shown = text(&bytes);
            if wanted.iter().all(|wanted| shown.contains(wanted)) {
                return shown;
            }
            let left = end.saturating_duration_since(Instant::now());
            bytes.extend(self.shown.recv_timeout(left).unwrap_or_else(|_| panic!("no {wanted:?} in {shown:?}")));
        }
    }
}

fn status(child: &mut Child) -> Option<i32> {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait().expect("waited for") {
            return status.code();
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            panic!("it does not end");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_terminal_shows_the_host_live_and_is_itself_again_when_the_person_leaves() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("com2.sock");
    FakeHost::listen(&socket);
    let mut terminal = Terminal::new();
    let modes = |terminal: &Terminal| tcgetattr(&terminal.end).expect("modes").local_modes;
    let before = modes(&terminal);
    let mut child = terminal.start(top(&socket, &["--interval=0.5"]));
    // Cells that have not changed are not drawn again: only the first picture is whole.
    let shown = terminal.until(&["GUEST%", "CPU%*", "web", "75.0", "msr-write"]);
    assert!(shown.contains("\u{1b}[?1049h"), "the other screen is used: {shown:?}");
    assert_ne!(modes(&terminal), before, "keys come one by one");
    terminal.keys.write_all(b"w").expect("typed");
    // Only the mark moves: to the end of the column WAIT%.
    terminal.until(&["\u{1b}[6;58H*"]);
    terminal.keys.write_all(b"q").expect("typed");
    terminal.until(&["\u{1b}[?1049l"]);
    assert_eq!(status(&mut child), Some(0));
    assert_eq!(modes(&terminal), before, "the terminal is as before");
}
