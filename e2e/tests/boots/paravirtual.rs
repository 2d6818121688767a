// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux guests whose vCPUs share CPUs, and wait for each other by KVM's hypercalls.

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use e2e::dmesg;
use e2e::host::Host;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, linux};
use wire::ExitKind;

use super::Rule;
use super::update::update;

pub const RULES: &[Rule] =
    &[("four_vcpus_on_two_cpus_wait_asleep_across_an_update", four_vcpus_on_two_cpus_wait_asleep)];

/// Linux's lines about the features that it uses.
const USED: [&str; 4] =
    ["PV spinlocks enabled", "setup PV IPIs", "KVM setup pv remote TLB flush", "setup PV sched yield"];

/// Contended locks, and CPUs that interrupt each other: nothing is lost, and the guest's kernel complains of nothing.
fn four_vcpus_on_two_cpus_wait_asleep() -> Result<()> {
    let tasks = "locks:500,stress:500,heartbeat:100:5,locks:500,stress:500,heartbeat:100";
    let guest = linux("debian", Kernel::Default, tasks)?;
    let cmdline = format!("console=ttyS0 agent={tasks}");
    let guest = Guest { is_paravirtual: true, vcpus: 4, cmdline, ..guest };
    let mut host = Recipe::new().cpus(2).guest(guest).start()?;
    host.guest_prints("debian", "locks: ")?;
    for line in USED {
        ensure!(host.seen.console("debian").contains(line), "{line:?} is missing: {}", host.seen);
    }
    host.guest_prints("debian", "heartbeat 0 ")?;
    let before = hypercalls(&mut host)?;
    ensure!(before > 0, "there was no hypercall");
    update(&mut host)?;
    host.guest_prints("debian", "locks: ")?;
    host.guest_prints("debian", "heartbeat 0 ")?;
    ensure!(hypercalls(&mut host)? > before, "there was none after the update");
    let console = host.seen.console("debian");
    let complaints = dmesg::suspicious_of_several_cpus(&console);
    ensure!(complaints.is_empty() && !console.contains("WRONG"), "the guest complains: {complaints:#?}\n{console}");
    host.powers_off()
}

fn hypercalls(host: &mut Host) -> Result<u64> {
    let exits = host.vm("debian")?.exits;
    let count = exits.iter().find(|exit| exit.kind == ExitKind::Hypercall);
    count.map(|exit| exit.count).context("hypercalls are not counted")
}
