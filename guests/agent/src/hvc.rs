// SPDX-License-Identifier: MIT OR Apache-2.0
//! The second console, a virtio device: numbered lines, and an answer to each line that is typed there.

use crate::log;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::thread::{self, sleep};
use std::time::Duration;

const DEVICE: &str = "/dev/hvc0";

/// Uses it for ever, beside the tasks that follow.
pub fn start(period: Duration) {
    let complain = |result: io::Result<()>| {
        if let Err(error) = result {
            log!("hvc: WRONG: {DEVICE}: {error}");
        }
    };
    thread::spawn(move || complain(open().and_then(|console| beat(console, period))));
    thread::spawn(move || complain(open().and_then(|input| answer(BufReader::new(input), open()?))));
}

fn open() -> io::Result<File> {
    File::options().read(true).write(true).open(DEVICE)
}

fn beat(mut console: impl Write, period: Duration) -> io::Result<()> {
    for number in 0_u64.. {
        // In one piece: several devices write to the guest's console.
        console.write_all(format!("hvc {number}\n").as_bytes())?;
        sleep(period);
    }
    Ok(())
}

/// Answers each line.
fn answer(input: impl BufRead, mut console: impl Write) -> io::Result<()> {
    for line in input.lines() {
        console.write_all(format!("hvc answers {}\n", line?).as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_answered() {
        let mut console = Vec::new();
        answer(&b"one\ntwo\n"[..], &mut console).expect("it can be written");
        assert_eq!(console, b"hvc answers one\nhvc answers two\n");
    }
}
