// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times how a CPU passes from one vCPU to another, and how much of it each has.
//!
//! `do=switch`: two CPUs of one guest, which the host is to run on one of its own, write down the time without a pause;
//! the one that finds that the other has written meanwhile has just got the CPU. A sample is the time from the last
//! word of the one to the first of the other:
//!
//! ```text
//! turns: switch min=1190 median=1204 n=200
//! ```
//!
//! With `counters=COUNT` so many performance counters of each count meanwhile.
//!
//! `do=share`: counts rounds of work in each of some whole seconds of the wall clock that all guests of the host have
//! in common, so that the counts of guests that share a CPU can be compared:
//!
//! ```text
//! turns: second=1763668801 rounds=812345
//! ```
#![no_std]
#![no_main]
// Reason: see the library's.
#![allow(unsafe_code)]

mod share;
mod switch;

use tiny::{Verdict, options, print};

tiny::main!(main);

fn main(command_line: &str) -> Verdict {
    let right = match options::value(command_line, "do") {
        Some("switch") => {
            let counters = options::number(command_line, "counters").unwrap_or(0);
            switch::measure(options::number(command_line, "n").unwrap_or(200), counters)
        }
        Some("share") => share::measure(options::number(command_line, "seconds").unwrap_or(2)),
        _ => {
            print!("turns: use do=switch or do=share\n");
            false
        }
    };
    print!("turns: done\n");
    Verdict::of(right)
}
