// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operator changes which guests PCI functions are assigned to.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use baton::config::{Device, Guest, Iommu};
use bundle::AssignedConfig;
use e2e::host::Host;
use e2e::place::built;
use e2e::recipe::{Recipe, tiny};
use e2e::tool::Operator;
use wire::{Refusal, RefusalCode, ReplyBody, RequestBody, UpdateBy, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("an_operator_assigns_a_function_to_one_guest_after_another", one_guest_after_another),
    ("assignments_survive_an_update_and_a_warm_restart", assignments_survive_an_update_and_a_restart),
    ("no_function_is_assigned_without_an_iommu", no_function_is_assigned_without_an_iommu),
    ("the_tool_assigns_and_releases_functions", the_tool_assigns_and_releases),
];

const EDU: &str = "1234:11e8";
const BOOT_LIMIT: Duration = Duration::from_secs(60);

/// A guest that drives `edu`, and ends at once where it finds none. It is started by the test.
fn guest(name: &str) -> Result<Guest> {
    Ok(Guest { autostart: false, ..tiny(name, "edu", "do=check,wait")? })
}

fn assign(guest: &str) -> RequestBody {
    RequestBody::PciAssign { function: EDU.into(), guest: guest.into(), without_reset: true }
}

fn release(guest: Option<&str>) -> RequestBody {
    RequestBody::PciRelease { function: EDU.into(), guest: guest.map(Into::into), is_forced: false }
}

fn take(guest: &str) -> RequestBody {
    RequestBody::PciRelease { function: EDU.into(), guest: Some(guest.into()), is_forced: true }
}

/// Gives an order that the host takes, for the only function and this guest.
fn changes(host: &mut Host, body: RequestBody, guest: &str) -> Result<()> {
    match host.client()?.request(body)? {
        ReplyBody::PciAssignment { guest: named, .. } => ensure!(named == guest, "it is {named}, not {guest}"),
        other => bail!("{other:?}"),
    }
    Ok(())
}

fn is_refused(host: &mut Host, body: RequestBody, code: RefusalCode, parts: &[&str]) -> Result<()> {
    let refusal: Refusal = host.refusal(body)?;
    let text = refusal.to_string();
    ensure!(refusal.code == code && parts.iter().all(|part| text.contains(part)), "no {parts:?}: {refusal:?}");
    Ok(())
}

fn owner(host: &mut Host) -> Result<Option<String>> {
    let (_, functions) = host.client()?.pci()?;
    let edu = functions.into_iter().find(|function| (function.vendor, function.device) == (0x1234, 0x11e8));
    Ok(edu.context("edu is not listed")?.owner)
}

fn starts(host: &mut Host, name: &str, text: &str) -> Result<()> {
    host.order(RequestBody::VmStart { name: name.into() })?;
    host.guest_prints(name, text)
}

fn stops(host: &mut Host, name: &str) -> Result<()> {
    host.order(RequestBody::VmStop { name: name.into() })?;
    host.state(name, VmState::Stopped).map(drop)
}

fn one_guest_after_another() -> Result<()> {
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Amd, vec![Device::Edu]);
    let mut host = recipe.guest(guest("edu")?).guest(guest("other")?).beating("neighbour")?.start()?;
    host.limit(BOOT_LIMIT);
    are_refused_at_first(&mut host)?;
    changes(&mut host, assign("edu"), "edu")?;
    let owned = ["assigned to guest 'edu'", "baton pci release 0000:", " edu` first"];
    is_refused(&mut host, assign("other"), RefusalCode::WrongState, &owned)?;
    is_refused(&mut host, assign("edu"), RefusalCode::WrongState, &["assigned to guest 'edu' already"])?;
    is_refused(&mut host, release(Some("other")), RefusalCode::WrongState, &["not assigned to guest 'other'"])?;
    starts(&mut host, "edu", "edu: check: ok")?;
    ensure!(owner(&mut host)?.as_deref() == Some("edu"));
    is_taken_from_a_guest_that_ignores_the_request(&mut host)?;
    stops(&mut host, "edu")?;
    starts(&mut host, "edu", "edu: start: WRONG: edu on bus")?;
    changes(&mut host, assign("other"), "other")?;
    starts(&mut host, "other", "edu: check: ok")?;
    host.beats("neighbour", 3)?;
    host.powers_off()
}

/// The guest drives the function on. What it reads then is all ones, which ends it.
fn is_taken_from_a_guest_that_ignores_the_request(host: &mut Host) -> Result<()> {
    for _ in 0..2 {
        changes(host, release(None), "edu")?;
        let held = ["guest 'edu' was asked to eject it, and still has it", "baton pci release 0000:", " edu --force`"];
        is_refused(host, assign("other"), RefusalCode::WrongState, &held)?;
        is_refused(host, assign("edu"), RefusalCode::WrongState, &held)?;
        ensure!(owner(host)?.as_deref() == Some("edu"));
    }
    changes(host, take("edu"), "edu")?;
    ensure!(owner(host)?.is_none());
    let gone = ["assigned to no guest", "`baton pci` lists"];
    is_refused(host, take("edu"), RefusalCode::WrongState, &gone)?;
    changes(host, assign("neighbour"), "neighbour")?;
    ensure!(owner(host)?.as_deref() == Some("neighbour"));
    changes(host, take("neighbour"), "neighbour")
}

