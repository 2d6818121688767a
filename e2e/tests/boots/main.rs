// SPDX-License-Identifier: MIT OR Apache-2.0
//! One test per boot: `cargo test --package e2e --test boots`, after `scripts/build.sh`. A part of a name chooses
//! tests. Those of the long suite have names `long::…`, and run with `--ignored`.

use std::process::ExitCode;
use std::time::Instant;

use e2e::lanes;
use e2e::place::{Emulator, Kernel, has_grub, has_kexec, has_nbdkit, has_perf, uefi};
use lab::checks::is_strict;
use libtest_mimic::{Arguments, Failed, Trial};

mod access;
mod assigned;
mod assignments;
mod bad_input;
mod bad_machines;
mod blackout;
mod bochs;
mod capped;
mod configuring;
mod conform;
mod console;
mod control;
mod cores;
mod counters;
mod cpus;
mod created;
mod crowd;
mod demand;
mod devices;
mod disk_boot;
mod disks;
mod endings;
mod groups;
mod guest_control;
mod hostile;
mod hot_plug;
mod images;
mod iommus;
mod isolation;
mod kexec;
mod last_words;
mod lifecycle;
mod lines;
mod linux;
mod linux_functions;
mod log;
mod machine_checks;
mod many_guests;
mod memory;
mod migrating;
mod models;
mod networks;
mod panicked;
mod paravirtual;
mod pci;
mod pins;
mod profile;
mod protocols;
mod release;
mod report;
mod restart;
mod saving;
mod self_tests;
mod serve;
mod service_guest;
mod shutdown;
mod smbios;
mod smp;
mod sockets;
mod sriov;
mod stress;
mod timeline;
mod tool;
mod transfers;
mod twenty;
mod update;
mod virtio;
mod vmx;
mod whole_path;

/// A test's name and the test.
type Rule = (&'static str, fn() -> anyhow::Result<()>);

const MACHINE_RULES: &[Rule] =
    &[("nothing_is_left_out_where_that_is_strict", nothing_is_left_out_where_that_is_strict)];

const LONG_MACHINE_RULES: &[Rule] =
    &[("nothing_of_the_long_suite_is_left_out_where_that_is_strict", nothing_of_the_long_suite_is_left_out)];

/// Parts of the names of boots that take longest: they begin first, so that no core waits for one of them at the end.
const LONGEST: [&str; 10] = [
    "stress::",
    "panicked::a kernel",
    "busy_guests_are_left_alone",
    "a_reader_that_stalls",
    "a_sent_bundle",
    "that_fails_while_it_prepares_itself",
    "guests_run_well_while_their_host_probes",
    "update::an_image_of_old",
    "update::guests_go_on",
    "restart::two_guests",
];

fn main() -> ExitCode {
    let played = lab::bound::play().or_else(serve::play).or_else(e2e::relay::play).or_else(e2e::tool::play);
    if let Some(status) = played {
        return status;
    }
    let mut arguments = Arguments::from_args();
    let is_long = arguments.ignored || arguments.include_ignored;
    // The long suite has tests of timing, which one emulator more than there are cores would disturb.
    arguments.test_threads = arguments.test_threads.or(Some(lanes::usual() + usize::from(!is_long)));
    if !arguments.list {
        let of_the_long_suite = if is_long { left_out_of_the_long_suite() } else { Vec::new() };
        left_out().into_iter().chain(of_the_long_suite).for_each(|what| println!("left out: {what}"));
    }
    let mut trials: Vec<Trial> = trials().into_iter().chain(long_tests()).collect();
    trials.sort_by_key(|trial| LONGEST.iter().position(|part| trial.name().contains(part)).unwrap_or(LONGEST.len()));
    let conclusion = libtest_mimic::run(&arguments, trials);
    report::print_slowest();
    report::print_repeated();
    report::print_failures();
    conclusion.exit_code()
}

/// Returns what this machine lacks, and which rules it keeps from being tried.
fn left_out() -> Vec<&'static str> {
    let needs = [
        (Emulator::Ten.is_here(), "no QEMU 10 here: no rule of x2APIC hosts is tried"),
        (
            Kernel::V6_1.file().is_ok() && Kernel::V6_12.file().is_ok(),
            "not both kernels here: Linux 6.1 or 6.12 is not booted",
        ),
        (Emulator::Bochs.is_here(), "no Bochs here: no rule is tried in a second emulator"),
        (has_perf(), "no perf here: no rule of Linux's own perf is tried"),
        (e2e::gdb::is_here(), "no gdb here: no rule of gdb is tried"),
        (has_grub(), "no grub-mkrescue here: no disc is started"),
        (uefi().is_some(), "no OVMF here: nothing is started by UEFI firmware"),
        (has_nbdkit(), "no nbdkit here: no guest has a disk behind a server in another guest"),
        (has_kexec(), "no kexec-tools here: no running Linux is replaced"),
        (
            Kernel::Default.drivers().is_ok() && Kernel::V6_12.drivers().is_ok(),
            "not both kernels' drivers here: no guest of Linux has a network, a virtio device, or a disk to start from",
        ),
    ];
    needs.into_iter().filter(|(is_here, _)| !is_here).map(|(_, what)| what).collect()
}

