// SPDX-License-Identifier: MIT OR Apache-2.0
//! The start of a lab machine: the emulator's process and its first connection.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};

use super::shutdown::{self, Cause};
use super::{Accelerator, Emulator, Happening, Line, Machine, Process, RunDir, Source, What, bochs, kvm, rundir};

/// Longest time for the emulator to open the ports that it connects to us.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// An emulator that runs.
pub(super) struct Started {
    pub process: Process,
    /// The control channel.
    pub control: UnixStream,
    /// Why it has ended, once it has.
    pub cause: Cause,
}

/// Starts a machine's emulator; its lines become happenings.
pub(super) fn start(machine: &Machine, dir: &RunDir, sender: Sender<Happening>) -> Result<Started> {
    match &machine.emulator {
        Emulator::Qemu { accelerator, .. } => {
            if *accelerator == Accelerator::Kvm {
                kvm::check(Path::new("/"))?;
            }
            start_qemu(machine, dir, sender)
        }
        Emulator::Bochs(bochs) => start_bochs(bochs.prepare(machine, dir)?, dir, sender),
    }
}

fn start_qemu(machine: &Machine, dir: &RunDir, sender: Sender<Happening>) -> Result<Started> {
    let (control, monitor) = (dir.bind(rundir::HOST_SOCKET)?, dir.bind(rundir::MONITOR_SOCKET)?);
    let mut command = machine.command(&dir.host_socket())?;
    command.args(shutdown::arguments(&dir.monitor_socket()));
    let mut process = spawn(command, sender)?;
    dir.write_pid(process.pid())?;
    control.set_nonblocking(true)?;
    monitor.set_nonblocking(true)?;
    let control = accept(|| control.accept(), &mut process)?;
    let monitor = accept(|| monitor.accept(), &mut process)?;
    let cause = Cause::listen(monitor, &mut process);
    Ok(Started { process, control, cause })
}

/// COM1 is a connection beside the control channel: Bochs's standard output is its debugger's.
fn start_bochs(prepared: bochs::Prepared, dir: &RunDir, sender: Sender<Happening>) -> Result<Started> {
    let bochs::Prepared { command, log, control } = prepared;
    let program = command.get_program().to_owned();
    let notices = sender.clone();
    let on_notice = move |line: Line| {
        if line.source == Source::Stderr && bochs::is_worth_keeping(&line.text) {
            let _ = notices.send(Happening { at: line.at, what: What::EmulatorLine(line.text) });
        }
    };
    let mut process = Process::spawn_emulator(command, on_notice).with_context(|| bochs::explain(&program))?;
    dir.write_pid(process.pid())?;
    log.set_nonblocking(true)?;
    control.set_nonblocking(true)?;
    let log = accept(|| log.accept(), &mut process)?;
    let control = accept(|| control.accept(), &mut process)?;
    log.set_nonblocking(false)?;
    let on_line = move |line: Line| drop(sender.send(Happening { at: line.at, what: What::HostLine(line.text) }));
    process.read_too(log, on_line);
    // A connected socket is read, written and waited for alike, whatever its family is.
    Ok(Started { process, control: UnixStream::from(OwnedFd::from(control)), cause: Cause::default() })
}

/// Starts QEMU; its lines become happenings.
fn spawn(command: Command, sender: Sender<Happening>) -> Result<Process> {
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

/// Waits until the emulator connects.
fn accept<S, A>(try_accept: impl Fn() -> io::Result<(S, A)>, process: &mut Process) -> Result<S> {
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    while Instant::now() < deadline {
        match try_accept() {
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
    bail!("the emulator did not open the machine's serial ports within {CONNECT_TIMEOUT:?}")
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
