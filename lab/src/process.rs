// SPDX-License-Identifier: MIT OR Apache-2.0
//! An emulator as a child process: its output line by line with time stamps, its end by its own process id.

use std::io::{self, BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::bound;

/// The stream that a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The process's standard output: with `-serial stdio` the machine's COM1.
    Stdout,
    /// The process's standard error: the emulator's own messages.
    Stderr,
}

/// A line of output, or the unfinished one when the process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Time of its end since the process was started.
    pub at: Duration,
    /// The stream that it came from.
    pub source: Source,
    /// Its text without the line end; invalid UTF-8 is replaced.
    pub text: String,
}

/// A running process. Dropping it kills it.
pub struct Process {
    child: Child,
    started: Instant,
    readers: Vec<JoinHandle<()>>,
}

/// The longest line that is kept together: a machine that never ends its line must not fill our memory.
const MAX_LINE_BYTES: u64 = 64 * 1024;

impl Process {
    /// Starts `command` with nothing on its standard input; `on_line` is called from other threads, in order per
    /// source.
    pub fn spawn(mut command: Command, on_line: impl Fn(Line) + Clone + Send + 'static) -> io::Result<Self> {
        let started = Instant::now();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().map(|pipe| read_lines(pipe, Source::Stdout, started, on_line.clone()));
        let stderr = child.stderr.take().map(|pipe| read_lines(pipe, Source::Stderr, started, on_line));
        Ok(Self { child, started, readers: stdout.into_iter().chain(stderr).collect() })
    }

    /// Starts an emulator, which ends with the calling thread where the program calls [`bound::play`].
    pub fn spawn_emulator(command: Command, on_line: impl Fn(Line) + Clone + Send + 'static) -> io::Result<Self> {
        Self::spawn(bound::bound(command), on_line)
    }

    /// Hands on the lines of another stream of its own, which it closes when it ends, as its standard output.
    pub fn read_too(&mut self, stream: impl Read + Send + 'static, on_line: impl Fn(Line) + Send + 'static) {
        self.readers.push(read_lines(stream, Source::Stdout, self.started, on_line));
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns its exit status once it has ended and every line of it was handed on.
    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten()?;
        self.join();
        Some(status)
    }

    /// Waits for its end; returns its exit status.
    pub fn wait(&mut self) -> ExitStatus {
        let status = self.child.wait().unwrap_or_default();
        self.join();
        status
    }

    /// Ends it at once, by its process id; does nothing if it has ended.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn join(&mut self) {
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read_lines(
    pipe: impl Read + Send + 'static,
    source: Source,
    started: Instant,
    on_line: impl Fn(Line) + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut bytes = Vec::new();
        while reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
            let text = String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned();
            on_line(Line { at: started.elapsed(), source, text });
            bytes.clear();
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn every_line_comes_before_the_end() {
        let (sender, lines) = mpsc::channel();
        let on_line = move |line: Line| drop(sender.send((line.source, line.text)));
        let mut process = Process::spawn(shell("printf 'one\\r\\ntwo'; exit 7"), on_line).expect("started");
        assert_eq!(process.wait().code(), Some(7));
        let lines: Vec<_> = lines.try_iter().collect();
        assert_eq!(lines, [(Source::Stdout, "one".to_owned()), (Source::Stdout, "two".to_owned())]);
    }

    #[test]
    fn a_process_that_would_not_end_is_killed() {
        let mut process = Process::spawn(shell("exec sleep 1000"), |_| ()).expect("started");
        assert!(process.try_wait().is_none());
        process.kill();
        assert!(!process.wait().success());
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let (sender, lines) = mpsc::channel();
        let on_line = move |line: Line| sender.send(line.text.len()).expect("the receiver lives");
        let mut process = Process::spawn(shell("head -c 100000 /dev/zero | tr '\\0' x"), on_line).expect("started");
        process.wait();
        assert_eq!(lines.try_iter().collect::<Vec<_>>(), [65536, 100_000 - 65536]);
    }
}
