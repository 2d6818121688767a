// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual functions: Linux owns a network card and enables two, another Linux uses one of them.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use baton::config::{Guest, Image, Iommu, Model};
use bundle::AssignedConfig;
use e2e::host::Host;
use e2e::old_image;
use e2e::place::{Emulator, Kernel};
use e2e::recipe::{Recipe, folder, linux, tiny};
use e2e::stock;
use handover::state::DeviceKind;
use lab::datagrams::Receiver;
use wire::{EventKind, PciProgress, RequestBody, UpdateBy, VmState};

use super::Rule;
use super::devices::{card, disk};
use super::hot_plug::changes;

pub const LONG_RULES: &[Rule] = &[
    ("a_function_of_a_disk_is_used_across_updates_and_revoked", a_function_of_a_disk_is_used),
    ("a_disk_that_comes_back_has_virtual_functions_which_are_asked_for_nothing", a_disk_that_comes_back),
];

pub const DRIVER_LONG_RULES: &[Rule] = &[
    ("a_virtual_function_is_used_across_updates_and_revoked", a_virtual_function_is_used),
    ("a_running_guest_gets_and_ejects_a_virtual_function", a_running_guest_gets_one),
    ("a_card_behind_no_bridge_gets_no_virtual_function", a_card_behind_no_bridge),
    ("an_image_that_does_not_know_sriov_is_refused", an_image_without_sriov),
];

const PHYSICAL: &str = "8086:10c9";
const NVME: &str = "1b36:0010";
const VIRTUAL: (u16, u16) = (0x8086, 0x10ca);
const LIMIT: Duration = Duration::from_secs(240);

/// A guest that has the card, and enables two virtual functions.
fn service(folder: &std::path::Path) -> Result<Guest> {
    let physical = AssignedConfig { selector: PHYSICAL.into(), virtual_functions: 2, ..AssignedConfig::default() };
    let guest = stock::guest(folder, "service", Kernel::V6_1Full, &["igb"], "sriov:2,wait")?;
    Ok(Guest { functions: vec![physical], ..guest })
}

fn recipe(iommu: Iommu) -> Recipe {
    Recipe::new().cpus(2).on(Emulator::Ten).options("apic=xapic").with_devices(iommu, vec![card(Model::Igb)])
}

/// How many functions of the host are virtual ones.
fn count(host: &mut Host) -> Result<usize> {
    let functions = host.client()?.pci()?.1;
    Ok(functions.iter().filter(|function| (function.vendor, function.device) == VIRTUAL).count())
}

