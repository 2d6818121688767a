// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's PCI functions: found out all, in part or late, on a machine with many of them.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use e2e::host::{BOOT_LIMIT, Host};
use e2e::place::built;
use e2e::recipe::{Recipe, tiny};
use e2e::tool::Operator;
use lab::crowd;
use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};
use wire::{PciCost, PciFunction, PciPolicy, PciSurvey, ReplyBody, RequestBody};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("with_all_everything_is_probed_before_a_guest_runs", with_all_everything_is_probed_before_a_guest_runs),
    ("with_allow_only_what_is_named_is_probed", with_allow_only_what_is_named_is_probed),
    ("lazily_all_is_probed_once_a_guest_runs", lazily_all_is_probed_once_a_guest_runs),
    ("probing_takes_no_memory", probing_takes_no_memory),
    ("without_guests_an_idle_host_probes", without_guests_an_idle_host_probes),
    ("a_wrong_policy_is_named_and_the_usual_one_used", a_wrong_policy_is_named_and_the_usual_one_used),
    ("without_memory_mapped_configuration_ports_are_used", without_memory_mapped_configuration_ports_are_used),
    ("the_next_image_probes_again", the_next_image_probes_again),
    ("guests_run_well_while_their_host_probes_for_ever", guests_run_well_while_their_host_probes_for_ever),
    ("the_tool_lists_functions", the_tool_lists_functions),
    (
        "configuration_space_in_memory_is_accessed_with_eax_alone",
        configuration_space_in_memory_is_accessed_with_eax_alone,
    ),
];

const GUEST: &str = "guest";
/// The emulated machine takes its time to move address ranges about.
const LIMIT: Duration = Duration::from_secs(240);

/// As AMD's CPUs require it: the image's only routines for that are these instructions.
fn configuration_space_in_memory_is_accessed_with_eax_alone() -> Result<()> {
    const ROUTINES: [(&str, &[u8]); 4] = [
        ("ecam_read", &[0x8b, 0x07, 0xc3]),                      // mov eax, [rdi]; ret
        ("ecam_write8", &[0x89, 0xf0, 0x88, 0x07, 0xc3]),        // mov eax, esi; mov [rdi], al; ret
        ("ecam_write16", &[0x89, 0xf0, 0x66, 0x89, 0x07, 0xc3]), // mov eax, esi; mov [rdi], ax; ret
        ("ecam_write32", &[0x89, 0xf0, 0x89, 0x07, 0xc3]),       // mov eax, esi; mov [rdi], eax; ret
    ];
    let file = fs::read(built("baton.debug.elf")?)?;
    let elf = ElfFile64::<Endianness>::parse(&*file)?;
    for (name, wanted) in ROUTINES {
        let routine = elf.symbols().find(|symbol| symbol.name() == Ok(name)).context("it has no such routine")?;
        let section = elf.section_by_index(routine.section_index().context("it lies in no section")?)?;
        let code =
            section.data_range(routine.address(), wanted.len() as u64)?.context("it lies outside its section")?;
        ensure!(code == wanted, "{name}: {code:02x?}");
    }
    let source = include_str!("../../../hypervisor/src/arch/pci.rs");
    let other_ways = ["read_volatile", "write_volatile", "as *const", "as *mut"];
    ensure!(!other_ways.iter().any(|way| source.contains(way)), "another way to the registers");
    Ok(())
}

/// A machine with 57 functions and a guest.
fn crowded(option: &str) -> Result<Host> {
    let recipe = Recipe::new().options(option).with(crowd::arguments()).beating(GUEST)?;
    let mut host = recipe.start()?;
    host.limit(LIMIT);
    Ok(host)
}

