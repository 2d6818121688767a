// SPDX-License-Identifier: MIT OR Apache-2.0
//! A service that is a process of its own, for tests of its end: that of a power failure ([`Process`]), or one by a
//! signal ([`Service`]).

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::common::{LIMIT, ask};
use super::fake::FakeHost;

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_baton-serve");

pub struct Process {
    pub child: Child,
    socket: PathBuf,
}

impl Process {
    /// Starts the service by a command, for a host, with its files in a folder.
    pub fn start(mut command: Command, folder: &Path, host: &FakeHost) -> Self {
        let socket = folder.join("serve.sock");
        command.args(["--refresh", "0.1", "--host"]).arg(format!("rack1=unix:{}", host.socket.display()));
        command.arg("--listen").arg(format!("unix:{}", socket.display()));
        command.arg("--history").arg(folder.join("history.redb"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("started");
        Self { child, socket }
    }

    pub fn connected(&self) {
        self.until("rack1 is connected", "hosts/rack1", |status| status["state"] == "connected");
    }

    /// A connection; `None` while it takes none.
    pub fn stream(&self) -> Option<UnixStream> {
        let stream = UnixStream::connect(&self.socket).ok()?;
        stream.set_read_timeout(Some(LIMIT)).expect("set");
        Some(stream)
    }

    pub fn ask(&self, method: &str, path: &str) -> Option<Value> {
        let answer = ask(&mut self.stream()?, method, &format!("/api/v1/{path}"), "Host: baton\r\n", b"");
        Some(answer.json())
    }

    pub fn get(&self, path: &str) -> Option<Value> {
        self.ask("GET", path)
    }

    /// Waits for an answer that meets a condition, and returns it.
    pub fn until(&self, what: &str, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + LIMIT;
        loop {
            let answer = self.get(path);
            if let Some(answer) = answer.clone().filter(|answer| is_so(answer)) {
                return answer;
            }
            assert!(Instant::now() < end, "not within {LIMIT:?}: {what}: {answer:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A service, and its standard error.
pub struct Service {
    pub process: Process,
    errors: BufReader<ChildStderr>,
}

impl Service {
    /// Starts a service, and waits until it serves.
    pub fn start(folder: &Path, host: &FakeHost, more: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.arg("--audit").arg(folder.join("audit.jsonl")).args(more).stderr(Stdio::piped());
        let mut process = Process::start(command, folder, host);
        let errors = BufReader::new(process.child.stderr.take().expect("its errors"));
        let mut service = Self { process, errors };
        service.error("ready at");
        service
    }

    /// Starts a service that has reached the host.
    pub fn connected(folder: &Path, host: &FakeHost, more: &[&str]) -> Self {
        let service = Self::start(folder, host, more);
        service.process.connected();
        service
    }

    /// Reads its errors up to a line that contains this.
    pub fn error(&mut self, text: &str) -> String {
        let mut lines = String::new();
        while !lines.contains(text) {
            assert_ne!(self.errors.read_line(&mut lines).expect("read"), 0, "no {text:?} in {lines:?}");
        }
        lines
    }

    pub fn stream(&self) -> UnixStream {
        self.process.stream().expect("connected")
    }

    pub fn ask(&self, method: &str, path: &str) -> Value {
        self.process.ask(method, path).expect("an answer")
    }

    /// Begins to listen to its news.
    pub fn news(&self) -> BufReader<UnixStream> {
        self.follow("stream", "event: host")
    }

    /// Begins to read a stream, up to a line that contains this.
    pub fn follow(&self, path: &str, text: &str) -> BufReader<UnixStream> {
        let mut reader = BufReader::new(self.stream());
        let head = format!("GET /api/v1/{path} HTTP/1.1\r\nHost: baton\r\n\r\n");
        reader.get_mut().write_all(head.as_bytes()).expect("asked");
        let mut lines = String::new();
        while !lines.contains(text) {
            assert_ne!(reader.read_line(&mut lines).expect("a stream"), 0, "{lines}");
        }
        reader
    }

    pub fn signal(&self, signal: Signal) {
        let process = Pid::from_child(&self.process.child);
        kill_process(process, signal).expect("it runs");
    }

    /// Has an update begin that does not end before the host lets it.
    pub fn begin_update(&self, host: &FakeHost) {
        host.state.lock().expect("state").holds_update = true;
        assert_eq!(self.ask("POST", "hosts/rack1/update?by=bundle")["step"], "waiting");
        let is_last =
            |all: &Value| all.as_array().and_then(|all| all.last()).is_some_and(|last| last["step"] == "switching");
        self.process.until("it is under way", "hosts/rack1/updates", is_last);
    }

    pub fn ended(&mut self) -> ExitStatus {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.process.child.try_wait().expect("a child") {
                return status;
            }
            assert!(Instant::now() < end, "it goes on after {LIMIT:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
