// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions that could reach each other past the IOMMU: those of one isolation group belong to one guest, and none
//! reaches another's ranges.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use baton::config::{Guest, Iommu, Model};
use e2e::alone;
use e2e::host::Host;
use e2e::place::Emulator;
use e2e::recipe::{Recipe, tiny};
use wire::VmState;

use super::Rule;
use super::assigned::assigned;
use super::devices::card;

pub const LONG_RULES: &[Rule] = &[
    ("functions_of_one_device_belong_to_one_guest", functions_of_one_device_belong_to_one_guest),
    ("a_function_reaches_anothers_registers_on_the_bare_machine", a_function_reaches_anothers_registers),
    ("a_function_reaches_no_registers_of_another", a_function_reaches_no_registers_of_another),
];

const LIMIT: Duration = Duration::from_secs(60);
const CARD: (u16, u16) = (0x8086, 0x10d3);

/// A device of two functions, which do not state that they keep transfers apart (ACS).
fn functions_of_one_device_belong_to_one_guest() -> Result<()> {
    let guest = |name: &str, selector: &str| -> Result<Guest> {
        Ok(Guest { functions: vec![assigned(selector, true)], ..tiny(name, "edu", "do=check,stream")? })
    };
    let recipe = Recipe::new()
        .cpus(2)
        .with_devices(Iommu::Intel, vec![])
        .with(["-device", "edu,multifunction=on,addr=0x6.0", "-device", "edu,addr=0x6.1"].map(Into::into));
    let other = Guest { autostart: false, ..guest("other", "1234:11e8#2")? };
    let mut host = recipe.guest(guest("first", "1234:11e8#1")?).guest(other).start()?;
    host.limit(LIMIT);
    host.guest_prints("first", "edu: stream ")?;
    let functions = host.client()?.pci()?.1;
    let groups: Vec<_> = functions.iter().filter(|one| one.vendor == 0x1234).map(|one| one.group).collect();
    ensure!(groups.len() == 2 && groups[0].is_some() && groups[0] == groups[1], "{groups:?}");
    host.order(wire::RequestBody::VmStart { name: "other".into() })?;
    let vm = host.state("other", VmState::Failed)?;
    let is_named = |reason: &str| reason.contains("isolation group") && reason.contains("first");
    ensure!(vm.reason.as_deref().is_some_and(is_named), "{vm:?}");
    host.guest_prints("first", "edu: stream ")?;
    host.powers_off()
}

/// The control, without an IOMMU. Firmware places the card where it does without Baton.
fn a_function_reaches_anothers_registers() -> Result<()> {
    const DEVICES: [&str; 4] = ["-device", "edu,dma_mask=0xffffffffffffffff", "-device", "e1000e"];
    let mut host = Recipe::new().cpus(2).with(DEVICES.map(Into::into)).start()?;
    let at = registers(&mut host)?;
    host.powers_off()?;
    let machine = [&["-M", "q35", "-smp", "2", "-nic", "none"][..], &DEVICES].concat();
    let attack = format!("do=attack at={at:#x} write=no");
    let lines = alone::run(Emulator::System, "edu", &attack, &machine)?;
    let is_read = |line: &&String| line.starts_with("edu: attack ") && line.contains("read=0x");
    ensure!(lines.iter().any(|line| is_read(&line)), "{lines:#?}");
    Ok(())
}

fn a_function_reaches_no_registers_of_another() -> Result<()> {
    let recipe = |at: u64| -> Result<Recipe> {
        let attack = format!("do=attack at={at:#x} expect=refused");
        let edu = Guest { functions: vec![assigned("1234:11e8", true)], ..tiny("edu", "edu", &attack)? };
        let devices = vec![baton::config::Device::Edu, card(Model::E1000e)];
        Recipe::new().cpus(2).with_devices(Iommu::Intel, devices).guest(edu).beating("neighbour")
    };
    // Firmware places functions in the same way in each start.
    let mut host = recipe(0)?.start()?;
    let at = registers(&mut host)?;
    host.powers_off()?;
    let mut host = recipe(at)?.start()?;
    host.limit(LIMIT);
    ensure!(registers(&mut host)? == at, "firmware has moved the card");
    host.guest_prints("edu", "edu: attack: ok")?;
    host.beats("neighbour", 5)?;
    host.powers_off()
}

/// The first address of the card's registers.
fn registers(host: &mut Host) -> Result<u64> {
    let functions = host.client()?.pci()?.1;
    let card = functions.iter().find(|function| (function.vendor, function.device) == CARD).context("the card")?;
    let range = card.ranges.iter().find(|range| !range.is_ports && range.address != 0).context("its registers")?;
    Ok(range.address)
}