/// Returns what is found, once all is.
fn complete(host: &mut Host) -> Result<(PciSurvey, Vec<PciFunction>)> {
    loop {
        let (survey, functions) = host.client()?.pci()?;
        if survey.is_complete {
            ensure!(survey.functions as usize == functions.len(), "{survey:?}, {} listed", functions.len());
            let costs: u32 = functions.iter().map(|function| function.cost.accesses).sum();
            ensure!(costs <= survey.total.accesses, "the functions cost {costs}, all together {survey:?}");
            ensure!(functions.iter().all(|function| function.problems.is_empty()), "{functions:?}");
            return Ok((survey, functions));
        }
        host.wait_a_moment()?;
    }
}

fn with_all_everything_is_probed_before_a_guest_runs() -> Result<()> {
    let mut host = crowded("pci=all")?;
    host.greets(GUEST)?;
    let (survey, functions) = complete(&mut host)?;
    ensure!(survey.policy == PciPolicy::All && survey.functions == crowd::FUNCTIONS, "{survey:?}");
    ensure!(survey.before_guests == Some(survey.total), "{survey:?}");
    let ports = functions.iter().filter(|function| function.bus_behind.is_some()).count();
    let placed = functions.iter().filter(|function| !function.ranges.is_empty()).count();
    ensure!((ports, placed) == (16, 39), "{ports} bridges, {placed} functions with ranges: {functions:?}");
    host.powers_off()
}

fn with_allow_only_what_is_named_is_probed() -> Result<()> {
    let mut host = crowded(&crowd::needed_option())?;
    host.greets(GUEST)?;
    let (survey, functions) = complete(&mut host)?;
    ensure!(survey.policy == PciPolicy::Allow && survey.functions == crowd::NEEDED, "{survey:?}");
    ensure!(survey.before_guests == Some(survey.total), "{survey:?}");
    ensure!(functions.iter().all(|function| function.place.1 == 0 && function.place.2 >= 0x10), "{functions:?}");
    let of_functions: u32 = functions.iter().map(|function| function.cost.accesses).sum();
    ensure!(of_functions == survey.total.accesses, "something else was touched: {survey:?}, functions {of_functions}");
    host.powers_off()
}

fn lazily_all_is_probed_once_a_guest_runs() -> Result<()> {
    let mut host = crowded("")?;
    host.greets(GUEST)?;
    let (survey, _) = complete(&mut host)?;
    ensure!(survey.policy == PciPolicy::Lazy && survey.functions == crowd::FUNCTIONS, "{survey:?}");
    ensure!(survey.before_guests == Some(PciCost::default()), "{survey:?}");
    host.beats(GUEST, 3)?;
    host.powers_off()
}

/// The free memory does not show whether a CPU was idle yet: an order probes, since the only CPU never is.
fn probing_takes_no_memory() -> Result<()> {
    let mut host = Recipe::new().cpus(1).guest(tiny(GUEST, "keeper", "seed=7 do=watch")?).start()?;
    host.guest_prints(GUEST, "keeper: watch: 1:")?;
    let free = host.client()?.info()?.memory_free_bytes;
    ensure!(!host.client()?.pci()?.0.is_complete, "an idle CPU has probed");
    let function = "8086:10ca".to_owned();
    host.refusal(RequestBody::PciAssign { function, guest: GUEST.into(), without_reset: false })?;
    ensure!(host.client()?.pci()?.0.is_complete, "nothing was probed");
    let after = host.client()?.info()?.memory_free_bytes;
    ensure!(after == free, "{free} bytes were free, {after} are");
    host.powers_off()
}

fn without_guests_an_idle_host_probes() -> Result<()> {
    let recipe = Recipe::new().cpus(1).with(crowd::arguments());
    let mut host = recipe.options("guests=none").greeting(GUEST)?.start()?;
    host.limit(LIMIT);
    let (survey, _) = complete(&mut host)?;
    ensure!(survey.functions == crowd::FUNCTIONS && survey.before_guests.is_none(), "{survey:?}");
    host.powers_off()
}

