// SPDX-License-Identifier: MIT OR Apache-2.0
//! Emulated machines without Baton, for comparison: the lab's machine with another kernel or disk in Baton's place.

use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use lab::{Line, Process};

use super::Context;

/// Returns the emulator's command line for a machine with COM1 on standard output; `memory` is in QEMU's notation.
pub(super) fn command(context: &Context, cpus: u32, memory: &str) -> Command {
    command_by("tcg", context, cpus, memory)
}

/// The same with an accelerator in QEMU's notation.
pub(super) fn command_by(accelerator: &str, context: &Context, cpus: u32, memory: &str) -> Command {
    let mut command = Command::new(&context.qemu);
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35"]);
    command.args(["-accel", accelerator, "-cpu", "max", "-smp", &cpus.to_string(), "-m", memory]);
    command.args(["-chardev", "stdio,id=log,signal=off", "-serial", "chardev:log"]);
    command
}

/// A machine that runs. Dropping it ends the emulator.
pub(super) struct Direct {
    process: Process,
    lines: Receiver<(Instant, String)>,
    deadline: Instant,
    last_line: String,
}

impl Direct {
    /// Starts the emulator; from here on the machine may take as long as any of the bench.
    pub fn start(context: &Context, command: Command) -> Result<Self> {
        Self::start_for(context, command, context.timeout)
    }

    /// The same for a machine that takes longer than most.
    pub fn start_for(context: &Context, command: Command, timeout: Duration) -> Result<Self> {
        let (sender, lines) = mpsc::channel();
        let deadline = Instant::now() + timeout;
        let on_line = move |line: Line| drop(sender.send((Instant::now(), line.text)));
        let process = Process::spawn_emulator(command, on_line)
            .with_context(|| format!("{} cannot be started; name another with --qemu", context.qemu.display()))?;
        Ok(Self { process, lines, deadline, last_line: String::new() })
    }

    /// Returns the emulator's process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Waits until `find` returns something for a line and the time of its arrival; `name` states in the error what was
    /// missing.
    pub fn wait<T>(&mut self, name: &str, mut find: impl FnMut(Instant, &str) -> Option<T>) -> Result<T> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let Ok((at, line)) = self.lines.recv_timeout(left.max(Duration::from_millis(1))) else { break };
            if let Some(found) = find(at, &line) {
                return Ok(found);
            }
            if left.is_zero() {
                break;
            }
            self.last_line = line;
        }
        bail!("{name}: none from the machine without Baton; its last line was {:?}", self.last_line)
    }
}

/// Returns the seconds of a line of Linux's log (`[    0.829140] …`).
pub(super) fn time_stamp(line: &str) -> Option<f64> {
    line.trim_start().strip_prefix('[')?.split_once(']')?.0.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_time_that_stands_before_it() {
        assert_eq!(time_stamp("[    0.829140] smp: Bringing up secondary CPUs ..."), Some(0.829140));
        assert_eq!(time_stamp("[    1.250000] first-guest: executed"), Some(1.25));
        for line in ["first-guest: executed", "smp: [1] Brought up 1 node, 16 CPUs"] {
            assert_eq!(time_stamp(line), None, "{line}");
        }
    }
}
