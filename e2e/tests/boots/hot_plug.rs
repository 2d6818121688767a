// SPDX-License-Identifier: MIT OR Apache-2.0
//! PCI functions that come to guests that run, and go.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use baton::config::{Guest, Iommu};
use e2e::host::Host;
use e2e::recipe::{Recipe, tiny};
use wire::{EventKind, PciProgress, RefusalCode, ReplyBody, RequestBody, UpdateBy};

use super::Rule;
use super::devices::disk;

pub const RULES: &[Rule] = &[("linux_gets_a_disk_while_it_runs_and_gives_it_back", linux_gets_a_disk)];

const NVME: &str = "1b36:0010";
const LIMIT: Duration = Duration::from_secs(90);

fn assign(guest: &str) -> RequestBody {
    RequestBody::PciAssign { function: NVME.into(), guest: guest.into(), without_reset: false }
}

fn release(guest: Option<&str>, is_forced: bool) -> RequestBody {
    RequestBody::PciRelease { function: NVME.into(), guest: guest.map(Into::into), is_forced }
}

/// Gives an order that the host takes, with this progress.
fn changes(host: &mut Host, body: RequestBody, wanted: PciProgress) -> Result<()> {
    match host.client()?.request_within(LIMIT, body)? {
        ReplyBody::PciAssignment { progress, .. } => ensure!(progress == wanted, "it is {progress:?}, not {wanted:?}"),
        other => bail!("{other:?}"),
    }
    Ok(())
}

fn is_refused(host: &mut Host, body: RequestBody, parts: &[&str]) -> Result<()> {
    let refusal = host.refusal(body)?;
    let text = refusal.to_string();
    let is_expected = refusal.code == RefusalCode::WrongState && parts.iter().all(|part| text.contains(part));
    ensure!(is_expected, "no {parts:?}: {refusal:?}");
    Ok(())
}

fn updates(host: &mut Host, generation: u64) -> Result<()> {
    let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
    match host.client()?.request_within(LIMIT, update)? {
        ReplyBody::Updated(report) => ensure!(report.generation == generation, "{report:?}"),
        other => bail!("{other:?}"),
    }
    Ok(())
}

/// Waits for the event of a function that came, or went.
fn event(host: &mut Host, is_meant: impl Fn(&EventKind) -> bool) -> Result<()> {
    host.wait("the event of the function", |seen| seen.events.iter().any(&is_meant))
}

/// A guest that cannot use the disk, and is not started.
fn stopped(name: &str) -> Result<Guest> {
    Ok(Guest { autostart: false, ..tiny(name, "keeper", "do=fresh,wait")? })
}

fn linux_gets_a_disk() -> Result<()> {
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Amd, vec![disk(0)]).linux("linux", "plugged:1")?;
    let mut host = recipe.guest(stopped("other")?).start()?;
    host.limit(LIMIT);
    host.guest_says("linux", "baton-agent: init reached")?;
    changes(&mut host, assign("linux"), PciProgress::Done)?;
    event(&mut host, |event| matches!(event, EventKind::FunctionAssigned { guest, .. } if guest == "linux"))?;
    host.guest_says("linux", "plugged 0: /dev/nvme0n1")?;
    host.guest_says("linux", " wrong=0 errors=0 slowest_us=")?;
    is_refused(&mut host, assign("other"), &["assigned to guest 'linux'"])?;
    updates(&mut host, 2)?;
    host.guest_says("linux", " wrong=0 errors=0 slowest_us=")?;
    changes(&mut host, release(None, false), PciProgress::Asked)?;
    host.guest_says("linux", "plugged 0: gone")?;
    let is_ejected = |event: &EventKind| matches!(event, EventKind::FunctionReleased { is_forced: false, .. });
    event(&mut host, is_ejected)?;
    changes(&mut host, assign("other"), PciProgress::NextStart)?;
    host.order(RequestBody::VmStart { name: "other".into() })?;
    host.says(&["guest other: has PCI function "])?;
    ensure!(!host.seen.console("linux").contains("WRONG"), "{}", host.seen.console("linux"));
    host.powers_off()
}
