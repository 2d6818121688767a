// SPDX-License-Identifier: MIT OR Apache-2.0
//! A terminal whose keys all go to a guest, and which is itself again afterwards.

use std::io::{self, Stdin};

use nix::sys::termios::{self, SetArg, Termios};

/// A terminal in raw mode. Dropping it restores the mode there was, also while a panic unwinds.
pub(super) struct RawTerminal {
    stdin: Stdin,
    before: Termios,
}

impl RawTerminal {
    /// Puts standard input, a terminal, into raw mode.
    pub(super) fn new() -> nix::Result<Self> {
        let stdin = io::stdin();
        let before = termios::tcgetattr(&stdin)?;
        let mut raw = before.clone();
        termios::cfmakeraw(&mut raw);
        termios::tcsetattr(&stdin, SetArg::TCSANOW, &raw)?;
        Ok(Self { stdin, before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(&self.stdin, SetArg::TCSANOW, &self.before);
    }
}