/// The same for the long suite alone.
fn left_out_of_the_long_suite() -> Vec<&'static str> {
    let needs = [
        (e2e::crash::is_here(), "no crash with a kernel's symbols here: no guest's core is opened by it"),
        (
            Kernel::V6_1Full.file().is_ok(),
            "no full kernel here (target/kernels/6.1-full): no driver of a network card is loaded",
        ),
        (whole_path::is_possible(), "no GRUB, curl, promtool or Chromium here: no host is operated by all of them"),
    ];
    needs.into_iter().filter(|(is_here, _)| !is_here).map(|(_, what)| what).collect()
}

/// `STRICT=1` makes a failure of what is left out.
fn nothing_is_left_out_where_that_is_strict() -> anyhow::Result<()> {
    is_empty_where_that_is_strict(&left_out())
}

fn nothing_of_the_long_suite_is_left_out() -> anyhow::Result<()> {
    is_empty_where_that_is_strict(&left_out_of_the_long_suite())
}

fn is_empty_where_that_is_strict(left_out: &[&str]) -> anyhow::Result<()> {
    anyhow::ensure!(!is_strict() || left_out.is_empty(), "{left_out:#?}");
    Ok(())
}

/// Disks behind nbdkit; their guests load drivers.
fn has_disks() -> bool {
    has_nbdkit() && Kernel::Default.drivers().is_ok()
}

