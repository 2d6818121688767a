// SPDX-License-Identifier: MIT OR Apache-2.0
//! PCI functions that come to guests that run, and go.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use baton::config::{Guest, Image, Iommu, Model};
use bundle::AssignedConfig;
use e2e::host::Host;
use e2e::old_image;
use e2e::place::{Kernel, built};
use e2e::recipe::{Recipe, folder, linux, tiny};
use e2e::stock;
use e2e::tool::Operator;
use handover::state::DeviceKind;
use wire::{EventKind, PciProgress, RefusalCode, ReplyBody, RequestBody, UpdateBy, VmState};

use super::Rule;
use super::devices::{card, disk};

pub const RULES: &[Rule] = &[("linux_gets_a_disk_while_it_runs_and_gives_it_back", linux_gets_a_disk)];

pub const LONG_RULES: &[Rule] = &[
    ("a_disk_goes_from_one_running_linux_to_another_behind_amds_iommu", || goes_to_another(Iommu::Amd)),
    ("a_disk_goes_from_one_running_linux_to_another_behind_intels_iommu", || goes_to_another(Iommu::Intel)),
    ("a_guest_that_was_asked_ejects_in_the_next_image", a_guest_that_was_asked_ejects_in_the_next_image),
    ("linux_notices_that_a_disk_was_taken_by_force", linux_notices_that_a_disk_was_taken),
    ("a_guest_that_ejects_everything_gives_up_what_it_is_asked_for", everything_is_ejected),
    ("images_without_hot_plug_get_guests_for_which_nothing_waits", images_without_hot_plug),
    ("the_tool_waits_for_a_guest_and_names_the_way_by_force", the_tool_waits_for_a_guest),
];

/// A way of the guest `hostile`: it ejects every device, for ever.
pub const EJECTS: &str = "eject-all";

pub const DRIVER_LONG_RULES: &[Rule] = &[("linux_gets_a_network_card_while_it_runs", linux_gets_a_card)];

const NVME: &str = "1b36:0010";
const LIMIT: Duration = Duration::from_secs(90);

fn assign(guest: &str) -> RequestBody {
    RequestBody::PciAssign { function: NVME.into(), guest: guest.into(), without_reset: false }
}

/// Of two disks the first.
fn assign_first(guest: &str) -> RequestBody {
    RequestBody::PciAssign { function: format!("{NVME}#1"), guest: guest.into(), without_reset: false }
}

/// Of two disks the second.
fn assign_other(guest: &str) -> RequestBody {
    RequestBody::PciAssign { function: format!("{NVME}#2"), guest: guest.into(), without_reset: false }
}

fn release(guest: Option<&str>, is_forced: bool) -> RequestBody {
    RequestBody::PciRelease { function: NVME.into(), guest: guest.map(Into::into), is_forced }
}

/// Gives an order that the host takes, with this progress.
pub(super) fn changes(host: &mut Host, body: RequestBody, wanted: PciProgress) -> Result<()> {
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
    host.guest_prints("linux", "baton-agent: init reached")?;
    changes(&mut host, assign("linux"), PciProgress::Done)?;
    event(&mut host, |event| matches!(event, EventKind::FunctionAssigned { guest, .. } if guest == "linux"))?;
    host.guest_prints("linux", "plugged 0: /dev/nvme0n1")?;
    host.guest_prints("linux", " wrong=0 errors=0 slowest_us=")?;
    is_refused(&mut host, assign("other"), &["assigned to guest 'linux'"])?;
    host.update_to(2)?;
    host.guest_prints("linux", " wrong=0 errors=0 slowest_us=")?;
    changes(&mut host, release(None, false), PciProgress::Asked)?;
    host.guest_prints("linux", "plugged 0: gone")?;
    let is_ejected = |event: &EventKind| matches!(event, EventKind::FunctionReleased { is_forced: false, .. });
    event(&mut host, is_ejected)?;
    changes(&mut host, assign("other"), PciProgress::NextStart)?;
    host.order(RequestBody::VmStart { name: "other".into() })?;
    host.logs(&["guest other: has PCI function "])?;
    ensure!(!host.seen.console("linux").contains("WRONG"), "{}", host.seen.console("linux"));
    host.powers_off()
}

