// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of guests that interrupt by their INTx lines.

use std::time::Duration;

use anyhow::{Result, ensure};
use baton::config::{Device, Guest, Image, Iommu};
use bundle::AssignedConfig;
use e2e::host::Host;
use e2e::old_image;
use e2e::place::Kernel;
use e2e::recipe::{Recipe, folder, linux, tiny};
use handover::state::DeviceKind;
use wire::{RequestBody, UpdateBy};

use super::Rule;
use super::devices::disk;

pub const RULES: &[Rule] = &[
    ("each_interrupt_of_a_line_comes_once_across_updates_behind_amds_iommu", || comes_once(Iommu::Amd)),
    ("each_interrupt_of_a_line_comes_once_across_updates_behind_intels_iommu", || comes_once(Iommu::Intel)),
    ("two_functions_of_a_guest_share_a_line_across_updates", shared_line),
    ("a_line_without_a_handler_stops_its_function", without_a_driver),
    ("an_input_that_cannot_be_a_guests_is_refused", refused_inputs),
    ("an_image_that_knows_no_lines_is_refused_while_a_guest_has_one", images_without_lines),
    ("linux_drives_a_disk_without_msi_across_updates_behind_amds_iommu", || linux_without_msi(Iommu::Amd)),
    ("linux_drives_a_disk_without_msi_across_updates_behind_intels_iommu", || linux_without_msi(Iommu::Intel)),
];

/// QEMU's ICH9 leads pin A of slot 2 of the first bus, and of what is behind a root port there, to this input.
const GSI: u32 = 22;

/// The guest edu with the device and its line.
fn edu(name: &str, gsi: u32, cmdline: &str) -> Result<Guest> {
    let function = AssignedConfig {
        selector: "1234:11e8".to_owned(),
        without_reset: true,
        gsi: Some(gsi),
        ..AssignedConfig::default()
    };
    Ok(Guest { functions: vec![function], ..tiny(name, "edu", cmdline)? })
}

fn start(iommu: Iommu, guest: Guest) -> Result<Host> {
    Recipe::new().cpus(2).with_devices(iommu, vec![Device::Edu]).guest(guest).start()
}

/// The device interrupts all the time, also while the host is updated.
fn comes_once(iommu: Iommu) -> Result<()> {
    const ROUNDS: usize = 4;
    let rounds = ["intx"; ROUNDS].join(",");
    // An update takes a second, and the guest must not end before.
    let mut host = start(iommu, edu("edu", GSI, &format!("do={rounds},wait n=2500"))?)?;
    host.limit(Duration::from_secs(60));
    host.guest_prints("edu", "edu: intx: going")?;
    for generation in 2..=3 {
        host.update_to(generation)?;
        host.guest_prints("edu", "edu: intx running n=2500 came=2500")?;
    }
    for _ in 2..ROUNDS {
        host.guest_prints("edu", "edu: intx halted n=2500 came=2500")?;
    }
    host.powers_off()
}

/// Two devices at one input of the host interrupt in turn and at once, and each has its line disabled meanwhile; one of
/// them does not make the guest wait for the other, and none interrupts for the other.
fn shared_line() -> Result<()> {
    const ROUNDS: usize = 600;
    // The lines of every fourth slot are one.
    let devices = vec![Device::Edu; 5];
    let function = |number| AssignedConfig {
        selector: format!("1234:11e8#{number}"),
        without_reset: true,
        gsi: Some(GSI),
        ..AssignedConfig::default()
    };
    let cmdline = format!("do=shared,wait n={ROUNDS}");
    let guest = Guest { functions: vec![function(1), function(5)], ..tiny("edu", "edu", &cmdline)? };
    let mut host = Recipe::new().cpus(2).with_devices(Iommu::Amd, devices).guest(guest).start()?;
    host.limit(Duration::from_secs(60));
    for (generation, rounds) in (2..=4).zip([100, 300, 500]) {
        host.guest_prints("edu", &format!("edu: shared: rounds={rounds}"))?;
        host.update_to(generation)?;
    }
    let came = 3 * ROUNDS;
    host.guest_prints("edu", &format!("edu: shared: n={ROUNDS} came={came} and {came} stray=0"))?;
    host.guest_prints("edu", "edu: shared: ok")?;
    host.powers_off()
}

