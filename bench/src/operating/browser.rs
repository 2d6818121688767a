// SPDX-License-Identifier: MIT OR Apache-2.0
//! As much of Chromium's DevTools protocol as it takes to open a page and to evaluate an expression in it, over two
//! pipes (`--remote-debugging-pipe`): JSON, each message ended by a zero byte. The pipes have names, so that a shell
//! can give them to the browser as its descriptors 3 and 4.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

/// The longest wait for an answer: a browser that starts on a crowded machine takes long.
const PATIENCE: Duration = Duration::from_secs(90);
/// The end of a message.
const END: u8 = 0;

/// A browser without a window.
pub(super) struct Browser {
    child: Child,
    requests: File,
    answers: Receiver<Value>,
    /// Where answers are written; here, the end of reading.
    end: File,
    last_id: u64,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The thread that reads finds that the receiver is gone.
        let _ = self.end.write_all(b"null\0");
    }
}

impl Browser {
    /// Starts the browser with its profile and its pipes in `folder`.
    pub(super) fn start(program: &Path, folder: &Path) -> Result<Self> {
        let paths = ["requests", "answers"].map(|name| folder.join(name));
        let made = Command::new("mkfifo").args(&paths).status().context("mkfifo cannot be started")?;
        ensure!(made.success(), "the browser's pipes cannot be made: {made}");
        // Opened for both directions: opening a pipe for one of them waits for the other end.
        let open = |path| File::options().read(true).write(true).open(path);
        let (requests, replies) = (open(&paths[0])?, open(&paths[1])?);
        let end = replies.try_clone()?;
        let mut command = Command::new("sh");
        command.args(["-c", "in=$1 out=$2; shift 2; exec \"$@\" 3<\"$in\" 4>\"$out\"", "sh"]).args(&paths);
        command.arg(program).args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
        command.arg("--remote-debugging-pipe").arg(format!("--user-data-dir={}", folder.join("profile").display()));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.with_context(|| format!("{} cannot be started", program.display()))?;
        Ok(Self { child, requests, answers: read(replies), end, last_id: 0 })
    }

    /// Has the browser, or the page of a session, do something; returns the result.
    pub(super) fn ask(&mut self, method: &str, parameters: Value, session: Option<&str>) -> Result<Value> {
        self.last_id += 1;
        let mut request = json!({ "id": self.last_id, "method": method, "params": parameters });
        if let Some(session) = session {
            request["sessionId"] = session.into();
        }
        let mut bytes = serde_json::to_vec(&request)?;
        bytes.push(END);
        self.requests.write_all(&bytes)?;
        let end = Instant::now() + PATIENCE;
        // Events come in between.
        while let Ok(answer) = self.answers.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if answer["id"] == self.last_id {
                ensure!(answer["error"].is_null(), "the browser refuses {method}: {}", answer["error"]);
                return Ok(answer["result"].clone());
            }
        }
        bail!("the browser does not answer {method} within {PATIENCE:?}")
    }
}

/// Reads messages until the receiver is dropped.
fn read(replies: File) -> Receiver<Value> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut replies = BufReader::new(replies);
        loop {
            let mut message = Vec::new();
            if replies.read_until(END, &mut message).is_err() || message.pop() != Some(END) {
                return;
            }
            let message = serde_json::from_slice(&message).unwrap_or_default();
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    receiver
}
