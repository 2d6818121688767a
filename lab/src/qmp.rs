// SPDX-License-Identifier: MIT OR Apache-2.0
//! As much of QEMU's monitor protocol as it takes to ask how many instructions a machine has executed, to reset it, and
//! to give its human monitor a command: JSON, a line each.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

/// Longest time for the emulator to open its monitor.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);
/// The time within which the emulator answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Events that may come before an answer.
const MOST_EVENTS: usize = 1000;

/// Returns the emulator's arguments for a monitor at `socket`.
pub fn arguments(socket: &Path) -> [OsString; 2] {
    // The emulator's option parser wants commas doubled.
    let path = socket.to_string_lossy().replace(',', ",,");
    ["-qmp".into(), format!("unix:{path},server=on,wait=off").into()]
}

/// A QMP connection to an emulator.
pub struct Monitor {
    reader: BufReader<UnixStream>,
}

impl Monitor {
    /// Connects to an emulator, which may still be starting.
    pub fn connect(socket: &Path) -> Result<Self> {
        let stream = connect_within(OPEN_TIMEOUT, socket).context("the emulator's monitor cannot be reached")?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        let mut monitor = Self { reader: BufReader::new(stream) };
        monitor.execute("qmp_capabilities", None)?;
        Ok(monitor)
    }

    /// Returns the instructions that all CPUs of the machine together have executed since its start.
    pub fn instructions(&mut self) -> Result<u64> {
        let answer = self.execute("query-replay", None)?;
        let count = answer.get("icount").and_then(Value::as_u64);
        count
            .with_context(|| format!("the emulator's answer has no instruction count: {answer}; start it with -icount"))
    }

    /// Resets the machine, as its reset button would.
    pub fn reset(&mut self) -> Result<()> {
        self.execute("system_reset", None).map(drop)
    }

    /// Executes a command of the human monitor; returns its output.
    pub fn human(&mut self, command: &str) -> Result<String> {
        let answer = self.execute("human-monitor-command", Some(json!({ "command-line": command })))?;
        Ok(answer.as_str().unwrap_or_default().to_owned())
    }

    fn execute(&mut self, command: &str, arguments: Option<Value>) -> Result<Value> {
        let arguments = arguments.unwrap_or(json!({}));
        writeln!(self.reader.get_mut(), "{}", json!({ "execute": command, "arguments": arguments }))?;
        for _ in 0..MOST_EVENTS {
            let mut line = String::new();
            if self.reader.read_line(&mut line).context("the emulator's monitor does not answer")? == 0 {
                bail!("the emulator has closed its monitor");
            }
            if let Some(answer) = answer(&line)? {
                return Ok(answer);
            }
        }
        bail!("the emulator's monitor does not answer {command}")
    }
}

/// A starting emulator has no socket yet, then one without a listener.
fn connect_within(limit: Duration, socket: &Path) -> io::Result<UnixStream> {
    let deadline = Instant::now() + limit;
    loop {
        match UnixStream::connect(socket) {
            Err(error) if is_not_open_yet(&error) && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(2));
            }
            done => return done,
        }
    }
}

fn is_not_open_yet(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// The answer in a line; nothing in greetings and events.
fn answer(line: &str) -> Result<Option<Value>> {
    let value: Value = serde_json::from_str(line).context("the emulator's monitor sent a line that is not JSON")?;
    if let Some(error) = value.get("error") {
        bail!("the emulator's monitor refuses: {error}");
    }
    Ok(value.get("return").cloned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn an_emulator_that_is_starting_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("monitor");
        // A socket that is bound and closed again refuses connections, as one does between bind and listen.
        drop(UnixListener::bind(&socket).expect("bound"));
        let opened = socket.clone();
        let opens = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            std::fs::remove_file(&opened).expect("removed");
            UnixListener::bind(&opened).expect("bound again").accept().map(drop)
        });
        connect_within(Duration::from_secs(10), &socket).expect("it opened");
        opens.join().expect("it ran").expect("it accepted");
    }

    #[test]
    fn an_emulator_that_never_opens_its_monitor_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let error =
            connect_within(Duration::from_millis(10), &folder.path().join("none")).expect_err("there is no listener");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn answers_are_distinguished_from_greetings_events_and_refusals() {
        assert_eq!(answer(r#"{"QMP": {"version": {}}}"#).expect("a greeting"), None);
        assert_eq!(answer(r#"{"event": "RESET"}"#).expect("an event"), None);
        assert_eq!(answer(r#"{"return": {"icount": 7}}"#).expect("an answer"), Some(json!({ "icount": 7 })));
        assert!(answer(r#"{"error": {"desc": "no"}}"#).is_err() && answer("?").is_err());
    }
}
