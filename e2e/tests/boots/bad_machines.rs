// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines that lack something: the host reports what, and stays where it can.

use anyhow::{Result, ensure};
use baton::size::Size;
use e2e::host::Host;
use e2e::recipe::Recipe;
use lab::Ending;
use wire::{RequestBody, Virtualization};

use super::Rule;
use super::update::update;

pub const RULES: &[Rule] = &[
    ("without_svm_no_guest_runs_and_the_host_stays", without_svm_no_guest_runs_and_the_host_stays),
    ("without_nested_paging_no_guest_runs_and_the_host_stays", without_nested_paging_no_guest_runs_and_the_host_stays),
    ("an_absent_x2apic_is_done_without", an_absent_x2apic_is_done_without),
    ("without_an_hpet_the_pm_timer_gives_the_rate_and_updates_log_the_missing_watchdog", without_an_hpet),
    ("a_guest_that_does_not_fit_the_machine_fails", a_guest_that_does_not_fit_the_machine_fails),
    ("a_machine_too_small_for_the_host_is_reported", a_machine_too_small_for_the_host_is_reported),
    ("without_a_table_of_cpus_one_runs_guests", without_a_table_of_cpus_one_runs_guests),
    ("of_a_truncated_table_the_cpus_before_the_cut_run", of_a_truncated_table_the_cpus_before_the_cut_run),
    ("of_cpus_with_one_identifier_the_first_is_used", of_cpus_with_one_identifier_the_first_is_used),
    ("a_cpu_that_does_not_exist_is_named_and_done_without", a_cpu_that_does_not_exist_is_done_without),
];

const GUEST: &str = "guest";

fn lacks(cpu: &'static str, what: &str) -> Result<()> {
    let mut host = Recipe { cpu, ..Recipe::new() }.greeting(GUEST)?.start()?;
    let reason = host.failure(GUEST)?;
    ensure!(reason.contains(what) && reason.contains("in QEMU: -cpu max"), "{reason}");
    host.logs(&[&reason])?;
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
    let recipe = Recipe { cpu: "max,-x2apic", ..Recipe::new() }.options("apic=x2apic");
    let mut host = recipe.powers_off().greeting(GUEST)?.start()?;
    host.logs(&["apic=x2apic", "xAPIC mode is used"])?;
    host.greets(GUEST)?;
    ensure!(host.ending()? == Ending::PoweredOff, "{}", host.seen);
    Ok(())
}

/// The rate is that of a machine with an HPET, guests go on over an update, and the log names what nothing
/// watches then.
fn without_an_hpet() -> Result<()> {
    const NOTHING_WATCHES: [&str; 2] = ["update: nothing watches the new image while", "no HPET timer"];
    let (with, mut host) = rate_measured_against("the HPET", Recipe::new())?;
    update(&mut host)?;
    ensure!(!host.seen.host_logged(&NOTHING_WATCHES), "it has an HPET:\n{}", host.seen);
    host.powers_off()?;
    let recipe = Recipe::new().with(["-machine".into(), "hpet=off".into()]);
    let (without, mut host) = rate_measured_against("the ACPI PM timer", recipe)?;
    ensure!(with.abs_diff(without) < with / 100, "{with} Hz by the HPET, {without} Hz by the PM timer");
    update(&mut host)?;
    host.beats(GUEST, 3)?;
    host.logs(&NOTHING_WATCHES)?;
    let refusal = host.refusal(RequestBody::ProfileBegin { by: 1, hz: 100 })?;
    ensure!(refusal.to_string().contains("HPET"), "{refusal}");
    host.powers_off()
}

/// A host with a guest that beats, and its time stamp counter's rate.
fn rate_measured_against(clock: &str, recipe: Recipe) -> Result<(u64, Host)> {
    let mut host = recipe.options("tsc=skip").beating(GUEST)?.start()?;
    host.logs(&["clock: TSC at", &format!("MHz, measured against {clock}")])?;
    host.beats(GUEST, 3)?;
    Ok((host.client()?.info()?.tsc_hz, host))
}

fn a_guest_that_does_not_fit_the_machine_fails() -> Result<()> {
    let mut host = Recipe { memory: Size::mebibytes(16), ..Recipe::new() }.greeting(GUEST)?.start()?;
    let reason = host.failure(GUEST)?;
    ensure!(reason.contains("give it less or the host more"), "{reason}");
    host.is_up()?;
    host.powers_off()
}

fn a_machine_too_small_for_the_host_is_reported() -> Result<()> {
    let mut host = Recipe { memory: Size::mebibytes(6), ..Recipe::new() }.start_with(None)?;
    let ending = host.ending()?;
    ensure!(ending == Ending::Panicked, "{ending}:\n{}", host.seen);
    ensure!(host.seen.host_logged(&["memory"]) && host.seen.host_logged(&["give the machine more"]), "{}", host.seen);
    Ok(())
}

/// Of four CPUs so many run a guest where their table is damaged in this way; the log reports what was wrong.
fn runs_despite(damage: &str, online: u32, complaints: &[&[&str]]) -> Result<()> {
    let recipe = Recipe::new().with_fault_points().cpus(4).options(&format!("selftest=madt:{damage}"));
    let mut host = recipe.powers_off().greeting(GUEST)?.start()?;
    host.logs(&[&format!("CPUs: {online} online")])?;
    host.greets(GUEST)?;
    for parts in complaints {
        ensure!(host.seen.host_logged(parts), "no line has {parts:?}:\n{}", host.seen);
    }
    ensure!(host.ending()? == Ending::PoweredOff, "{}", host.seen);
    Ok(())
}

fn without_a_table_of_cpus_one_runs_guests() -> Result<()> {
    runs_despite("missing", 1, &[&["ACPI table APIC: missing", "only the CPU that booted is used"]])
}

fn of_a_truncated_table_the_cpus_before_the_cut_run() -> Result<()> {
    runs_despite("truncated", 1, &[&["ACPI table APIC: the entry at byte 52 is cut short and ignored"]])
}

fn of_cpus_with_one_identifier_the_first_is_used() -> Result<()> {
    runs_despite("duplicate", 3, &[&["ACPI table APIC: a second CPU with APIC id 0 is ignored"]])
}

fn a_cpu_that_does_not_exist_is_done_without() -> Result<()> {
    let absent = ["CPU 1 (APIC id 254)", "first sign of life", "the host goes on without it"];
    runs_despite("absurd", 2, &[&["APIC id 0xff, which means all of them"], &absent])
}
