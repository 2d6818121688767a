// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU models: what Linux sees of one, and a host that lacks another.

use anyhow::{Context as _, Result, ensure};
use baton::config::Guest;
use bundle::CpuModel;
use e2e::dmesg;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, linux};

use super::Rule;

pub const RULES: &[Rule] =
    &[("a_guest_sees_its_cpu_model_and_a_host_that_lacks_one_refuses_it", a_model_is_seen_or_refused)];

const LEVEL: &str = "level";
const MILAN: &str = "milan";

/// The CPU has CMPXCHG16B, which `v2` has; one alone executes it.
fn a_model_is_seen_or_refused() -> Result<()> {
    let level = Guest { cpu: CpuModel::V2, ..linux(LEVEL, Kernel::Default, "flags,heartbeat:100")? };
    let milan = Guest { cpu: CpuModel::EpycMilan, ..linux(MILAN, Kernel::Default, "wait")? };
    let mut host = Recipe { cpu: "max", ..Recipe::new() }.cpus(1).guest(level).guest(milan).start()?;
    let reason = host.failure(MILAN)?;
    let (begin, end) =
        ("its CPU model epyc-milan has ", ", which this host's CPU lacks: choose another `cpu`, or \"host\"");
    ensure!(reason.contains(begin) && reason.contains(end) && reason.contains("VPCLMULQDQ"), "{reason}");
    host.guest_prints(LEVEL, "flags: ")?;
    host.guest_prints(LEVEL, " end")?;
    let console = host.seen.console(LEVEL);
    let flags = console.lines().find_map(|line| line.strip_prefix("flags: ")).context("no flags")?;
    let has = |name: &str| flags.split(' ').any(|flag| flag == name);
    let level = ["sse4_2", "ssse3", "popcnt", "cx16", "lahf_lm", "sse2", "nx", "hypervisor", "x2apic"];
    ensure!(level.iter().all(|name| has(name)), "{flags}");
    let beyond = ["avx", "avx2", "xsave", "aes", "bmi1", "movbe", "fma", "abm", "sse4a", "pdpe1gb", "fsgsbase"];
    ensure!(!beyond.iter().any(|name| has(name)), "{flags}");
    host.update_to(2)?;
    host.beats(LEVEL, 3)?;
    let complaints =
        dmesg::suspicious(&host.seen.console(LEVEL)).iter().map(|line| line.to_string()).collect::<Vec<_>>();
    ensure!(complaints.is_empty(), "the guest complains: {complaints:#?}");
    host.powers_off()
}
