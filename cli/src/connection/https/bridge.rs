// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes between a line and TLS: a line is a descriptor that can be polled, which an encrypted connection is not. A
//! thread copies both ways.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustls::ClientConnection;

use super::Tls;
use crate::connection::line::{Keeper, Line};
use crate::connection::network;

/// Bytes that are taken at a time, and that may wait for the reader of the line.
const CHUNK_BYTES: usize = 16 << 10;

/// Returns a line over a connection.
pub(super) fn over(mut tls: Tls, service: String) -> Result<Line> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    network::prepare(&tls.sock).context("the socket cannot be set up")?;
    // The line is read only while nothing waits to be sent.
    tls.conn.set_buffer_limit(None);
    let ending = Ending { service, reason: Arc::default() };
    let reason = ending.reason.clone();
    let mut bridge = Bridge { tls: tls.conn, socket: tls.sock, line: theirs, to_line: Vec::new() };
    thread::Builder::new().name("tls".to_owned()).spawn(move || {
        if let Err(error) = bridge.copy() {
            *reason.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }
    })?;
    Ok(Line::over(ours).kept_by(ending))
}

/// Why the connection has ended.
struct Ending {
    service: String,
    reason: Arc<Mutex<Option<String>>>,
}

impl Keeper for Ending {
    fn ending(&mut self) -> Option<String> {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(match reason {
            Some(reason) => format!("the connection to {} is broken: {reason}", self.service),
            None => format!("{} has closed the connection; it ends, or has lost the host's line", self.service),
        })
    }
}

struct Bridge {
    tls: ClientConnection,
    socket: TcpStream,
    line: UnixStream,
    /// Bytes that the line has not taken yet.
    to_line: Vec<u8>,
}

impl Bridge {
    /// Copies until either side ends.
    fn copy(&mut self) -> io::Result<()> {
        loop {
            self.read_tls()?;
            if !self.write_line()? {
                return self.close();
            }
            self.write_tls()?;
            let (has_socket, has_line) = self.wait()?;
            if has_socket && !self.receive()? {
                return Ok(());
            }
            if has_line && !self.read_line()? {
                return self.close();
            }
        }
    }

    /// Waits until a side can go on. Neither is read while the other one has not taken what was there before.
    fn wait(&self) -> io::Result<(bool, bool)> {
        let (is_full, is_sending) = (self.to_line.len() >= CHUNK_BYTES, self.tls.wants_write());
        let flag = |is_on: bool, flag: PollFlags| if is_on { flag } else { PollFlags::empty() };
        let socket = flag(!is_full, PollFlags::IN) | flag(is_sending, PollFlags::OUT);
        let line = flag(!is_sending, PollFlags::IN) | flag(!self.to_line.is_empty(), PollFlags::OUT);
        let mut fds = [PollFd::new(&self.socket, socket), PollFd::new(&self.line, line)];
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let has = |at: usize| fds[at].revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
        Ok((has(0), has(1)))
    }

    /// Takes encrypted bytes; returns whether more may come.
    fn receive(&mut self) -> io::Result<bool> {
        match self.tls.read_tls(&mut self.socket) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(error) if is_for_later(&error) => return Ok(true),
            Err(error) => return Err(error),
        }
        let state = self.tls.process_new_packets().map_err(io::Error::other)?;
        let is_closed = state.peer_has_closed();
        self.read_tls()?;
        if is_closed {
            self.line.set_nonblocking(false)?;
            self.line.write_all(&self.to_line)?;
        }
        Ok(!is_closed)
    }

    /// Takes decrypted bytes, as many as may wait.
    fn read_tls(&mut self) -> io::Result<()> {
        let mut buffer = [0; CHUNK_BYTES];
        while self.to_line.len() < CHUNK_BYTES {
            match self.tls.reader().read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => self.to_line.extend(&buffer[..count]),
                Err(error) if is_for_later(&error) || error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Gives the line what it takes; returns whether it is still open.
    fn write_line(&mut self) -> io::Result<bool> {
        while !self.to_line.is_empty() {
            match self.line.write(&self.to_line) {
                Ok(count) => drop(self.to_line.drain(..count)),
                Err(error) if is_for_later(&error) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Takes the line's bytes; returns whether it is still open.
    fn read_line(&mut self) -> io::Result<bool> {
        let mut buffer = [0; CHUNK_BYTES];
        match self.line.read(&mut buffer) {
            Ok(0) => Ok(false),
            Ok(count) => self.tls.writer().write_all(&buffer[..count]).map(|()| true),
            Err(error) if is_for_later(&error) => Ok(true),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends encrypted bytes, as many as the socket takes.
    fn write_tls(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if is_for_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the connection as TLS wants it; what was to be sent goes before.
    fn close(&mut self) -> io::Result<()> {
        self.tls.send_close_notify();
        self.socket.set_nonblocking(false)?;
        self.write_tls()
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
