// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host with console input: COM1 in both directions, COM2 without a peer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use lab::Machine;
use tempfile::TempDir;

use crate::recipe::Recipe;

/// Longest time for the next line.
const LINE_LIMIT: Duration = Duration::from_secs(60);

/// A running host. Dropping it ends the emulator.
pub struct TypedHost {
    process: Child,
    lines: Receiver<String>,
    /// Every line so far.
    pub seen: Vec<String>,
    _control: UnixListener,
    _folder: TempDir,
}

impl TypedHost {
    /// Starts it without a bundle; `change` has the last word about the machine.
    pub fn start(recipe: &Recipe, change: impl FnOnce(&mut Machine)) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut machine = recipe.machine(folder.path(), None)?;
        change(&mut machine);
        let control = folder.path().join("com2");
        let listener = UnixListener::bind(&control)?;
        let mut command = machine.command(&control)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn()?;
        let output = process.stdout.take().context("its output is a pipe")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                let _ = sender.send(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
        });
        Ok(Self { process, lines, seen: Vec::new(), _control: listener, _folder: folder })
    }

    /// Presses keys.
    pub fn types(&mut self, keys: &str) -> Result<()> {
        let input = self.process.stdin.as_mut().context("its input is a pipe")?;
        input.write_all(keys.as_bytes())?;
        Ok(input.flush()?)
    }

    /// Waits for a new line that contains `part`; returns all new lines up to it.
    pub fn logs(&mut self, part: &str) -> Result<Vec<String>> {
        let (from, end) = (self.seen.len(), Instant::now() + LINE_LIMIT);
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            let is_wanted = line.contains(part);
            self.seen.push(line);
            if is_wanted {
                return Ok(self.seen[from..].to_vec());
            }
        }
        bail!("no line with {part:?} came within {LINE_LIMIT:?}: {:#?}", self.seen)
    }

    /// Seconds of CPU time that the emulator takes while `time` passes.
    pub fn cpu_seconds(&self, time: Duration) -> Result<f64> {
        let before = lab::CpuTime::of(self.process.id())?;
        thread::sleep(time);
        let after = lab::CpuTime::of(self.process.id())?;
        Ok(after.since(&before).as_secs_f64())
    }
}

impl Drop for TypedHost {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