/// Nothing that is refused leaves a trace.
fn are_refused_at_first(host: &mut Host) -> Result<()> {
    let order = |function: &str, guest: &str, without_reset| RequestBody::PciAssign {
        function: function.into(),
        guest: guest.into(),
        without_reset,
    };
    let invalid = RefusalCode::Invalid;
    is_refused(host, assign("absent"), RefusalCode::UnknownVm, &["there is no guest 'absent'", "edu, other"])?;
    is_refused(host, order("edu", "edu", true), invalid, &["\"edu\" names no PCI function; write an address"])?;
    is_refused(host, order("8086:ffff", "edu", true), invalid, &["there is no function 8086:ffff; `baton pci` lists"])?;
    is_refused(host, order(EDU, "edu", false), RefusalCode::WrongState, &["it cannot be reset", "`--reset none`"])?;
    is_refused(host, release(None), RefusalCode::WrongState, &["assigned to no guest", "`baton pci` lists"])?;
    ensure!(owner(host)?.is_none());
    Ok(())
}

/// `named` has the function by its configuration, until the operator assigns it to `edu`. The neighbour runs.
fn reassigned(iommu: Iommu) -> Result<Host> {
    let functions = vec![AssignedConfig { selector: EDU.into(), without_reset: true, gsi: None, virtual_functions: 0 }];
    let neighbour = tiny("neighbour", "keeper", "seed=1 do=fresh,wait")?;
    let recipe = Recipe::new().cpus(2).with_devices(iommu, vec![Device::Edu]).guest(neighbour);
    let recipe = recipe.guest(Guest { functions, ..guest("named")? }).guest(guest("edu")?);
    let mut host = recipe.start()?;
    host.limit(BOOT_LIMIT * 2);
    host.guest_prints("neighbour", "keeper: fresh: ok")?;
    is_probed(&mut host)?;
    ensure!(owner(&mut host)?.as_deref() == Some("named"));
    changes(&mut host, release(Some("named")), "named")?;
    changes(&mut host, assign("edu"), "edu")?;
    Ok(host)
}

fn assignments_survive_an_update_and_a_restart() -> Result<()> {
    let mut host = reassigned(Iommu::Intel)?;
    let survived = survive_an_update_and_a_restart(&mut host);
    survived.with_context(|| host.seen.to_string())?;
    host.powers_off()
}

fn survive_an_update_and_a_restart(host: &mut Host) -> Result<()> {
    match host.client()?.request_within(BOOT_LIMIT, RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })? {
        ReplyBody::Updated(report) => ensure!(report.generation == 2, "{report:?}"),
        other => bail!("{other:?}"),
    }
    starts(host, "named", "edu: start: WRONG: edu on bus")?;
    starts(host, "edu", "edu: check: ok")?;
    restarts(host, RequestBody::Restart, 3)?;
    ensure!(owner(host)?.as_deref() == Some("edu"));
    starts(host, "edu", "edu: check: ok")
}

fn restarts(host: &mut Host, body: RequestBody, generation: u64) -> Result<()> {
    match host.client()?.request_within(BOOT_LIMIT, body)? {
        ReplyBody::Restarted(report) => ensure!(report.generation == generation, "{report:?}"),
        other => bail!("{other:?}"),
    }
    is_probed(host)
}

/// Each image probes the functions once its guests run.
fn is_probed(host: &mut Host) -> Result<()> {
    while !host.client()?.pci()?.0.is_complete {
        host.wait_a_moment()?;
    }
    Ok(())
}

fn no_function_is_assigned_without_an_iommu() -> Result<()> {
    let recipe = Recipe::new().with_devices(Iommu::None, vec![Device::Edu]);
    let mut host = recipe.guest(guest("edu")?).start()?;
    host.limit(BOOT_LIMIT);
    let reasons = ["the machine has no IOMMU, or firmware does not describe it (IVRS, DMAR)", "`baton pci`"];
    is_refused(&mut host, assign("edu"), RefusalCode::WrongState, &reasons)?;
    host.powers_off()
}

fn the_tool_assigns_and_releases() -> Result<()> {
    let kernel = built("guests/edu.elf")?;
    let operator = Operator::with(&format!(
        "[host]\nmemory = \"512MiB\"\niommu = \"amd\"\n[[host.device]]\nkind = \"edu\"\n[[guest]]\nname = \"web\"\n\
         kernel = {kernel:?}\ncmdline = \"do=check,wait\"\nmemory = \"16MiB\"\nautostart = false\n"
    ))?;
    operator.run(&["up", "host.toml", "--detach"])?.well()?;
    let refused = operator.run(&["pci", "assign", EDU, "web"])?;
    ensure!(refused.status == Some(4) && refused.err.contains("it cannot be reset; `--reset none`"), "{refused:?}");
    let output = operator.run(&["pci", "assign", EDU, "web", "--reset", "none"])?.well()?;
    ensure!(output.contains("is assigned to guest 'web', from its next start on"), "{output}");
    let is_its = |line: &str| line.contains(EDU) && line.contains(" web ");
    ensure!(operator.run(&["pci", "list"])?.well()?.lines().any(is_its));
    let released = operator.run(&["pci", "release", EDU, "--json"])?.well()?;
    ensure!(released.contains("\"done\":\"released\"") && released.contains("\"guest\":\"web\""), "{released}");
    ensure!(!operator.run(&["pci"])?.well()?.lines().any(is_its));
    operator.run(&["down", "--yes"])?.well().map(drop)
}
