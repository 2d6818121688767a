// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times what makes a CPU leave its guest.
//!
//! Each row does one thing `n` times (command line: `n=1000`) and prints the least and the median time of one round
//! trip:
//!
//! ```text
//! exits: cpuid min=812 median=830 n=1000
//! ```
//!
//! Times are ticks of the guest's time stamp counter, the `empty` row's being what the timing itself takes. Under
//! QEMU's `-icount shift=0` a tick is an instruction, and the figures repeat exactly.
#![no_std]
#![no_main]
// Reason: see the library's.
#![allow(unsafe_code)]

mod rows;

use core::ops::RangeInclusive;
use tiny::{Verdict, apic, options, print, timing};

tiny::main!(main);

/// Number of repetitions of a row: no more than there is space for samples, and at least one.
const REPETITIONS: RangeInclusive<usize> = 1..=timing::ROOM;

fn main(command_line: &str) -> Verdict {
    let repetitions =
        options::number(command_line, "n").unwrap_or(1000).clamp(*REPETITIONS.start(), *REPETITIONS.end());
    apic::enable();
    let complete = rows::all(repetitions);
    print!("exits: done\n");
    Verdict::of(complete)
}
