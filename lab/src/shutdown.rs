// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why QEMU ended: its exit status is 0 for a power-off, a reset of the machine and a signal alike. Its monitor reports
//! the cause (QEMU QMP reference, event `SHUTDOWN`).

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::machine::socket_option;
use super::process::Process;

/// A monitor reports events to a client that has named its capabilities.
const BEGIN: &[u8] = b"{\"execute\": \"qmp_capabilities\"}\n";

/// The reported cause of an emulator's end.
#[derive(Clone, Debug, Default)]
pub struct Cause(Arc<OnceLock<String>>);

/// Returns the emulator's arguments for a monitor that connects to `socket`.
pub(super) fn arguments(socket: &Path) -> [OsString; 4] {
    ["-chardev".into(), socket_option("shutdown", socket), "-mon".into(), "chardev=shutdown,mode=control".into()]
}

impl Cause {
    /// The cause that this monitor will report. It is there once the process has been waited for.
    pub(super) fn listen(mut monitor: UnixStream, process: &mut Process) -> Self {
        let cause = Self::default();
        let noted = cause.clone();
        // An emulator that has ended already reports nothing more.
        let _ = monitor.write_all(BEGIN);
        process.read_too(monitor, move |line| noted.note(&line.text));
        cause
    }

    /// Reads a line of the monitor.
    fn note(&self, line: &str) {
        let event: Value = serde_json::from_str(line).unwrap_or_default();
        if let Some(reason) = event["data"]["reason"].as_str().filter(|_| event["event"] == "SHUTDOWN") {
            let _ = self.0.set(reason.to_owned());
        }
    }

    /// Returns the cause by QEMU's name, such as `guest-reset`.
    pub fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_event_has_the_cause() {
        let cause = Cause::default();
        for line in
            ["", "{", "{\"QMP\": {}}", "{\"return\": {}}", "{\"event\": \"RESET\", \"data\": {\"reason\": \"x\"}}"]
        {
            cause.note(line);
            assert_eq!(cause.get(), None, "{line}");
        }
        cause.note("{\"event\": \"SHUTDOWN\", \"data\": {\"guest\": true, \"reason\": \"guest-reset\"}}");
        assert_eq!(cause.get(), Some("guest-reset"));
    }
}
