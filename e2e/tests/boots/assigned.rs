// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that drive a PCI function of their own. The controls: the same guests without Baton.

use anyhow::{Result, ensure};
use e2e::alone;
use e2e::place::Emulator;

use super::Rule;

pub const RULES: &[Rule] = &[
    ("edu_interrupts_exactly_once_on_the_bare_machine", edu_interrupts_exactly_once_on_the_bare_machine),
    ("edu_transfers_what_it_is_told_on_the_bare_machine", edu_transfers_what_it_is_told_on_the_bare_machine),
    ("edu_attacks_succeed_on_the_bare_machine", edu_attacks_succeed_on_the_bare_machine),
    ("edu_survives_any_use_of_its_registers_on_the_bare_machine", edu_survives_any_use_on_the_bare_machine),
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

/// The control of all attacks: without an IOMMU they reach memory and the interrupt controller.
fn edu_attacks_succeed_on_the_bare_machine() -> Result<()> {
    let lines = edu_alone("do=attack at=a00000,3f00000,fee00000 expect=reached")?;
    let reached = lines.iter().filter(|line| line.ends_with("write=reached") || line.ends_with("interrupts=1"));
    ensure!(reached.count() == 3, "{lines:#?}");
    Ok(())
}

fn edu_survives_any_use_on_the_bare_machine() -> Result<()> {
    let lines = edu_alone("do=bars,storm,config,reset,msi-anywhere,check")?;
    let own = lines.iter().filter(|line| line.starts_with("edu: bars") && line.ends_with("memory=own")).count();
    ensure!(own == 6, "{lines:#?}");
    Ok(())
}
