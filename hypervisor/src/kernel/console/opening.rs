// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opening the log and its console.

use boot::options::{Console, Transmit};
use klog::Level;
use uart::{FASTEST_BAUD, Peer, Policy, Rate};

use super::log;
use super::output::{FOUND, OUTPUT};

/// Starts logging, and printing the log on `console`.
pub fn start(level: Level, console: Console) {
    log::start(level);
    let Console::Serial { baud, transmit } = console else { return };
    let rate = Rate::from_baud(baud).unwrap_or(Rate::FASTEST);
    let policy = match transmit {
        Transmit::Byte => Policy::Byte,
        Transmit::Fifo => Policy::Fifo,
    };
    let found = OUTPUT.lock().uart.start(rate, policy, Peer::Reads);
    match found {
        Ok(found) => {
            FOUND.call_once(|| (found, policy));
            let pace = if found.is_paced { "keeps to the wire's time" } else { "takes bytes at once" };
            ::log::debug!("COM1: {}, {pace}; {} baud, {policy:?}", found.depth, found.rate.baud());
        }
        Err(absent) => ::log::warn!("COM1: {absent}; the log is kept for the control channel"),
    }
}

/// Starts logging in an image on trial: nothing is printed yet.
pub fn start_silently(level: Level) {
    log::start(level);
}

/// The console of a host until its command line is known.
pub const BEFORE_OPTIONS: Console = Console::Serial { baud: FASTEST_BAUD, transmit: Transmit::Fifo };