fn trials() -> Vec<Trial> {
    let groups = [
        ("machine", MACHINE_RULES),
        ("capped", capped::RULES),
        ("configuring", configuring::RULES),
        ("configuring", if Kernel::Default.drivers().is_ok() { created::RULES } else { &[] }),
        ("lifecycle", lifecycle::RULES),
        ("migrating", migrating::RULES),
        ("saving", saving::RULES),
        ("console", console::RULES),
        ("control", control::RULES),
        ("lines", lines::RULES),
        ("access", access::RULES),
        ("assigned", assigned::RULES),
        ("assigned", if Emulator::Ten.is_here() { assigned::TEN_RULES } else { &[] }),
        ("assignments", assignments::RULES),
        ("blackout", blackout::RULES),
        ("bad_input", bad_input::RULES),
        ("bad_machines", bad_machines::RULES),
        ("hostile", hostile::RULES),
        ("hot_plug", hot_plug::RULES),
        ("bochs", if Emulator::Bochs.is_here() { bochs::RULES } else { &[] }),
        ("vmx", if Emulator::Bochs.is_here() { vmx::RULES } else { &[] }),
        ("conform", conform::RULES),
        ("paravirtual", paravirtual::RULES),
        ("crowd", crowd::RULES),
        ("counters", counters::RULES),
        ("counters", counters::beside::RULES),
        ("counters", if has_perf() { counters::PERF_RULES } else { &[] }),
        ("devices", devices::RULES),
        ("isolation", isolation::RULES),
        ("last_words", last_words::RULES),
        ("log", log::RULES),
        ("models", models::RULES),
        ("networks", if Kernel::Default.drivers().is_ok() { networks::RULES } else { &[] }),
        ("sockets", if Kernel::Default.drivers().is_ok() { sockets::RULES } else { &[] }),
        ("guest_control", if Kernel::Default.drivers().is_ok() { guest_control::RULES } else { &[] }),
        ("virtio", if Kernel::Default.drivers().is_ok() { virtio::RULES } else { &[] }),
        ("demand", if Kernel::Default.drivers().is_ok() { demand::RULES } else { &[] }),
        ("linux_functions", if Kernel::Default.drivers().is_ok() { linux_functions::RULES } else { &[] }),
        ("machine_checks", machine_checks::RULES),
        ("many_guests", many_guests::RULES),
        ("memory", memory::RULES),
        ("self_tests", self_tests::RULES),
        ("endings", endings::RULES),
        ("endings", endings::steps::RULES),
        ("serve", serve::RULES),
        ("shutdown", if Kernel::V6_12.drivers().is_ok() { shutdown::RULES } else { &[] }),
        ("smbios", smbios::RULES),
        ("smp", smp::RULES),
        ("cpus", cpus::RULES),
        ("smp", if Emulator::Ten.is_here() { smp::X2APIC_RULES } else { &[] }),
        ("panicked", panicked::RULES),
        ("panicked", panicked::paused::RULES),
        ("panicked", if e2e::gdb::is_here() { panicked::GDB_RULES } else { &[] }),
        ("cpus", if Emulator::Ten.is_here() { cpus::X2APIC_RULES } else { &[] }),
        ("restart", restart::RULES),
        ("stress", stress::RULES),
        ("images", images::RULES),
        ("timeline", timeline::RULES),
        ("profile", profile::RULES),
        ("profile", profile::command::RULES),
        ("pci", pci::RULES),
        ("pins", pins::RULES),
        ("iommus", iommus::RULES),
        ("protocols", protocols::RULES),
        ("packed", protocols::packed::RULES),
        ("protocols", if has_grub() { protocols::GRUB_RULES } else { &[] }),
        ("packed", if has_grub() { protocols::packed::GRUB_RULES } else { &[] }),
        ("protocols", if has_grub() && uefi().is_some() { protocols::UEFI_RULES } else { &[] }),
        ("packed", if has_grub() && uefi().is_some() { protocols::packed::UEFI_RULES } else { &[] }),
        ("disk_boot", if Kernel::V6_12.drivers().is_ok() { disk_boot::RULES } else { &[] }),
        ("disks", if has_disks() { disks::RULES } else { &[] }),
        ("kexec", if has_kexec() { kexec::RULES } else { &[] }),
        ("kexec", if has_kexec() && uefi().is_some() { kexec::UEFI_RULES } else { &[] }),
        ("update", update::RULES),
        ("update", update::amid::RULES),
        ("update", update::beside::RULES),
        ("update", update::confirmed::RULES),
        ("update", update::confirmed_bundle::RULES),
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
    let whole = linux::trials().into_iter().chain(panicked::trials());
    whole.chain(rules).collect()
}

/// Returns what `make test-all` runs beyond `make test`: soaks, long forms, and true concurrency
/// ([`e2e::recipe::Recipe::concurrent`]).
fn long_tests() -> Vec<Trial> {
    let groups = [
        ("machine", LONG_MACHINE_RULES),
        ("counters", if has_perf() { counters::PERF_LONG_RULES } else { &[] }),
        ("cores", if e2e::crash::is_here() { cores::CRASH_LONG_RULES } else { &[] }),
        ("bochs", if Emulator::Bochs.is_here() { bochs::LONG_RULES } else { &[] }),
        ("vmx", if Emulator::Bochs.is_here() { vmx::LONG_RULES } else { &[] }),
        ("devices", devices::LONG_RULES),
        ("saving", if Kernel::V6_12.drivers().is_ok() { saving::LONG_RULES } else { &[] }),
        ("devices", if Emulator::Ten.is_here() { devices::TEN_LONG_RULES } else { &[] }),
        ("devices", if Kernel::V6_1Full.file().is_ok() { devices::DRIVER_LONG_RULES } else { &[] }),
        ("assigned", assigned::LONG_RULES),
        ("assigned", groups::LONG_RULES),
        ("configuring", configuring::LONG_RULES),
        ("configuring", if has_disks() { created::LONG_RULES } else { &[] }),
        ("assigned", if Kernel::V6_1Full.file().is_ok() { assigned::DRIVER_RULES } else { &[] }),
        ("networks", if Kernel::V6_12.drivers().is_ok() { networks::LONG_RULES } else { &[] }),
        ("sockets", if Kernel::V6_12.drivers().is_ok() { sockets::LONG_RULES } else { &[] }),
        ("guest_control", if Kernel::V6_12.drivers().is_ok() { guest_control::LONG_RULES } else { &[] }),
        ("disk_boot", if has_disks() { disk_boot::LONG_RULES } else { &[] }),
        ("service_guest", if has_disks() { service_guest::LONG_RULES } else { &[] }),
        ("many_guests", if has_disks() { twenty::LONG_RULES } else { &[] }),
        ("whole_path", if whole_path::is_possible() { whole_path::LONG_RULES } else { &[] }),
        ("disks", if has_disks() { disks::LONG_RULES } else { &[] }),
        ("virtio", if Kernel::V6_12.drivers().is_ok() { virtio::LONG_RULES } else { &[] }),
        ("demand", if Kernel::V6_12.drivers().is_ok() { demand::LONG_RULES } else { &[] }),
        ("linux_functions", if Kernel::V6_1Full.file().is_ok() { linux_functions::DRIVER_LONG_RULES } else { &[] }),
        ("io", if Kernel::V6_1Full.file().is_ok() { linux_functions::IO_LONG_RULES } else { &[] }),
        ("endings", endings::steps::LONG_RULES),
        ("lines", lines::LONG_RULES),
        ("access", access::LONG_RULES),
        ("many_guests", many_guests::LONG_RULES),
        ("hot_plug", hot_plug::LONG_RULES),
        ("hot_plug", if Kernel::V6_1Full.file().is_ok() { hot_plug::DRIVER_LONG_RULES } else { &[] }),
        ("iommus", if has_kexec() && Kernel::V6_1Full.file().is_ok() { kexec::DRIVER_LONG_RULES } else { &[] }),
        ("sriov", sriov::LONG_RULES),
        ("sriov", if has_igb() { sriov::DRIVER_LONG_RULES } else { &[] }),
        ("last_words", last_words::LONG_RULES),
        ("panicked", panicked::LONG_RULES),
        ("smp", if Emulator::Ten.is_here() { smp::X2APIC_LONG_RULES } else { &[] }),
        ("protocols", protocols::LONG_RULES),
        ("release", release::LONG_RULES),
        ("restart", restart::LONG_RULES),
        ("serve", serve::LONG_RULES),
        ("restart", if Emulator::Ten.is_here() { restart::X2APIC_LONG_RULES } else { &[] }),
        ("transfers", if Kernel::V6_1Full.file().is_ok() { transfers::DRIVER_LONG_RULES } else { &[] }),
        ("stress", stress::LONG_RULES),
        ("update", update::LONG_RULES),
        ("faults", update::faults::LONG_RULES),
    ];
    let rules = groups
        .into_iter()
        .flat_map(|(group, rules)| rules.iter().map(move |&(name, rule)| long_test(group, name, rule)));
    rules.chain(panicked::long_tests()).chain(stress::long_tests()).collect()
}

/// Possible cause of a failure of concurrent CPUs. Nothing that can be seen from outside proves it, so the test has
/// failed.
const POSSIBLE_RACE: &str = "perhaps the emulator's race: QEMU may have lost a flag of CPU 0 (see \
                             `Recipe::concurrent`); if the same boot fails with one thread for all CPUs, it is no race";

/// A test `long::GROUP::NAME`, which runs with `--ignored` or `--include-ignored` only.
fn long_test(group: &str, name: &str, rule: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> Trial {
    let is_concurrent = name.contains("concurrent");
    let hinted = move || rule().map_err(|error| if is_concurrent { error.context(POSSIBLE_RACE) } else { error });
    trial(&format!("long::{group}"), name, hinted).with_ignored_flag(true)
}

/// A test; its failure is reported with all its causes.
fn trial(group: &str, name: &str, rule: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> Trial {
    let name = format!("{group}::{name}");
    Trial::test(name.clone(), move || {
        let _lane = lanes::enter();
        let begin = Instant::now();
        let result = rule();
        report::note_time(&name, begin.elapsed());
        result.map_err(|error| {
            let reason = format!("{error:#}");
            report::note_failure(&name, begin.elapsed(), &reason);
            Failed::from(reason)
        })
    })
}

/// QEMU 10 has igb, and the full kernel its driver.
fn has_igb() -> bool {
    Emulator::Ten.is_here() && Kernel::V6_1Full.file().is_ok()
}
