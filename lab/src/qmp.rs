// SPDX-License-Identifier: MIT OR Apache-2.0
//! As much of QEMU's monitor protocol as it takes to ask how many instructions a machine has executed, to reset it, and
//! to give its human monitor a command: JSON, a line each.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Events that may come before an answer.
const MOST_EVENTS: usize = 1000;

/// The emulator's arguments for a monitor at `socket`.
pub fn arguments(socket: &Path) -> [OsString; 2] {
    // The emulator's option parser wants commas doubled.
    let path = socket.to_string_lossy().replace(',', ",,");
    ["-qmp".into(), format!("unix:{path},server=on,wait=off").into()]
}

/// A conversation with an emulator.
pub struct Monitor {
    reader: BufReader<UnixStream>,
}

impl Monitor {
    /// Connects to an emulator that runs.
    pub fn connect(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket).context("the emulator's monitor cannot be reached")?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        let mut monitor = Self { reader: BufReader::new(stream) };
        monitor.execute("qmp_capabilities", None)?;
        Ok(monitor)
    }

    /// Instructions that the machine's processors have executed since its start, all together.
    pub fn instructions(&mut self) -> Result<u64> {
        let answer = self.execute("query-replay", None)?;
        let count = answer.get("icount").and_then(Value::as_u64);
        count.with_context(|| format!("the emulator does not tell how many instructions it has executed: {answer}"))
    }

    /// Resets the machine, as its reset button would.
    pub fn reset(&mut self) -> Result<()> {
        self.execute("system_reset", None).map(drop)
    }

    /// Gives the human monitor a command, and returns what it prints.
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

/// The answer in a line; nothing in greetings and events.
fn answer(line: &str) -> Result<Option<Value>> {
    let value: Value = serde_json::from_str(line).context("the emulator's monitor speaks no JSON")?;
    if let Some(error) = value.get("error") {
        bail!("the emulator's monitor refuses: {error}");
    }
    Ok(value.get("return").cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_from_greetings_events_and_refusals() {
        assert_eq!(answer(r#"{"QMP": {"version": {}}}"#).expect("a greeting"), None);
        assert_eq!(answer(r#"{"event": "RESET"}"#).expect("an event"), None);
        assert_eq!(answer(r#"{"return": {"icount": 7}}"#).expect("an answer"), Some(json!({ "icount": 7 })));
        assert!(answer(r#"{"error": {"desc": "no"}}"#).is_err() && answer("?").is_err());
    }
}
