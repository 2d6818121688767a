// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes printed on a console, so that their cost can be counted.

use crate::log;
use std::fs::File;
use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;

/// Between a report and the bytes: exits are counted at the reports.
const PAUSE: Duration = Duration::from_millis(500);
const LINE: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.\n";
const LINES_AT_ONCE: usize = 16;

/// A console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Console {
    /// `/dev/ttyS0`.
    Serial,
    /// `/dev/hvc0`.
    Second,
}

impl Console {
    fn path(self) -> &'static str {
        match self {
            Self::Serial => "/dev/ttyS0",
            Self::Second => "/dev/hvc0",
        }
    }
}

/// Prints so many KiB.
pub fn run(console: Console, kibibytes: u64) {
    let path = console.path();
    log!("print: begins on {path}");
    sleep(PAUSE);
    let printed = File::options().write(true).open(path).and_then(|device| print(device, kibibytes));
    sleep(PAUSE);
    match printed {
        Ok(()) => log!("print: {kibibytes} KiB on {path}"),
        Err(error) => log!("print: WRONG: {path}: {error}"),
    }
}

fn print(mut device: impl Write, kibibytes: u64) -> io::Result<()> {
    let lines = LINE.repeat(LINES_AT_ONCE);
    (0..kibibytes).try_for_each(|_| device.write_all(&lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_bytes_are_printed_in_lines() {
        let mut device = Vec::new();
        print(&mut device, 3).expect("there is room");
        assert_eq!(device.len(), 3 << 10);
        assert!(device.chunks(LINE.len()).all(|line| line == LINE));
    }
}