/// Stock Linux reads and writes its disk, whose driver has no other interrupt: a lost one is an error after 30 seconds.
fn linux_without_msi(iommu: Iommu) -> Result<()> {
    let function = AssignedConfig { selector: "1b36:0010".to_owned(), gsi: Some(GSI), ..AssignedConfig::default() };
    let mut guest = linux("linux", Kernel::Default, "disk:8")?;
    guest.cmdline += " pci=nomsi";
    guest.functions = vec![function];
    let mut host = Recipe::new().cpus(2).with_devices(iommu, vec![disk(0)]).guest(guest).start()?;
    host.limit(Duration::from_secs(90));
    host.guest_prints("linux", "disk 0 ")?;
    for generation in 2..=4 {
        host.update_to(generation)?;
        host.guest_prints("linux", " wrong=0 errors=0 slowest_us=")?;
    }
    let console = host.seen.console("linux");
    ensure!(!["WRONG", "timeout", "irqpoll"].iter().any(|word| console.contains(word)), "{console}");
    host.powers_off()
}

/// The guest ends each interrupt, and leaves the device as it is.
fn without_a_driver() -> Result<()> {
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Amd, vec![Device::Edu]);
    let mut host = recipe.guest(edu("edu", GSI, "do=unserved,wait")?).beating("neighbour")?.start()?;
    host.limit(Duration::from_secs(60));
    host.logs(&[
        "guest edu: PCI function ",
        " is stopped: its INTx line was still asserted at ",
        "`baton vm reset edu`",
    ])?;
    host.guest_prints("edu", "edu: unserved: ok")?;
    host.beats("neighbour", 5)?;
    host.powers_off()
}

/// One that the host uses, one that no I/O APIC has, and one that another guest's function has.
fn refused_inputs() -> Result<()> {
    let named = |mut guest: Guest, selector: &str| {
        guest.functions.iter_mut().for_each(|function| function.selector = selector.to_owned());
        guest
    };
    let first = named(edu("first", GSI, "do=wait")?, "1234:11e8#1");
    let second = Guest { autostart: false, ..named(edu("second", GSI, "do=wait")?, "1234:11e8#2") };
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Intel, vec![Device::Edu, Device::Edu]);
    let mut host = recipe.guest(first).guest(second).start()?;
    host.guest_prints("first", "edu: wait: going")?;
    host.order(RequestBody::VmStart { name: "second".into() })?;
    host.logs(&["guest second: ", "its interrupt input (GSI 22) is that of PCI function ", "which guest first has"])?;
    host.powers_off()?;
    for (gsi, reason) in [(3, "(GSI 3) is the control channel's (COM2)"), (4000, "(GSI 4000) is no I/O APIC's")] {
        let mut host = start(Iommu::Amd, edu("edu", gsi, "do=check")?)?;
        host.logs(&["guest edu: ", reason])?;
        host.powers_off()?;
    }
    Ok(())
}

fn images_without_lines() -> Result<()> {
    let folder = folder()?;
    let path = folder.path().join("old.elf");
    std::fs::write(&path, old_image::knowing_devices_up_to(DeviceKind::VirtioVsock)?)?;
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Amd, vec![Device::Edu]);
    let recipe = recipe.guest(edu("edu", GSI, "do=check,wait")?);
    let mut host = Recipe { image: Image::File(path), ..recipe }.start()?;
    host.limit(Duration::from_secs(30));
    host.guest_prints("edu", "edu: wait: going")?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?.to_string();
    ensure!(refusal.contains("guest 'edu': it has a device that the image does not know"), "{refusal}");
    host.powers_off()
}
