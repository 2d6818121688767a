// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches what is a guest's alone: its registers and its memory.
//!
//! The command line names what to do, in this order (`do=fresh,stain`); each prints `keeper: NAME: ok`, or `keeper:
//! NAME: WRONG` and what is not as it should be. The patterns follow from `seed=NUMBER`, so that their owner can be
//! reported.
#![no_std]
#![no_main]
// Reason: see the library's.
#![allow(unsafe_code)]

mod beat;
mod memory;
mod registers;
mod state;
mod wakeups;
mod watch;
mod wrong;

use tiny::{Verdict, apic, cpu, options, print, smp};
use wrong::Wrong;

tiny::main!(main);

/// Rounds of `registers`, and samples of `wakeups`, unless stated otherwise.
const ROUNDS: u32 = 1000;

fn main(command_line: &str) -> Verdict {
    let seed = options::number(command_line, "seed").unwrap_or(0) as u64;
    let rounds = options::number(command_line, "rounds").map_or(ROUNDS, |rounds| rounds as u32);
    let cpus = options::number(command_line, "cpus").unwrap_or(1).clamp(1, smp::MOST);
    let beats = options::number(command_line, "beats").map_or(u64::MAX, |beats| beats as u64);
    let periods = options::number(command_line, "every").unwrap_or(1).max(1) as u64;
    let names = options::value(command_line, "do").unwrap_or_default();
    state::enable();
    apic::enable();
    Verdict::of(names.split(',').fold(true, |right, name| run(name, seed, rounds, cpus, (beats, periods)) & right))
}

fn run(name: &str, seed: u64, rounds: u32, cpus: usize, (beats, periods): (u64, u64)) -> bool {
    let result = match name {
        "fresh" => registers::are_fresh().and_then(|()| memory::is_fresh()),
        "stain" => {
            memory::stain(seed);
            registers::stain(seed)
        }
        "registers" => registers::hold(seed, rounds),
        "watch" => watch::watch(seed, cpus),
        "wait" => wait(),
        "beat" => beat::beat(beats, periods),
        "wakeups" => wakeups::measure(seed, rounds),
        _ => {
            print!("keeper: {name}: no such way; there are fresh, stain, registers, watch, wait, beat, wakeups\n");
            return false;
        }
    };
    match &result {
        Ok(()) => print!("keeper: {name}: ok\n"),
        Err(wrong) => print!("keeper: {name}: WRONG: {wrong}\n"),
    }
    result.is_ok()
}

/// Sleeps until the host ends it.
fn wait() -> Result<(), Wrong> {
    print!("keeper: wait: going\n");
    loop {
        cpu::sleep_until_interrupt();
    }
}
