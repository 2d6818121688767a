// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton relay`: copies bytes between the standard streams and a host's line, for a tool on another machine.

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};

use super::DONE;
use crate::args::Target;
use crate::connection::{self, Line};
use crate::output::output;

const CHUNK_BYTES: usize = 4096;
/// An empty frame, which means nothing to either side: the line is open.
const IS_OPEN: &[u8] = &[0];

pub(super) fn run(target: &Target) -> Result<u8> {
    let mut line = connection::open(&target.address()?)?;
    pass_on(IS_OPEN)?;
    copy(&line)?;
    if let Some(reason) = line.ending() {
        eprintln!("baton: {reason}");
    }
    Ok(DONE)
}

/// Copies both ways until either side ends.
fn copy(line: &Line) -> Result<()> {
    let stdin = io::stdin();
    let mut buffer = [0; CHUNK_BYTES];
    let mut waiting: Vec<u8> = Vec::new();
    loop {
        let from_line = if waiting.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let mut fds = vec![PollFd::from_borrowed_fd(line.as_fd(), from_line)];
        // No more is taken than the line does.
        if waiting.is_empty() {
            fds.push(PollFd::new(&stdin, PollFlags::IN));
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let (events, has_input) = (fds[0].revents(), fds.get(1).is_some_and(|stdin| !stdin.revents().is_empty()));
        if events.contains(PollFlags::OUT) {
            let Some(count) = line.write(&waiting)? else { return Ok(()) };
            waiting.drain(..count);
        }
        if events.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            let Some(count) = line.read(&mut buffer)? else { return Ok(()) };
            pass_on(&buffer[..count])?;
        }
        if has_input {
            match read(&stdin, &mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => waiting.extend(&buffer[..count]),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn pass_on(bytes: &[u8]) -> io::Result<()> {
    let mut out = output();
    out.write_all(bytes)?;
    out.flush()
}