/// Its driver is loaded before the card comes.
fn linux_gets_a_card() -> Result<()> {
    const E1000E: &str = "8086:10d3";
    let folder = folder()?;
    let mut guest = stock::guest(folder.path(), "linux", Kernel::V6_1Full, &["e1000e"], "wait")?;
    guest.cmdline = guest.cmdline.replace("loglevel=5", "loglevel=7");
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Intel, vec![card(Model::E1000e)]).guest(guest);
    let mut host = recipe.start()?;
    host.limit(LIMIT * 2);
    host.guest_prints("linux", "baton-agent: drivers done")?;
    for round in 1..=2 {
        let (function, guest) = (E1000E.to_owned(), "linux".to_owned());
        let assign = RequestBody::PciAssign { function, guest, without_reset: false };
        changes(&mut host, assign, PciProgress::Done)?;
        host.wait("the driver's report of the card", |seen| {
            seen.console("linux").matches("Intel(R) PRO/1000 Network Connection").count() == round
        })?;
        let release = RequestBody::PciRelease { function: E1000E.into(), guest: None, is_forced: false };
        changes(&mut host, release, PciProgress::Asked)?;
        host.wait("the event of the card", |seen| {
            seen.events.iter().filter(|event| is_ejected(event, "linux")).count() == round
        })?;
    }
    host.powers_off()
}

fn is_ejected(event: &EventKind, name: &str) -> bool {
    matches!(event, EventKind::FunctionReleased { guest, is_forced: false, .. } if guest == name)
}

/// Each gets the disk twice, so that a device of its bus is used again.
fn goes_to_another(iommu: Iommu) -> Result<()> {
    let recipe = Recipe::new().cpus(2).with_devices(iommu, vec![disk(0)]);
    let mut host = recipe.linux("one", "plugged:1")?.linux("other", "plugged:1")?.start()?;
    host.limit(LIMIT * 2);
    for name in ["one", "other"] {
        host.guest_prints(name, "baton-agent: init reached")?;
    }
    for round in 0..2 {
        for name in ["one", "other"] {
            changes(&mut host, assign(name), PciProgress::Done)?;
            host.guest_prints(name, &format!("plugged {round}: /dev/nvme0n1"))?;
            host.guest_prints(name, " wrong=0 errors=0 slowest_us=")?;
            changes(&mut host, release(Some(name), false), PciProgress::Asked)?;
            host.guest_prints(name, &format!("plugged {round}: gone"))?;
            host.wait("as many events as the guest has ejected devices", |seen| {
                seen.events.iter().filter(|event| is_ejected(event, name)).count() == round + 1
            })?;
        }
    }
    for name in ["one", "other"] {
        ensure!(!host.seen.console(name).contains("WRONG"), "{}", host.seen.console(name));
    }
    host.powers_off()
}

/// The guest has had the disk from its start. It is paused when it is asked, and goes on in the next image.
fn a_guest_that_was_asked_ejects_in_the_next_image() -> Result<()> {
    let functions =
        vec![AssignedConfig { selector: NVME.into(), without_reset: false, gsi: None, virtual_functions: 0 }];
    let guest = Guest { functions, ..linux("linux", Kernel::Default, "plugged:1")? };
    let mut host = Recipe::new().cpus(2).with_devices(Iommu::Intel, vec![disk(0)]).guest(guest).start()?;
    host.limit(LIMIT);
    host.guest_prints("linux", " wrong=0 errors=0 slowest_us=")?;
    host.order(RequestBody::VmPause { name: "linux".into() })?;
    host.state("linux", VmState::Paused)?;
    changes(&mut host, release(Some("linux"), false), PciProgress::Asked)?;
    for generation in 2..=3 {
        host.update_to(generation)?;
    }
    ensure!(!host.seen.events.iter().any(|event| is_ejected(event, "linux")), "{}", host.seen);
    host.order(RequestBody::VmResume { name: "linux".into() })?;
    host.guest_prints("linux", "plugged 0: gone")?;
    event(&mut host, |event| is_ejected(event, "linux"))?;
    // It is the guest's by its configuration, until the host powers off.
    changes(&mut host, assign("linux"), PciProgress::Done)?;
    host.guest_prints("linux", "plugged 1: /dev/nvme0n1")?;
    host.powers_off()
}

