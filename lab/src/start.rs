// SPDX-License-Identifier: MIT OR Apache-2.0
//! The start of a lab machine: the emulator's process and its first connection.

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};

use super::{Happening, Line, Process, Source, What};

/// Longest time for the emulator to open the control channel.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Starts the emulator; its lines become happenings.
pub(super) fn spawn(command: Command, sender: Sender<Happening>) -> Result<Process> {
    let program = command.get_program().to_owned();
    let on_line = move |line: Line| {
        let what = match line.source {
            Source::Stdout => What::HostLine(line.text),
            Source::Stderr => What::EmulatorLine(line.text),
        };
        let _ = sender.send(Happening { at: line.at, what });
    };
    Process::spawn_emulator(command, on_line).with_context(|| explain(&program))
}

/// Returns the error for an emulator that cannot be started, with a hint.
pub(super) fn explain(program: &OsStr) -> String {
    let program = program.to_string_lossy();
    format!("the emulator {program:?} cannot be started; install it, or name it with --qemu or BATON_QEMU")
}

/// Waits until the emulator opens the control channel.
pub(super) fn accept(listener: &UnixListener, process: &mut Process) -> Result<UnixStream> {
    listener.set_nonblocking(true)?;
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    while Instant::now() < deadline {
        match listener.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(status) = process.try_wait() {
            bail!("the emulator ended before the machine started ({status})");
        }
        thread::sleep(Duration::from_millis(2));
    }
    process.kill();
    bail!("the emulator did not open the control channel within {CONNECT_TIMEOUT:?}")
}

/// Adds the emulator's output to an error.
pub(super) fn with_output(error: anyhow::Error, happenings: &Receiver<Happening>) -> anyhow::Error {
    let lines = std::iter::from_fn(|| happenings.recv_timeout(Duration::from_millis(100)).ok());
    let lines: Vec<String> = lines
        .filter_map(|happening| match happening.what {
            What::EmulatorLine(line) | What::HostLine(line) => Some(line),
            _ => None,
        })
        .collect();
    if lines.is_empty() { error } else { anyhow!("{error}: {}", lines.join("; ")) }
}
