// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that drive a PCI function of their own. The controls: the same guests without Baton.

use anyhow::{Result, ensure};
use e2e::alone;
use e2e::place::Emulator;

use super::Rule;

pub const RULES: &[Rule] = &[
    ("edu_interrupts_exactly_once_on_the_bare_machine", edu_interrupts_exactly_once_on_the_bare_machine),
    ("edu_transfers_what_it_is_told_on_the_bare_machine", edu_transfers_what_it_is_told_on_the_bare_machine),
];

const EDU: [&str; 6] = ["-M", "q35", "-smp", "2", "-device", "edu,dma_mask=0xffffffffffffffff"];

fn edu_alone(cmdline: &str) -> Result<Vec<String>> {
    alone::run(Emulator::System, "edu", cmdline, &EDU)
}

fn edu_interrupts_exactly_once_on_the_bare_machine() -> Result<()> {
    let lines = edu_alone("do=check,msi,intx cpus=2")?;
    for series in ["msi running", "msi halted", "msi halted-by-cpu1", "intx running", "intx halted"] {
        let wanted = format!("edu: {series} n=1000 came=1000");
        ensure!(lines.iter().any(|line| line.starts_with(&wanted)), "no line {wanted:?}: {lines:#?}");
    }
    Ok(())
}

fn edu_transfers_what_it_is_told_on_the_bare_machine() -> Result<()> {
    let lines = edu_alone("do=dma,stream rounds=3")?;
    let wanted = "transfers=6 lost=0 double=0 wrong=0 stuck=0";
    ensure!(lines.iter().any(|line| line.contains(wanted)), "no line with {wanted:?}: {lines:#?}");
    Ok(())
}