fn has_so_many(host: &mut Host, wanted: usize) -> Result<()> {
    for _ in 0..50 {
        if count(host)? == wanted {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    bail!("there are {} virtual functions, not {wanted}", count(host)?)
}

fn a_virtual_function_is_used() -> Result<()> {
    let (one, other, (_receiver, port)) = (folder()?, folder()?, Receiver::of_user_network()?);
    let tasks = format!("stream:10.0.2.15:10.0.2.2:{port},wait");
    let user = stock::guest(other.path(), "user", Kernel::V6_1Full, &["igbvf"], &tasks)?;
    let user = Guest { autostart: false, ..user };
    let mut host = recipe(Iommu::Intel).guest(service(one.path())?).guest(user).start()?;
    host.limit(LIMIT);
    host.guest_prints("service", "sriov: 2 enabled")?;
    has_so_many(&mut host, 2)?;
    let first = RequestBody::PciAssign { function: "8086:10ca#1".into(), guest: "user".into(), without_reset: false };
    changes(&mut host, first, PciProgress::NextStart)?;
    host.order(RequestBody::VmStart { name: "user".into() })?;
    host.guest_prints("user", "stream 0 ")?;
    for generation in 2..=3 {
        host.update_to(generation)?;
        host.guest_prints("user", "stream ")?;
        has_so_many(&mut host, 2)?;
    }
    let physical = RequestBody::PciRelease { function: PHYSICAL.into(), guest: None, is_forced: true };
    changes(&mut host, physical, PciProgress::Done)?;
    is_revoked(&mut host)?;
    has_so_many(&mut host, 0)?;
    host.state("user", VmState::Running)?;
    ensure!(!host.seen.console("service").contains("WRONG"), "{}", host.seen.console("service"));
    host.powers_off()
}

/// The driver is loaded before the function comes. A reset of the guest with the card revokes it.
///
/// The user starts once the service guest runs: all of its kernel's messages are more than its console's queue takes
/// while the first CPU loads another guest.
fn a_running_guest_gets_one() -> Result<()> {
    let (one, other) = (folder()?, folder()?);
    let mut user = stock::guest(other.path(), "user", Kernel::V6_1Full, &["igbvf"], "wait")?;
    user.cmdline = user.cmdline.replace("loglevel=5", "loglevel=7");
    user.autostart = false;
    let mut host = recipe(Iommu::Intel).guest(service(one.path())?).guest(user).start()?;
    host.limit(LIMIT);
    host.guest_prints("service", "sriov: 2 enabled")?;
    host.order(RequestBody::VmStart { name: "user".into() })?;
    host.guest_prints("user", "baton-agent: drivers done")?;
    has_so_many(&mut host, 2)?;
    for round in 1..=2 {
        assign_to_user(&mut host, round)?;
        host.update_to(round as u64 + 1)?;
        let function = "8086:10ca#1".to_owned();
        let release = RequestBody::PciRelease { function, guest: Some("user".into()), is_forced: false };
        changes(&mut host, release, PciProgress::Asked)?;
        host.wait("the event of the ejection", |seen| {
            let is_ejected = |event: &&EventKind| {
                matches!(event, EventKind::FunctionReleased { guest, is_forced: false, .. } if guest == "user")
            };
            seen.events.iter().filter(is_ejected).count() == round
        })?;
    }
    assign_to_user(&mut host, 3)?;
    host.order(RequestBody::VmReset { name: "service".into() })?;
    is_revoked(&mut host)?;
    host.guest_prints("service", "sriov: 2 enabled")?;
    has_so_many(&mut host, 2)?;
    host.state("user", VmState::Running)?;
    host.powers_off()
}

/// Assigns the first virtual function, which the driver reports so many times then.
fn assign_to_user(host: &mut Host, times: usize) -> Result<()> {
    let assign = RequestBody::PciAssign { function: "8086:10ca#1".into(), guest: "user".into(), without_reset: false };
    changes(host, assign, PciProgress::Done)?;
    host.wait("the driver's report of the function", |seen| {
        seen.console("user").matches("Intel(R) 82576 Virtual Function").count() == times
    })
}

/// The guest `user` is notified that its function has gone with the physical one.
fn is_revoked(host: &mut Host) -> Result<()> {
    host.wait("the event of the virtual function", |seen| {
        seen.events.iter().any(|event| {
            matches!(event, EventKind::FunctionStopped { guest: Some(guest), reason, .. }
                if guest == "user" && reason.contains("its physical function 0000:"))
        })
    })
}

/// The service guest has the disk's primary controller, and gives two secondary ones queues and interrupts. All have
/// the one namespace.
fn a_function_of_a_disk_is_used() -> Result<()> {
    let physical = AssignedConfig { selector: NVME.into(), virtual_functions: 2, ..AssignedConfig::default() };
    let service = Guest { functions: vec![physical], ..linux("service", Kernel::Default, "nvme-sriov:2,wait")? };
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Intel, vec![disk(2)]).guest(service);
    let mut host = recipe.linux("user", "plugged:1")?.start()?;
    host.limit(LIMIT);
    host.guest_prints("service", "nvme-sriov: 2 online")?;
    host.guest_prints("user", "baton-agent: init reached")?;
    let assign = RequestBody::PciAssign { function: format!("{NVME}#2"), guest: "user".into(), without_reset: false };
    changes(&mut host, assign, PciProgress::Done)?;
    host.guest_prints("user", "plugged 0: /dev/nvme0n1")?;
    for generation in 2..=3 {
        host.guest_prints("user", " wrong=0 errors=0 slowest_us=")?;
        host.update_to(generation)?;
    }
    host.guest_prints("user", " wrong=0 errors=0 slowest_us=")?;
    let physical = RequestBody::PciRelease { function: format!("{NVME}#1"), guest: None, is_forced: true };
    changes(&mut host, physical, PciProgress::Done)?;
    is_revoked(&mut host)?;
    host.guest_prints("user", "plugged 0: gone")?;
    host.state("user", VmState::Running)?;
    for name in ["service", "user"] {
        ensure!(!host.seen.console(name).contains("WRONG"), "{}", host.seen.console(name));
    }
    host.powers_off()
}

/// The service guest runs when it gets its disk, and has as many virtual functions as it is configured with. The host
/// asks none of them for a serial number.
fn a_disk_that_comes_back() -> Result<()> {
    let physical = AssignedConfig { selector: NVME.into(), virtual_functions: 2, ..AssignedConfig::default() };
    let stopped =
        |guest: Guest, function: AssignedConfig| Guest { functions: vec![function], autostart: false, ..guest };
    let service = stopped(linux("service", Kernel::Default, "nvme-sriov:2,wait")?, physical);
    let by_serial = AssignedConfig { selector: "nvme:absent".into(), ..AssignedConfig::default() };
    let other = stopped(tiny("other", "keeper", "do=fresh,wait")?, by_serial);
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Intel, vec![disk(2)]).guest(service).guest(other);
    let mut host = recipe.beating("neighbour")?.start()?;
    host.limit(LIMIT);
    let release = RequestBody::PciRelease { function: NVME.into(), guest: None, is_forced: false };
    changes(&mut host, release, PciProgress::NextStart)?;
    host.order(RequestBody::VmStart { name: "service".into() })?;
    host.guest_prints("service", "baton-agent: init reached")?;
    let assign = RequestBody::PciAssign { function: NVME.into(), guest: "service".into(), without_reset: false };
    changes(&mut host, assign, PciProgress::Done)?;
    host.guest_prints("service", "nvme-sriov: 2 online")?;
    host.order(RequestBody::VmStart { name: "other".into() })?;
    let vm = host.state("other", VmState::Failed)?;
    ensure!(vm.reason.as_deref().is_some_and(|reason| reason.contains("known are: none")), "{vm:?}");
    host.powers_off()
}

/// Nothing states which addresses are free there.
fn a_card_behind_no_bridge() -> Result<()> {
    let folder = folder()?;
    let mut host = recipe(Iommu::Amd).guest(service(folder.path())?).start()?;
    host.limit(LIMIT);
    let vm = host.state("service", VmState::Failed)?;
    let is_named = |reason: &str| reason.contains("sriov = 2: no bridge is above it");
    ensure!(vm.reason.as_deref().is_some_and(is_named), "{vm:?}");
    host.powers_off()
}

fn an_image_without_sriov() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("old.elf");
    std::fs::write(&path, old_image::knowing_devices_up_to(DeviceKind::LineFunction)?)?;
    let recipe = recipe(Iommu::Intel).guest(service(folder.path())?);
    let mut host = Recipe { image: Image::File(path), ..recipe }.start()?;
    host.limit(LIMIT);
    host.guest_prints("service", "sriov: 2 enabled")?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?;
    ensure!(refusal.to_string().contains("guest 'service': "), "{refusal:?}");
    host.state("service", VmState::Running)?;
    has_so_many(&mut host, 2)?;
    host.powers_off()
}
