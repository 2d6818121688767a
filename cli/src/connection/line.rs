// SPDX-License-Identifier: MIT OR Apache-2.0
//! An open line to a host: bytes both ways, whatever carries them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read, write};

/// Bits of a byte on a serial line: a start bit, eight of data, a stop bit.
const BITS_PER_BYTE: u64 = 10;

/// A resource that ends with its line: a terminal's settings, the process that carries the bytes.
pub trait Keeper: Send {
    /// Returns why the line has ended, if that is known.
    fn ending(&mut self) -> Option<String> {
        None
    }

    /// Leaves signals to the command, which handles them itself from now on.
    fn leave_signals(&self) {}
}

/// An open line to a host.
pub struct Line {
    // Before the descriptor: restoring its settings needs it open.
    keeper: Option<Box<dyn Keeper>>,
    fd: OwnedFd,
    baud: Option<u32>,
}

/// The operations that a line is ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Bytes have come, or the line has ended.
    pub to_read: bool,
    /// It takes bytes.
    pub to_write: bool,
}

impl Line {
    /// Returns a line over this descriptor, as fast as this machine.
    pub fn over(fd: impl Into<OwnedFd>) -> Self {
        Self { keeper: None, fd: fd.into(), baud: None }
    }

    /// Returns the line with a serial part of `baud` bits a second.
    pub fn with_baud(self, baud: u32) -> Self {
        Self { baud: Some(baud), ..self }
    }

    /// Returns the line with a resource that ends with it.
    pub fn kept_by(self, keeper: impl Keeper + 'static) -> Self {
        Self { keeper: Some(Box::new(keeper)), ..self }
    }

    /// Returns how long the line takes for so many bytes.
    pub fn time_of(&self, bytes: usize) -> Duration {
        let Some(baud) = self.baud else { return Duration::ZERO };
        Duration::from_micros((bytes as u64 * BITS_PER_BYTE).saturating_mul(1_000_000) / u64::from(baud.max(1)))
    }

    /// Returns why the line has ended, if that is known.
    pub fn ending(&mut self) -> Option<String> {
        self.keeper.as_mut()?.ending()
    }

    /// Leaves signals to the command, which handles them itself from now on.
    pub fn leave_signals(&self) {
        if let Some(keeper) = &self.keeper {
            keeper.leave_signals();
        }
    }

    /// Waits until bytes have come, or the line takes some if `is_sending`, but not beyond `deadline`.
    ///
    /// # Errors
    /// The system refuses to wait.
    pub fn wait(&self, is_sending: bool, deadline: Instant) -> io::Result<Ready> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let interest = if is_sending { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut fds = [PollFd::new(&self.fd, interest)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(Ready::default()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let events = fds[0].revents();
        let to_read = events.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
        Ok(Ready { to_read, to_write: events.contains(PollFlags::OUT) })
    }

    /// Reads the bytes that have come; `None` once the line has ended.
    ///
    /// # Errors
    /// The line is broken.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match read(&self.fd, buffer) {
            // A terminal that was hung up (a pseudo-terminal's other end, an adapter that was pulled out) reads as EIO.
            Ok(0) | Err(Errno::CONNRESET | Errno::IO | Errno::PIPE | Errno::NXIO) => Ok(None),
            Ok(count) => Ok(Some(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Some(0)),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes as many bytes as the line takes; `None` once it has ended.
    ///
    /// # Errors
    /// The line is broken.
    pub fn write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        match write(&self.fd, bytes) {
            Ok(count) => Ok(Some(count)),
            Err(Errno::CONNRESET | Errno::IO | Errno::PIPE | Errno::NXIO) => Ok(None),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Some(0)),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
