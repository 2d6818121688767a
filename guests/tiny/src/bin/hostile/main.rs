// SPDX-License-Identifier: MIT OR Apache-2.0
//! Misbehaves, one way at a time, and returns whether the answer was the architecture's.
//!
//! The command line names what to do (`do=unknown-ports,xcr0-junk`); each prints `hostile: NAME: ok`, or
//! `hostile: NAME: WRONG` and what came instead. Some ways end the guest before it can state anything: they print
//! `hostile: NAME: going`, and it is the host that must state why the guest stopped. `do=all` does, in turn, those that
//! come back.
#![no_std]
#![no_main]
// Reason: see the library's.
#![allow(unsafe_code)]

mod deaths;
mod devices;
mod instructions;
mod memory;
mod registers;

use tiny::answers::Wrong;
use tiny::{Verdict, apic, options, print};

tiny::main!(main);

/// One way to misbehave.
struct Way {
    name: &'static str,
    act: fn() -> Result<(), Wrong>,
    comes_back: bool,
}

const fn way(name: &'static str, act: fn() -> Result<(), Wrong>) -> Way {
    Way { name, act, comes_back: true }
}

/// One that a guest does not survive.
const fn death(name: &'static str, act: fn() -> Result<(), Wrong>) -> Way {
    Way { name, act, comes_back: false }
}

const WAYS: &[Way] = &[
    way("unknown-ports", devices::unknown_ports),
    way("huge-rep", devices::huge_rep),
    way("pci-junk", devices::pci_junk),
    way("hot-plug-junk", devices::hot_plug_junk),
    way("serial-storm", devices::serial_storm),
    way("ioapic-junk", devices::ioapic_junk),
    way("apic-storm", devices::apic_storm),
    way("unknown-msrs", registers::unknown_msrs),
    way("xcr0-junk", registers::xcr0_junk),
    way("unknown-addresses", memory::unknown_addresses),
    way("own-tables", memory::own_tables),
    way("absent-instructions", instructions::absent),
    way("garbage", instructions::garbage),
    death("execute-hole", memory::execute_hole),
    death("tables-in-hole", memory::tables_in_hole),
    death("all-tables", memory::all_tables),
    death("cr4-junk", registers::cr4_junk),
    death("noise", instructions::noise),
    death("triple-fault", deaths::triple_fault),
    death("debug-loop", deaths::debug_exceptions_without_end),
    death("eject-all", devices::eject_all),
    death("hang-cli", deaths::hang_with_interrupts_off),
    death("hlt-cli", deaths::sleep_with_interrupts_off),
];

fn main(command_line: &str) -> Verdict {
    apic::enable();
    let wanted = options::value(command_line, "do").unwrap_or("list");
    match wanted {
        "all" => Verdict::of(WAYS.iter().filter(|way| way.comes_back).fold(true, |right, way| run(way) & right)),
        "list" => {
            WAYS.iter().for_each(|way| print!("hostile: do={}\n", way.name));
            Verdict::Right
        }
        names => Verdict::of(names.split(',').fold(true, |right, name| run_named(name) & right)),
    }
}

fn run_named(name: &str) -> bool {
    match WAYS.iter().find(|way| way.name == name) {
        Some(way) => run(way),
        None => {
            print!("hostile: {name}: no such way; do=list lists them\n");
            false
        }
    }
}

fn run(way: &Way) -> bool {
    if !way.comes_back {
        print!("hostile: {}: going\n", way.name);
    }
    match (way.act)() {
        Ok(()) => print!("hostile: {}: ok\n", way.name),
        Err(wrong) => {
            print!("hostile: {}: WRONG: {wrong}\n", way.name);
            return false;
        }
    }
    true
}
