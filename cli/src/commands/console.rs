// SPDX-License-Identifier: MIT OR Apache-2.0
//! `baton vm console`: a guest's serial line in this terminal.
//!
//! On a terminal every key goes to the guest, Ctrl-C as well; Ctrl-] leaves. Without a terminal (a script) standard
//! input goes to the guest as it is, and once it has ended the command leaves after a time without output.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use wire::{RequestBody, Stream, Subscription};

use super::DONE;
use super::terminal::RawTerminal;
use crate::client::{Client, Closed};
use crate::output::output;

/// Ctrl-]
const LEAVE: u8 = 0x1d;
/// The most typed bytes in a message: a guest's serial port takes them at once, and they fit a frame.
const CHUNK_BYTES: usize = 256;
/// The time after which the choice of consoles is made again at the earliest.
const CHOOSE_AGAIN: Duration = Duration::from_secs(1);
/// The interval at which signals and the time without output are checked.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

struct Console<'a> {
    client: &'a mut Client,
    vm: &'a str,
    is_terminal: bool,
    linger: Duration,
    /// Standard input has ended.
    is_ended: bool,
    last_output: Instant,
    /// The host sends this guest's output alone, since then.
    has_choice: bool,
    chosen_at: Instant,
}

/// The reason for which the command ends.
#[derive(PartialEq, Eq)]
enum Step {
    Stay,
    Leave,
}

pub(super) fn run(client: &mut Client, vm: &str, linger: Duration) -> Result<u8> {
    let is_terminal = io::stdin().is_terminal();
    let signal = Arc::new(AtomicBool::new(false));
    for number in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(number, signal.clone())?;
    }
    client.handles_signals();
    let raw = match is_terminal {
        true => {
            eprintln!("Connected to {vm}; Ctrl-] leaves.");
            Some(RawTerminal::new()?)
        }
        false => None,
    };
    let now = Instant::now();
    let (is_ended, has_choice) = (false, false);
    let mut console =
        Console { client, vm, is_terminal, linger, is_ended, last_output: now, has_choice, chosen_at: now };
    let result = console.run(&signal);
    let damaged = console.client.damaged_frames();
    drop(raw);
    if damaged > 0 {
        eprintln!("\n{damaged} frames were damaged on the line: some output is missing");
    }
    if is_terminal {
        eprintln!("\nLeft {vm}.");
    }
    match result {
        Err(error) if error.is::<Closed>() => Ok(DONE),
        result => result.map(|()| DONE),
    }
}

impl Console<'_> {
    fn run(&mut self, signal: &AtomicBool) -> Result<()> {
        self.subscribe()?;
        loop {
            self.show()?;
            let is_over = self.is_ended && self.last_output.elapsed() >= self.linger;
            if is_over || signal.load(Ordering::Relaxed) || self.wait()? == Step::Leave {
                return Ok(());
            }
        }
    }

    fn subscribe(&mut self) -> Result<()> {
        self.has_choice = self.client.subscribe_consoles(Subscription::default(), &[self.vm])?;
        self.chosen_at = Instant::now();
        Ok(())
    }

    /// Writes the guest's output. Other guests' output shows that an update has ended the choice: it is made again.
    fn show(&mut self) -> Result<()> {
        let mut out = output();
        let mut has_others = false;
        while let Some(stream) = self.client.next(Duration::ZERO)? {
            match stream {
                Stream::Console { name, bytes } if name == self.vm => {
                    out.write_all(&bytes)?;
                    self.last_output = Instant::now();
                }
                _ => has_others = true,
            }
        }
        out.flush()?;
        if has_others && self.has_choice && self.chosen_at.elapsed() > CHOOSE_AGAIN {
            self.subscribe()?;
        }
        Ok(())
    }

    /// Waits for the guest or the operator, and sends typed bytes.
    fn wait(&mut self) -> Result<Step> {
        let stdin = io::stdin();
        let has_input = {
            let mut fds = vec![PollFd::new(self.client, PollFlags::IN)];
            if !self.is_ended {
                fds.push(PollFd::new(&stdin, PollFlags::IN));
            }
            match poll(&mut fds, Some(&TICK)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            fds.get(1).is_some_and(|stdin| !stdin.revents().is_empty())
        };
        if has_input { self.type_input(&stdin) } else { Ok(Step::Stay) }
    }

    fn type_input(&mut self, stdin: &io::Stdin) -> Result<Step> {
        let mut buffer = [0; CHUNK_BYTES];
        let count = read(stdin, &mut buffer)?;
        let typed = &buffer[..count];
        if count == 0 {
            self.is_ended = true;
            self.last_output = Instant::now();
            return Ok(if self.is_terminal { Step::Leave } else { Step::Stay });
        }
        let leaves_at = typed.iter().position(|&byte| self.is_terminal && byte == LEAVE);
        let bytes = typed[..leaves_at.unwrap_or(count)].to_vec();
        if !bytes.is_empty() {
            self.client.order(RequestBody::ConsoleInput { name: self.vm.to_owned(), bytes })?;
        }
        Ok(if leaves_at.is_some() { Step::Leave } else { Step::Stay })
    }
}
