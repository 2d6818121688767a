// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries its performance counters, by the registers of its CPU's vendor.
//!
//! The command line names what to do (`do=registers,overflow`); each prints `counters: NAME: ok`, or
//! `counters: NAME: WRONG` and what came instead. `do=all` does all of these in turn. `do=rows` times accesses instead,
//! and prints rows as `exits` does; `do=watch` compares what its counters say, for ever; `do=count` and `do=storm-…` do
//! one thing for ever.
#![no_std]
#![no_main]
// Reason: see the library's.
#![allow(unsafe_code)]

mod counts;
mod overflows;
mod registers;
mod rows;
mod storms;
mod watch;

use tiny::answers::Wrong;
use tiny::counters::Unit;
use tiny::{Verdict, apic, options, print};

tiny::main!(main);

/// A name and what it does.
type Way = (&'static str, fn(&Unit) -> Result<(), Wrong>);

const WAYS: &[Way] = &[
    ("registers", registers::answer_as_in_the_manual),
    ("user", registers::are_for_user_mode_if_allowed),
    ("time", counts::are_of_the_guests_time),
    ("stopped", counts::stand_still_when_stopped),
    ("unknown", counts::of_what_is_unknown_stand_still),
    ("vector", overflows::interrupt_by_vector),
    ("nmi", overflows::interrupt_by_nmi),
    ("masked", overflows::are_silent_when_masked),
    ("each-tick", overflows::at_each_tick_are_bounded),
    ("writes", registers::bear_a_storm_of_writes),
];

fn main(command_line: &str) -> Verdict {
    apic::enable();
    let wanted = options::value(command_line, "do").unwrap_or("all");
    if wanted == "none" {
        return Verdict::of(registers::are_absent());
    }
    if wanted == "compute" {
        storms::compute();
    }
    let Some(unit) = Unit::find() else {
        print!("counters: there are none: give this guest some (pmu = \"intel\" or \"amd\")\n");
        return Verdict::Wrong;
    };
    if let Some((_, storm)) = storms::STORMS.iter().find(|(name, _)| *name == wanted) {
        storm(&unit);
    }
    match wanted {
        "rows" => Verdict::of(rows::all(&unit, options::number(command_line, "n").unwrap_or(1000))),
        "watch" => Verdict::of(run(&("watch", watch::agree_to_the_last_tick), &unit)),
        "all" => {
            let right = Verdict::of(WAYS.iter().fold(true, |right, way| run(way, &unit) & right));
            // It leaves them on, as it ends.
            unit.start(0, 1);
            right
        }
        names => Verdict::of(names.split(',').fold(true, |right, name| run_named(name, &unit) & right)),
    }
}

fn run_named(name: &str, unit: &Unit) -> bool {
    match WAYS.iter().find(|way| way.0 == name) {
        Some(way) => run(way, unit),
        None => {
            print!("counters: {name}: no such way\n");
            false
        }
    }
}

fn run((name, act): &Way, unit: &Unit) -> bool {
    unit.reset();
    match act(unit) {
        Ok(()) => print!("counters: {name}: ok\n"),
        Err(wrong) => {
            print!("counters: {name}: WRONG: {wrong}\n");
            return false;
        }
    }
    true
}