/// It vanishes amid transfers. The guest is asked to check its bus, and can have the disk again.
fn linux_notices_that_a_disk_was_taken() -> Result<()> {
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Intel, vec![disk(0)]).linux("linux", "plugged:1")?;
    let mut host = recipe.beating("neighbour")?.start()?;
    host.limit(LIMIT);
    host.guest_prints("linux", "baton-agent: init reached")?;
    for round in 0..2 {
        changes(&mut host, assign("linux"), PciProgress::Done)?;
        host.guest_prints("linux", &format!("plugged {round}: /dev/nvme0n1"))?;
        host.guest_prints("linux", " wrong=0 errors=0 slowest_us=")?;
        changes(&mut host, release(None, true), PciProgress::Done)?;
        host.guest_prints("linux", &format!("plugged {round}: gone"))?;
    }
    host.beats("neighbour", 5)?;
    host.powers_off()
}

/// A function that it ejects unasked stays its own.
fn everything_is_ejected() -> Result<()> {
    let hostile = Guest { hung_s: 0, ..tiny("hostile", "hostile", &format!("do={EJECTS}"))? };
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Amd, vec![disk(0)]).guest(hostile);
    let mut host = recipe.beating("neighbour")?.start()?;
    host.limit(LIMIT);
    host.guest_prints("hostile", "going")?;
    for round in 1..=3 {
        changes(&mut host, assign("hostile"), PciProgress::Done)?;
        host.beats("neighbour", 5)?;
        is_refused(&mut host, assign("neighbour"), &["assigned to guest 'hostile'"])?;
        changes(&mut host, release(None, false), PciProgress::Asked)?;
        host.wait("the event of the ejection", |seen| {
            seen.events.iter().filter(|event| is_ejected(event, "hostile")).count() == round
        })?;
    }
    host.beats("neighbour", 5)?;
    host.powers_off()
}

fn images_without_hot_plug() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("old.elf");
    std::fs::write(&path, old_image::knowing_devices_up_to(DeviceKind::AssignedFunction)?)?;
    let recipe =
        Recipe::new().cpus(2).with_devices(Iommu::Intel, vec![disk(0), disk(1)]).linux("linux", "plugged:1")?;
    let recipe = Recipe { image: Image::File(path), ..recipe.beating("neighbour")? };
    let mut host = recipe.start()?;
    host.limit(LIMIT * 2);
    host.guest_prints("linux", "baton-agent: init reached")?;
    host.update_to(2)?;
    // As the only function it is in the first device, where an image of old expects it.
    changes(&mut host, assign_first("linux"), PciProgress::Done)?;
    host.guest_prints("linux", " wrong=0 errors=0 slowest_us=")?;
    host.update_to(3)?;
    host.guest_prints("linux", " wrong=0 errors=0 slowest_us=")?;
    changes(&mut host, assign_other("neighbour"), PciProgress::Done)?;
    let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
    is_refused(&mut host, update, &["guest 'neighbour': ", "a PCI function comes or goes"])?;
    host.guest_prints("linux", " wrong=0 errors=0 slowest_us=")?;
    host.powers_off()
}

fn the_tool_waits_for_a_guest() -> Result<()> {
    let kernel = built("guests/keeper.elf")?;
    let operator = Operator::with(&format!(
        "[host]\nmemory = \"512MiB\"\niommu = \"amd\"\n[[host.device]]\nkind = \"nvme\"\nsize = \"1MiB\"\n\
         [[guest]]\nname = \"web\"\nkernel = {kernel:?}\ncmdline = \"do=beat\"\nmemory = \"16MiB\"\n"
    ))?;
    operator.run(&["up", "host.toml", "--detach"])?.well()?;
    let output = operator.run(&["pci", "assign", NVME, "web"])?.well()?;
    ensure!(output.contains("is assigned to guest 'web', which has it now"), "{output}");
    let late = operator.run(&["pci", "release", NVME, "--timeout", "1"])?;
    let expected = ["guest 'web' was asked to eject PCI function 0000:", "has not within 1 s", " web --force`"];
    ensure!(late.status == Some(1) && expected.iter().all(|part| late.err.contains(part)), "{late:?}");
    let output = operator.run(&["pci", "release", NVME, "--force"])?.well()?;
    ensure!(output.contains("is released from guest 'web'"), "{output}");
    let events = operator.run(&["events"])?.well()?;
    ensure!(events.contains("has come to web") && events.contains("was taken from web"), "{events}");
    operator.run(&["down", "--yes"])?.well().map(drop)
}
