// SPDX-License-Identifier: MIT OR Apache-2.0
//! The power button, which the kernel shows as a key: its press ends the machine in order, or is ignored.

use crate::{log, system};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;
use std::thread::{self, sleep};
use std::time::Duration;

const FOLDER: &str = "/dev/input";
const POLL: Duration = Duration::from_millis(20);
/// Bytes of `struct input_event` on x86-64: two words of time, type, code, value.
const EVENT_BYTES: usize = 24;
/// Type EV_KEY, code KEY_POWER (Linux, input-event-codes.h), pressed.
const POWER_PRESSED: [u8; 8] = [1, 0, 116, 0, 1, 0, 0, 0];

/// The reaction to a press.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The machine powers off.
    PowerOff,
    /// Nothing.
    Ignore,
}

/// Waits for presses, for ever, beside the tasks that follow. The driver is loaded.
pub fn start(answer: Answer) {
    thread::spawn(move || {
        let devices = devices();
        log!("power key: {} devices", devices.len());
        for path in devices {
            thread::spawn(move || {
                if let Err(error) = File::open(&path).and_then(|device| run(device, answer)) {
                    log!("power key: WRONG: {}: {error}", path.display());
                }
            });
        }
    });
}

/// The input devices, once there is one.
fn devices() -> Vec<PathBuf> {
    loop {
        let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
        let found: Vec<_> = entries.map(|entry| entry.path()).filter(|path| is_event_device(path)).collect();
        if !found.is_empty() {
            return found;
        }
        sleep(POLL);
    }
}

fn is_event_device(path: &std::path::Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("event"))
}

fn run(mut device: impl Read, answer: Answer) -> io::Result<()> {
    let mut event = [0; EVENT_BYTES];
    loop {
        device.read_exact(&mut event)?;
        if event[EVENT_BYTES - POWER_PRESSED.len()..] != POWER_PRESSED {
            continue;
        }
        match answer {
            Answer::PowerOff => {
                log!("power key: pressed");
                system::power_off()
            }
            Answer::Ignore => log!("power key: pressed, and ignored"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_whole_and_other_keys_passed_over() {
        let event = |tail: [u8; 8]| [&[7; 16][..], &tail].concat();
        let released = event([1, 0, 116, 0, 0, 0, 0, 0]);
        let other = event([1, 0, 30, 0, 1, 0, 0, 0]);
        let bytes = [released, other, event(POWER_PRESSED), vec![0; 5]].concat();
        let mut rest = &bytes[..];
        let error = run(&mut rest, Answer::Ignore).expect_err("it ends within an event");
        assert_eq!((error.kind(), rest.len()), (io::ErrorKind::UnexpectedEof, 0));
    }

    #[test]
    fn only_event_devices_are_read() {
        assert!(is_event_device("/dev/input/event0".as_ref()));
        assert!(!is_event_device("/dev/input/mice".as_ref()));
    }
}
