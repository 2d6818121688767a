// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drives QEMU's device `edu` (docs/specs/edu.rst), which interrupts and does DMA to any address that is programmed.
//!
//! The command line names what to do (`do=check,msi`); each prints `edu: NAME: ok`, or `edu: NAME: WRONG` and what came
//! instead. The device is on bus 0, or on `bus=NUMBER`. It runs on a bare machine too.
#![no_std]
#![no_main]
// Reason: see the library's.
#![allow(unsafe_code)]

mod acpi;
mod attack;
mod blackout;
mod clock;
mod config;
mod delivery;
mod device;
mod disk;
mod flood;
mod interrupts;
mod messages;
mod ranges;
mod registers;
mod request;
mod shared;
mod timed;
mod transfer;

use request::Request;
use tiny::answers::Wrong;
use tiny::{Verdict, apic, cpu, options, print, smp};

tiny::main!(main);

type Way = (&'static str, fn(&Request<'_>) -> Result<(), Wrong>);

const WAYS: &[Way] = &[
    ("check", |request| device::check(&request.edu)),
    ("msi", delivery::by_message),
    ("msi-timed", timed::halted),
    ("intx", delivery::by_line),
    ("shared", shared::by_shared_line),
    ("unserved", delivery::unserved),
    ("dma", transfer::once),
    ("stream", transfer::stream),
    ("blackout", blackout::blackout),
    ("attack", attack::attack),
    ("flood", flood::flood),
    ("disk", disk::resets),
    ("bars", ranges::displaced),
    ("storm", ranges::storm),
    ("config", registers::junk),
    ("reset", registers::reset),
    ("msi-anywhere", messages::anywhere),
    ("wait", |_| wait()),
];

fn main(command_line: &str) -> Verdict {
    apic::enable();
    clock::start();
    let cpus = options::number(command_line, "cpus").unwrap_or(1).clamp(1, smp::MOST);
    if !smp::start(cpus) {
        print!("edu: WRONG: not all of {cpus} CPUs came\n");
        return Verdict::Wrong;
    }
    let edu = match device::start(options::number(command_line, "bus").unwrap_or(0) as u8) {
        Ok(edu) => edu,
        Err(wrong) => {
            print!("edu: start: WRONG: {wrong}\n");
            return Verdict::Wrong;
        }
    };
    let request = Request::of(command_line, edu, cpus);
    let names = options::value(command_line, "do").unwrap_or("check");
    Verdict::of(names.split(',').fold(true, |right, name| run(name, &request) & right))
}

fn run(name: &str, request: &Request<'_>) -> bool {
    let Some((_, act)) = WAYS.iter().find(|way| way.0 == name) else {
        print!("edu: {name}: no such way; there are");
        WAYS.iter().for_each(|way| print!(" {}", way.0));
        print!("\n");
        return false;
    };
    print!("edu: {name}: going\n");
    let result = act(request);
    match &result {
        Ok(()) => print!("edu: {name}: ok\n"),
        Err(wrong) => print!("edu: {name}: WRONG: {wrong}\n"),
    }
    result.is_ok()
}

/// Sleeps until the host ends it.
fn wait() -> Result<(), Wrong> {
    loop {
        cpu::sleep_until_interrupt();
    }
}