fn a_wrong_policy_is_named_and_the_usual_one_used() -> Result<()> {
    let mut host = Recipe::new().options("pci=allow:00:20.0").start()?;
    host.logs(&[
        "option pci=allow:00:20.0 is ignored: pci takes all, lazy, or allow: and up to 16 of a place 00:1f.3",
    ])?;
    let (survey, functions) = complete(&mut host)?;
    let ids: Vec<_> = functions.iter().map(|function| (function.place.2, function.place.3)).collect();
    ensure!(survey.policy == PciPolicy::Lazy && ids == [(0, 0), (0x1f, 0), (0x1f, 2), (0x1f, 3)], "{ids:x?}");
    host.powers_off()
}

/// The PC before PCI Express.
fn without_memory_mapped_configuration_ports_are_used() -> Result<()> {
    let older = ["-machine", "pc", "-device", "pci-bridge,chassis_nr=1,id=behind", "-device", "edu,bus=behind,addr=5"];
    let mut host = Recipe::new().options("pci=all").with(older.map(Into::into)).start()?;
    host.logs(&["ACPI table MCFG: missing: PCI is configured through I/O ports"])?;
    let (survey, functions) = complete(&mut host)?;
    let host_bridge = functions.first().is_some_and(|first| (first.vendor, first.device) == (0x8086, 0x1237));
    let edu = functions.iter().find(|function| (function.vendor, function.device) == (0x1234, 0x11e8));
    let is_behind = edu.is_some_and(|edu| edu.place.1 > 0 && edu.ranges.iter().any(|range| !range.is_ports));
    ensure!(host_bridge && is_behind, "{survey:?} {functions:?}");
    host.powers_off()
}

fn the_next_image_probes_again() -> Result<()> {
    let mut host = Recipe::new().beating(GUEST)?.start()?;
    let (before, functions) = complete(&mut host)?;
    match host.client()?.request_within(BOOT_LIMIT, RequestBody::Restart)? {
        ReplyBody::Restarted(report) => ensure!(report.generation == 2, "{report:?}"),
        other => bail!("{other:?}"),
    }
    let (after, found_again) = complete(&mut host)?;
    let ranges =
        |functions: &[PciFunction]| functions.iter().map(|function| function.ranges.clone()).collect::<Vec<_>>();
    ensure!(before.total.accesses == after.total.accesses, "{before:?} {after:?}");
    ensure!(ranges(&functions) == ranges(&found_again), "all is as it was: {functions:?} {found_again:?}");
    host.powers_off()
}

fn guests_run_well_while_their_host_probes_for_ever() -> Result<()> {
    let names = ["a", "b"];
    let recipe = Recipe::new().with_fault_points().cpus(4).options("selftest=pci-storm");
    let mut host = recipe.beating(names[0])?.beating(names[1])?.start()?;
    host.limit(LIMIT);
    for name in names {
        host.greets(name)?;
        host.beats(name, 30)?;
    }
    let (survey, _) = host.client()?.pci()?;
    ensure!(!survey.is_complete && survey.total.accesses > 1000, "{survey:?}");
    host.powers_off()
}

fn the_tool_lists_functions() -> Result<()> {
    let operator = Operator::new("heartbeat:100")?;
    operator.run(&["up", "host.toml", "--detach", "--append", "pci=all"])?.well()?;
    let table = operator.run(&["pci"])?.well()?;
    let is_listed = table.lines().any(|line| line.trim().starts_with("0000:00:1f.2") && line.contains("8086:2922"));
    ensure!(is_listed && table.contains("4 functions probed (pci=all): "), "{table}");
    let json = operator.run(&["pci", "--json"])?.well()?;
    ensure!(
        json.lines().count() == 5
            && table.contains("no IOMMU: ")
            && json.contains(r#""policy":"all","is_complete":true,"functions":4"#),
        "{json}"
    );
    operator.run(&["down", "--yes"])?.well().map(drop)
}
