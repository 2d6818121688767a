// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host with a serial port of this machine as its COM2: a pseudo-terminal; its other end is joined to the emulator.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lab::Process;
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tempfile::TempDir;

use crate::recipe::Recipe;

/// Longest time for a line of the host's log.
const LIMIT: Duration = Duration::from_secs(60);

/// Damages bytes on their way: gets their number on the line, and a byte.
pub type Noise = fn(u64, u8) -> u8;

/// A running host, and the serial port at which it is.
pub struct SerialHost {
    port: String,
    /// Kept open: a port that no process has open hangs up.
    _port: OwnedFd,
    log: Receiver<String>,
    _process: Process,
    _folder: TempDir,
}

impl SerialHost {
    /// Starts a host, and waits until it is up. `noise` damages what tools send to it.
    pub fn start(recipe: &Recipe, noise: Noise) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("com2");
        let listener = UnixListener::bind(&path)?;
        let machine = recipe.machine(folder.path(), Some(&recipe.bundle()?))?;
        let (sender, log) = mpsc::channel();
        let on_line = move |line: lab::Line| drop(sender.send(line.text));
        let process = Process::spawn_emulator(machine.command(&path)?, on_line)?;
        let line = listener.accept()?.0;
        let (port, name, other_end) = port()?;
        join(other_end, line, noise)?;
        let host = Self { port: name, _port: port, log, _process: process, _folder: folder };
        host.logs("host ready")?;
        Ok(host)
    }

    /// Waits for a line of the host's log with this text.
    pub fn logs(&self, text: &str) -> Result<()> {
        let end = Instant::now() + LIMIT;
        let mut seen = Vec::new();
        while let Ok(line) = self.log.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if line.contains(text) {
                return Ok(());
            }
            seen.push(line);
        }
        ensure!(false, "{text:?} did not come: {seen:#?}");
        Ok(())
    }

    /// The port's address for the tool.
    pub fn address(&self) -> String {
        format!("tty:{}", self.port)
    }
}

/// Makes a pseudo-terminal that echoes nothing, as a serial port does; returns the port, its name, and its other end.
fn port() -> Result<(OwnedFd, String, File)> {
    let other_end = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&other_end)?;
    unlockpt(&other_end)?;
    let name = ptsname(&other_end, Vec::new())?.into_string()?;
    let port = open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    let mut settings = tcgetattr(&port)?;
    settings.make_raw();
    tcsetattr(&port, OptionalActions::Now, &settings)?;
    Ok((port, name, other_end.into()))
}

/// Passes bytes both ways until either side ends.
fn join(mut port: File, mut line: UnixStream, noise: Noise) -> io::Result<()> {
    let (mut from_port, mut to_host) = (port.try_clone()?, line.try_clone()?);
    thread::spawn(move || {
        let (mut bytes, mut place) = ([0; 4096], 0);
        while let Ok(count @ 1..) = from_port.read(&mut bytes) {
            for byte in &mut bytes[..count] {
                *byte = noise(place, *byte);
                place += 1;
            }
            if to_host.write_all(&bytes[..count]).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || io::copy(&mut line, &mut port));
    Ok(())
}

fn serve(tool: TcpStream, command: Result<Command>) -> Result<()> {
    let (input, mut command) = (tool.try_clone()?, command?);
    command.stdin(OwnedFd::from(input)).stdout(OwnedFd::from(tool));
    let mut child = command.spawn()?;
    // Its copies of the connection would keep it open.
    drop(command);
    child.wait()?;
    Ok(())
}

/// A terminal server: a TCP port; `command` serves each connection by its standard streams.
///
/// # Errors
/// There is no port.
pub fn terminal_server(command: impl Fn() -> Result<Command> + Send + 'static) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for tool in listener.incoming().flatten() {
            let served = serve(tool, command());
            if let Err(error) = served {
                eprintln!("terminal server: {error:#}");
            }
        }
    });
    Ok(address)
}
