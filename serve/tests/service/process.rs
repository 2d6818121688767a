// SPDX-License-Identifier: MIT OR Apache-2.0
//! A service that is a process of its own, for tests of how it ends. Its end is that of a power failure, unless a test
//! has it end otherwise.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

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
