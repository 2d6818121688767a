// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several CPUs: interrupts between them are delivered as the architecture defines, storms of them included.
//!
//! The command line names what to do (`do=fixed,nmi`, `do=all`); each prints `crowd: NAME: ok`, or `crowd: NAME: WRONG`
//! and what came instead. `cpus=COUNT` are woken first; `apic=memory` keeps the local APICs' registers in memory.
#![no_std]
#![no_main]
// Reason: see the library's.
#![allow(unsafe_code)]

mod answers;
mod destinations;
mod nmis;
mod shootdown;
mod steps;
mod storms;

use answers::Wrong;
use tiny::{Verdict, apic, options, print, smp};

tiny::main!(main);

type Way = (&'static str, fn(usize) -> Result<(), Wrong>);

const WAYS: &[Way] = &[
    ("fixed", destinations::fixed),
    ("itself", destinations::itself),
    ("broadcast", destinations::broadcast),
    ("logical", destinations::logical),
    ("cluster", destinations::cluster),
    ("lowest", destinations::lowest_priority),
    ("absent", destinations::absent),
    ("reserved", destinations::reserved),
    ("nmi", nmis::each_gets_its_own),
    ("nmi-nesting", nmis::none_comes_into_a_handler),
    ("single-step", steps::each_instruction_is_one),
    ("shootdown", shootdown::no_cpu_sees_the_old_page),
    ("off", storms::a_stopped_cpu_receives_nothing),
    ("sipi-running", storms::a_running_cpu_ignores_startup),
    ("ipi-storm", storms::of_interrupts),
    ("init-storm", storms::of_inits),
];

fn main(command_line: &str) -> Verdict {
    let cpus = options::number(command_line, "cpus").unwrap_or(1).clamp(1, smp::MOST);
    match options::value(command_line, "apic") {
        Some("memory") => apic::enable_in_memory(),
        _ => apic::enable(),
    }
    if !smp::start(cpus) {
        print!("crowd: WRONG: not all of {cpus} CPUs came\n");
        return Verdict::Wrong;
    }
    print!("crowd: {cpus} CPUs\n");
    let names = options::value(command_line, "do").unwrap_or("all");
    let is_wanted = |way: &&Way| names == "all" || names.split(',').any(|name| name == way.0);
    Verdict::of(WAYS.iter().filter(is_wanted).fold(true, |right, way| run(way, cpus) & right))
}

fn run(&(name, act): &Way, cpus: usize) -> bool {
    match act(cpus) {
        Ok(()) => print!("crowd: {name}: ok\n"),
        Err(wrong) => {
            print!("crowd: {name}: WRONG: {wrong}\n");
            return false;
        }
    }
    true
}
