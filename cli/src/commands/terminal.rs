// SPDX-License-Identifier: MIT OR Apache-2.0
//! A terminal that passes all keys to a guest, and has its own mode again afterwards.

use std::io::{self, Stdin};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// A terminal in raw mode. Dropping it restores the mode there was, also while a panic unwinds.
pub(super) struct RawTerminal {
    stdin: Stdin,
    before: Termios,
}

impl RawTerminal {
    /// Puts standard input, a terminal, into raw mode.
    pub(super) fn new() -> rustix::io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw)?;
        Ok(Self { stdin, before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.stdin, OptionalActions::Now, &self.before);
    }
}
