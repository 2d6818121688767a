// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines that lack something: the host says what, and stays where it can.

use anyhow::{Result, ensure};
use baton::lab::Ending;
use baton::size::Size;
use e2e::recipe::Recipe;
use wire::Virtualization;

use super::Rule;

pub const RULES: &[Rule] = &[
    ("without_svm_no_guest_runs_and_the_host_stays", without_svm_no_guest_runs_and_the_host_stays),
    ("without_nested_paging_no_guest_runs_and_the_host_stays", without_nested_paging_no_guest_runs_and_the_host_stays),
    ("an_absent_x2apic_is_done_without", an_absent_x2apic_is_done_without),
    ("a_guest_that_does_not_fit_the_machine_fails", a_guest_that_does_not_fit_the_machine_fails),
    ("a_machine_too_small_for_the_host_is_told_so", a_machine_too_small_for_the_host_is_told_so),
    ("without_a_table_of_processors_one_runs_guests", without_a_table_of_processors_one_runs_guests),
    ("of_a_truncated_table_the_processors_before_the_cut_run", of_a_truncated_table_the_processors_before_the_cut_run),
    ("of_processors_with_one_identifier_the_first_is_used", of_processors_with_one_identifier_the_first_is_used),
    ("a_processor_that_does_not_exist_is_named_and_done_without", a_processor_that_does_not_exist_is_done_without),
];

const GUEST: &str = "debian";

fn lacks(processor: &'static str, what: &str) -> Result<()> {
    let mut host = Recipe { processor, ..Recipe::new() }.linux(GUEST, "poweroff")?.start()?;
    let reason = host.failure(GUEST)?;
    ensure!(reason.contains(what) && reason.contains("in QEMU: -cpu max"), "{reason}");
    host.says(&[&reason])?;
    let info = host.client()?.info()?;
    ensure!(info.virtualization == Virtualization::None && info.features.is_empty(), "{info:?}");
    host.is_up()?;
    host.powers_off()
}

fn without_svm_no_guest_runs_and_the_host_stays() -> Result<()> {
    lacks("max,-svm", "no AMD SVM")
}

fn without_nested_paging_no_guest_runs_and_the_host_stays() -> Result<()> {
    lacks("max,-npt", "no nested paging")
}

fn an_absent_x2apic_is_done_without() -> Result<()> {
    let recipe = Recipe { processor: "max,-x2apic", ..Recipe::new() }.options("apic=x2apic");
    let mut host = recipe.powers_off().linux(GUEST, "poweroff")?.start()?;
    host.says(&["apic=x2apic", "xAPIC mode is used"])?;
    host.greets(GUEST)?;
    ensure!(host.ending()? == Ending::PoweredOff, "{}", host.seen);
    Ok(())
}

fn a_guest_that_does_not_fit_the_machine_fails() -> Result<()> {
    let mut host = Recipe { memory: Size::mebibytes(128), ..Recipe::new() }.linux(GUEST, "poweroff")?.start()?;
    let reason = host.failure(GUEST)?;
    ensure!(reason.contains("give it less or the host more"), "{reason}");
    host.is_up()?;
    host.powers_off()
}

fn a_machine_too_small_for_the_host_is_told_so() -> Result<()> {
    let mut host = Recipe { memory: Size::mebibytes(6), ..Recipe::new() }.start_with(None)?;
    let ending = host.ending()?;
    ensure!(ending == Ending::Panicked, "{ending}:\n{}", host.seen);
    ensure!(host.seen.host_said(&["memory"]) && host.seen.host_said(&["give the machine more"]), "{}", host.seen);
    Ok(())
}

/// Of four processors so many run a guest where their table is damaged in this way; the log says what was wrong.
fn runs_despite(damage: &str, online: u32, complaints: &[&[&str]]) -> Result<()> {
    let recipe = Recipe::new().cpus(4).options(&format!("selftest=madt:{damage}"));
    let mut host = recipe.powers_off().linux(GUEST, "poweroff")?.start()?;
    host.says(&[&format!("processors: {online} online")])?;
    host.greets(GUEST)?;
    for parts in complaints {
        ensure!(host.seen.host_said(parts), "nothing says {parts:?}:\n{}", host.seen);
    }
    ensure!(host.ending()? == Ending::PoweredOff, "{}", host.seen);
    Ok(())
}

fn without_a_table_of_processors_one_runs_guests() -> Result<()> {
    runs_despite("missing", 1, &[&["ACPI table APIC: missing", "only the processor that booted is used"]])
}

fn of_a_truncated_table_the_processors_before_the_cut_run() -> Result<()> {
    runs_despite("truncated", 1, &[&["ACPI table APIC: the entry at byte 52 is cut short and ignored"]])
}

fn of_processors_with_one_identifier_the_first_is_used() -> Result<()> {
    runs_despite("duplicate", 3, &[&["ACPI table APIC: a second processor with APIC id 0 is ignored"]])
}

fn a_processor_that_does_not_exist_is_done_without() -> Result<()> {
    let absent = ["processor 1 (APIC id 254)", "first sign of life", "the host goes on without it"];
    runs_despite("absurd", 2, &[&["APIC id 0xff, which means all of them"], &absent])
}
