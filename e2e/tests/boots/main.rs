// SPDX-License-Identifier: MIT OR Apache-2.0
//! One test per boot: `cargo test --package e2e`, after `scripts/build.sh`. A part of a name chooses tests, as ever.

use std::process::ExitCode;

use e2e::place::{Emulator, has_grub, has_kexec, has_perf, uefi};
use libtest_mimic::{Arguments, Failed, Trial};

mod again;
mod bad_input;
mod bad_machines;
mod console;
mod control;
mod counters;
mod cpus;
mod crowd;
mod endings;
mod hostile;
mod images;
mod isolation;
mod kexec;
mod lifecycle;
mod linux;
mod log;
mod memory;
mod panicked;
mod pci;
mod processors;
mod profile;
mod protocols;
mod restart;
mod self_tests;
mod stress;
mod timeline;
mod tool;
mod update;

/// A test's name and the test.
type Rule = (&'static str, fn() -> anyhow::Result<()>);

/// Emulators that run at a time: each has at least two threads that work.
const EMULATORS_AT_A_TIME: usize = 2;

fn main() -> ExitCode {
    if let Some(status) = e2e::tool::play() {
        return status;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(EMULATORS_AT_A_TIME));
    let conclusion = libtest_mimic::run(&arguments, trials());
    again::try_alone(&arguments, &conclusion, trials)
}

fn trials() -> Vec<Trial> {
    let groups = [
        ("lifecycle", lifecycle::RULES),
        ("console", console::RULES),
        ("control", control::RULES),
        ("bad_input", bad_input::RULES),
        ("bad_machines", bad_machines::RULES),
        ("hostile", hostile::RULES),
        ("crowd", crowd::RULES),
        ("counters", counters::RULES),
        ("counters", counters::beside::RULES),
        ("counters", if has_perf() { counters::PERF_RULES } else { &[] }),
        ("isolation", isolation::RULES),
        ("log", log::RULES),
        ("memory", memory::RULES),
        ("self_tests", self_tests::RULES),
        ("endings", endings::RULES),
        ("processors", processors::RULES),
        ("cpus", cpus::RULES),
        ("processors", if Emulator::Ten.is_here() { processors::X2APIC_RULES } else { &[] }),
        ("panicked", panicked::RULES),
        ("panicked", if e2e::gdb::is_here() { panicked::GDB_RULES } else { &[] }),
        ("cpus", if Emulator::Ten.is_here() { cpus::X2APIC_RULES } else { &[] }),
        ("restart", restart::RULES),
        ("images", images::RULES),
        ("restart", if Emulator::Ten.is_here() { restart::X2APIC_RULES } else { &[] }),
        ("timeline", timeline::RULES),
        ("profile", profile::RULES),
        ("profile", profile::command::RULES),
        ("pci", pci::RULES),
        ("protocols", protocols::RULES),
        ("protocols", if has_grub() { protocols::GRUB_RULES } else { &[] }),
        ("protocols", if has_grub() && uefi().is_some() { protocols::UEFI_RULES } else { &[] }),
        ("kexec", if has_kexec() { kexec::RULES } else { &[] }),
        ("kexec", if has_kexec() && uefi().is_some() { kexec::UEFI_RULES } else { &[] }),
        ("update", update::RULES),
        ("update", update::amid::RULES),
        ("update", update::faults::RULES),
        ("update", update::images::RULES),
        ("update", update::linux::RULES),
        ("update", update::versions::RULES),
        ("update", if Emulator::Ten.is_here() { update::X2APIC_RULES } else { &[] }),
        ("update", if Emulator::Ten.is_here() { update::faults::X2APIC_RULES } else { &[] }),
        ("tool", tool::RULES),
    ];
    let rules =
        groups.into_iter().flat_map(|(group, rules)| rules.iter().map(move |&(name, rule)| trial(group, name, rule)));
    let whole = linux::trials().into_iter().chain(panicked::trials()).chain(stress::trials());
    whole.chain(rules).collect()
}

/// A test whose failure is told with all its causes.
fn trial(group: &str, name: &str, rule: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> Trial {
    let name = format!("{group}::{name}");
    Trial::test(name.clone(), move || {
        rule().map_err(|error| {
            let reason = format!("{error:#}");
            again::note(&name, &reason);
            Failed::from(reason)
        })
    })
}
