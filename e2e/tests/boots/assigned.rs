// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that drive a PCI function of their own. The controls: the same guests without Baton.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use baton::config::{Device, Guest, Image, Iommu, Model, Nvme, Storage};
use baton::size::Size;
use bundle::AssignedConfig;
use e2e::alone;
use e2e::host::Host;
use e2e::place::{Emulator, Kernel, built};
use e2e::recipe::{Recipe, folder, linux, tiny};
use handover::image::REMAPPED_SINCE;
use wire::{EventKind, PciFunction, ReplyBody, RequestBody, UpdateBy, UploadKind, VmState};

use super::Rule;
use super::devices::{card, disk};
use super::iommus::image_of;
use super::update::update_by;

pub const RULES: &[Rule] = &[
    ("edu_interrupts_exactly_once_on_the_bare_machine", edu_interrupts_exactly_once_on_the_bare_machine),
    ("edu_transfers_as_commanded_on_the_bare_machine", edu_transfers_as_commanded_on_the_bare_machine),
    ("edu_attacks_succeed_on_the_bare_machine", edu_attacks_succeed_on_the_bare_machine),
    ("edu_survives_any_use_of_its_registers_on_the_bare_machine", edu_survives_any_use_on_the_bare_machine),
    ("a_guest_has_edu_behind_amds_iommu", || a_guest_has_edu(Iommu::Amd)),
    ("edu_transfers_across_updates_behind_amds_iommu", || edu_transfers_across_updates(Iommu::Amd)),
    ("a_guest_has_edu_behind_intels_iommu", || a_guest_has_edu(Iommu::Intel)),
    ("edu_transfers_across_updates_behind_intels_iommu", || edu_transfers_across_updates(Iommu::Intel)),
    ("edu_reaches_no_memory_but_its_guests_behind_amds_iommu", || edu_attacks_in_vain(Iommu::Amd)),
    ("edu_reaches_no_memory_but_its_guests_behind_intels_iommu", || edu_attacks_in_vain(Iommu::Intel)),
    ("neighbours_notice_no_use_of_a_functions_registers", neighbours_notice_no_use_of_registers),
    ("a_function_serves_the_next_run_of_its_guest_and_the_next_image", a_function_serves_again),
    ("interrupts_follow_a_vcpu_whose_cpu_goes_offline", interrupts_follow_a_vcpu),
    ("a_function_that_was_refused_has_no_owner", a_function_that_was_refused_has_no_owner),
    ("a_function_that_cannot_be_reset_alone_is_reset_with_its_bus", a_function_is_reset_with_its_bus),
    ("a_disk_is_chosen_by_its_serial_number_behind_amds_iommu", || chosen_by_serial(Iommu::Amd)),
    ("a_disk_is_chosen_by_its_serial_number_behind_intels_iommu", || chosen_by_serial(Iommu::Intel)),
    ("a_card_floods_the_bare_machine", a_card_floods_the_bare_machine),
    ("a_disk_is_reset_over_and_over_on_the_bare_machine", a_disk_is_reset_on_the_bare_machine),
    ("a_guest_resets_its_disk_over_and_over_across_updates", || a_guest_resets_its_disk(Iommu::Amd)),
    ("a_function_that_storms_is_stopped", a_function_that_storms_is_stopped),
    ("a_function_is_refused_with_the_reason", a_function_is_refused_with_the_reason),
];

/// The same with QEMU 10.
pub const TEN_RULES: &[Rule] =
    &[("edu_reaches_no_memory_but_its_guests_behind_amds_iommu_in_qemu_10", edu_attacks_in_vain_in_qemu_10)];

pub const DRIVER_RULES: &[Rule] = &[
    ("linux_has_a_disk_and_a_card_behind_amds_iommu", || linux_has_both(Iommu::Amd)),
    ("linux_has_a_disk_and_a_card_behind_intels_iommu", || linux_has_both(Iommu::Intel)),
];

pub const LONG_RULES: &[Rule] = &[
    ("a_guest_resets_its_disk_over_and_over_across_updates_behind_intels_iommu", || {
        a_guest_resets_its_disk(Iommu::Intel)
    }),
    ("the_previous_image_is_refused_where_it_lacks_resets", the_previous_image_is_refused),
    ("a_guest_ends_amid_resets_of_its_disk", a_guest_ends_amid_resets),
    ("an_image_that_does_not_reset_functions_is_refused", an_image_that_does_not_reset_is_refused),
    ("a_function_that_does_not_come_back_from_its_reset_is_gone", a_function_that_does_not_come_back_is_gone),
];

const EDU: [&str; 6] = ["-M", "q35", "-smp", "2", "-device", "edu,dma_mask=0xffffffffffffffff"];

fn edu_alone(cmdline: &str) -> Result<Vec<String>> {
    alone::run(Emulator::System, "edu", cmdline, &EDU)
}

fn edu_interrupts_exactly_once_on_the_bare_machine() -> Result<()> {
    let lines = edu_alone("do=check,msi,intx cpus=2")?;
    for series in ["msi running", "msi halted", "msi halted-by-cpu1", "intx running", "intx halted"] {
        let wanted = format!("edu: {series} n=1000 came=1000");
        ensure!(lines.iter().any(|line| line.starts_with(&wanted)), "no line {wanted:?}: {lines:#?}");
    }
    Ok(())
}

fn edu_transfers_as_commanded_on_the_bare_machine() -> Result<()> {
    let lines = edu_alone("do=dma,stream,blackout rounds=3")?;
    for task in ["stream", "blackout"] {
        let (task, wanted) = (format!("edu: {task} "), "transfers=6 lost=0 double=0 wrong=0 stuck=0");
        ensure!(lines.iter().any(|line| line.starts_with(&task) && line.contains(wanted)), "{task}: {lines:#?}");
    }
    Ok(())
}

/// The control of all attacks: without an IOMMU they reach memory and the interrupt controller.
fn edu_attacks_succeed_on_the_bare_machine() -> Result<()> {
    let lines = edu_alone("do=attack at=a00000,3f00000,fee00000 expect=reached")?;
    let reached = lines.iter().filter(|line| line.ends_with("write=reached") || line.ends_with("interrupts=1"));
    ensure!(reached.count() == 3, "{lines:#?}");
    Ok(())
}

fn edu_survives_any_use_on_the_bare_machine() -> Result<()> {
    let lines = edu_alone("do=bars,storm,config,reset,msi-anywhere,check")?;
    let own = lines.iter().filter(|line| line.starts_with("edu: bars") && line.ends_with("memory=own")).count();
    ensure!(own == 6, "{lines:#?}");
    Ok(())
}

pub(super) fn assigned(selector: &str, without_reset: bool) -> AssignedConfig {
    AssignedConfig { selector: selector.to_owned(), without_reset, gsi: None, virtual_functions: 0 }
}

/// The guest edu with the device, which cannot be reset.
fn edu(cmdline: &str) -> Result<Guest> {
    Ok(Guest { functions: vec![assigned("1234:11e8", true)], ..tiny("edu", "edu", cmdline)? })
}

fn start(iommu: Iommu, devices: Vec<Device>, guest: Guest) -> Result<Host> {
    Recipe::new().cpus(2).with_devices(iommu, devices).guest(guest).start()
}

fn a_guest_has_edu(iommu: Iommu) -> Result<()> {
    let mut host = start(iommu, vec![Device::Edu], edu("do=check,msi,dma,stream rounds=2")?)?;
    host.limit(Duration::from_secs(30));
    host.guest_prints("edu", "edu: msi running n=1000 came=1000")?;
    host.guest_prints("edu", "edu: msi halted n=1000 came=1000")?;
    host.guest_prints("edu", "edu: dma: ok")?;
    host.guest_prints("edu", "transfers=4 lost=0 double=0 wrong=0 stuck=0")?;
    host.powers_off()
}

fn a_function_is_refused_with_the_reason() -> Result<()> {
    let refused = [
        (Iommu::None, "1234:11e8", true, "the machine has no IOMMU, or firmware does not describe it (IVRS, DMAR)"),
        (Iommu::Amd, "1234:11e8", false, "its bus has no bridge that resets it; reset = \"none\""),
        (Iommu::Amd, "0000:00:1e.3", true, "device \"0000:00:1e.3\": "),
    ];
    for (iommu, selector, without_reset, reason) in refused {
        let guest = Guest { functions: vec![assigned(selector, without_reset)], ..tiny("edu", "edu", "do=check")? };
        let mut host = start(iommu, vec![Device::Edu], guest)?;
        host.logs(&["guest edu: ", reason])?;
        host.powers_off()?;
    }
    Ok(())
}

fn linux_has_both(iommu: Iommu) -> Result<()> {
    let mut guest = linux("guest", Kernel::V6_1Full, "drivers,wait")?;
    guest.cmdline = guest.cmdline.replace("loglevel=5", "loglevel=7");
    guest.functions = vec![assigned("1b36:0010", false), assigned("8086:10d3", false)];
    let folder = folder()?;
    let archive = folder.path().join("drivers.cpio");
    fs::write(&archive, Kernel::V6_1Full.drivers()?.archive(&["nvme", "e1000e"])?)?;
    guest.modules.push(archive);
    let mut host = start(iommu, vec![disk(0), card(Model::E1000e)], guest)?;
    host.limit(Duration::from_secs(120));
    host.guest_prints("guest", "pci_bus 0000:00: root bus resource [mem 0x100000000-0xffffffffff window]")?;
    host.guest_prints("guest", "nvme nvme0: 1/0/0 default/read/poll queues")?;
    host.guest_prints("guest", "Intel(R) PRO/1000 Network Connection")?;
    host.guest_prints("guest", "baton-agent: drivers done")?;
    host.powers_off()
}

/// Transfers are under way all the time; each must be whole, and its interrupt must come once.
fn edu_transfers_across_updates(iommu: Iommu) -> Result<()> {
    let mut host = start(iommu, vec![Device::Edu], edu("do=stream")?)?;
    for generation in 2..=4 {
        host.limit(Duration::from_secs(30));
        host.guest_prints("edu", "edu: stream ")?;
        host.update_to(generation)?;
    }
    host.guest_prints("edu", "lost=0 double=0 wrong=0 stuck=0")?;
    ensure!(!host.seen.console("edu").contains("WRONG"), "{}", host.seen.console("edu"));
    host.powers_off()
}

fn a_disk_is_reset_on_the_bare_machine() -> Result<()> {
    let disk = ["-drive", "if=none,id=disk,driver=null-co,size=1M", "-device", "nvme,drive=disk,serial=disk"];
    let lines = alone::run(Emulator::System, "edu", "do=disk rounds=5", &[&EDU[..], &disk].concat())?;
    ensure!(lines.iter().any(|line| line == "edu: disk: reset 4"), "{lines:#?}");
    Ok(())
}

/// The guest edu with a disk as well.
fn edu_and_disk(cmdline: &str) -> Result<Guest> {
    let mut guest = edu(cmdline)?;
    guest.functions.push(assigned("1b36:0010", false));
    Ok(guest)
}

/// A reset is under way nearly all the time, and for as long as it takes: a guest that ends while an image prepares
/// itself has that image refused.
fn a_guest_resets_its_disk(iommu: Iommu) -> Result<()> {
    let mut host = start(iommu, vec![Device::Edu, disk(0)], edu_and_disk("do=disk rounds=100000")?)?;
    host.limit(Duration::from_secs(60));
    host.guest_prints("edu", "edu: disk: reset 0")?;
    for generation in 2..=4 {
        host.update_to(generation)?;
        let before = host.seen.console("edu").len();
        host.wait("another reset", |seen| seen.console("edu").len() > before)?;
    }
    host.guest_prints("edu", "edu: disk: reset 14")?;
    ensure!(!host.seen.console("edu").contains("WRONG"), "{}", host.seen);
    host.powers_off()
}

/// Its next run finds the disk whole, and so does the next image.
fn a_guest_ends_amid_resets() -> Result<()> {
    let mut host = start(Iommu::Intel, vec![Device::Edu, disk(0)], edu_and_disk("do=disk rounds=100000")?)?;
    host.limit(Duration::from_secs(120));
    for _ in 0..3 {
        host.guest_prints("edu", "edu: disk: reset 2")?;
        host.order(RequestBody::VmReset { name: "edu".into() })?;
        host.guest_prints("edu", "edu: disk: reset 0")?;
    }
    match host.client()?.request_within(Duration::from_secs(60), RequestBody::Restart)? {
        ReplyBody::Restarted(report) => ensure!(report.generation == 2, "{report:?}"),
        other => bail!("{other:?}"),
    }
    host.guest_prints("edu", "edu: disk: reset 2")?;
    ensure!(!host.seen.console("edu").contains("WRONG"), "{}", host.seen);
    host.powers_off()
}

/// The guest whose function can be reset runs on; without it the image is taken.
fn an_image_that_does_not_reset_is_refused() -> Result<()> {
    let folder = folder()?;
    let image = Image::File(image_of(folder.path(), REMAPPED_SINCE)?);
    let recipe = Recipe { image, ..Recipe::new().cpus(2).with_devices(Iommu::Intel, vec![Device::Edu, disk(0)]) };
    let mut host = recipe.guest(edu_and_disk("do=stream")?).start()?;
    host.limit(Duration::from_secs(60));
    host.guest_prints("edu", "edu: stream ")?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle })?;
    ensure!(refusal.reason.contains("does not carry out resets that guests ask for"), "{refusal:?}");
    host.guest_prints("edu", "edu: stream ")?;
    host.order(RequestBody::VmStop { name: "edu".into() })?;
    host.state("edu", VmState::Stopped)?;
    host.update_to(2)?;
    host.powers_off()
}

/// The image before is one that does not know such resets.
fn the_previous_image_is_refused() -> Result<()> {
    let folder = folder()?;
    let image = Image::File(image_of(folder.path(), REMAPPED_SINCE)?);
    let recipe = Recipe { image, ..Recipe::new().cpus(2).with_devices(Iommu::Intel, vec![Device::Edu, disk(0)]) };
    let mut host = recipe.guest(Guest { autostart: false, ..edu_and_disk("do=stream")? }).start()?;
    host.limit(Duration::from_secs(60));
    host.update_to(2)?;
    host.upload(UploadKind::Image, &baton::image::sealed(fs::read(built("baton.elf")?)?))?;
    update_by(&mut host, UpdateBy::Upload)?;
    host.order(RequestBody::VmStart { name: "edu".into() })?;
    host.guest_prints("edu", "edu: stream ")?;
    let refusal = host.refusal(RequestBody::Update { is_dry_run: false, by: UpdateBy::Previous })?;
    ensure!(refusal.reason.contains("does not carry out resets that guests ask for"), "{refusal:?}");
    host.guest_prints("edu", "edu: stream ")?;
    host.state("edu", VmState::Running)?;
    host.powers_off()
}

/// The operator is notified, and the guest has it again when it starts again.
fn a_function_that_does_not_come_back_is_gone() -> Result<()> {
    let guest = edu_and_disk("do=disk,stream expect=gone")?;
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Amd, vec![Device::Edu, disk(0)]).with_fault_points();
    let mut host = recipe.options("selftest=never-ready").guest(guest).start()?;
    host.limit(Duration::from_secs(60));
    for times in 1..=2 {
        host.guest_prints("edu", "edu: disk: gone")?;
        host.logs(&[
            "guest edu: PCI function ",
            "its guest has reset it, and the reset failed",
            "`baton vm reset edu`",
        ])?;
        let is_wanted = |event: &&EventKind| matches!(event, EventKind::FunctionStopped { guest: Some(_), .. });
        host.wait("a stopped function", |seen| seen.events.iter().filter(is_wanted).count() == times)?;
        host.guest_prints("edu", "edu: stream ")?;
        host.order(RequestBody::VmReset { name: "edu".into() })?;
    }
    ensure!(!host.seen.console("edu").contains("WRONG"), "{}", host.seen);
    host.powers_off()
}

/// Memory of the host, of firmware, of another guest and of none; the local APICs; the IOMMU itself, of either vendor.
const TARGETS: &str = "0x100000000,0x3f00000,0x38000000,0xfee00000,0xfed80000,0xfed90000,0xfffffffffff000,0xc8000000";

fn edu_attacks_in_vain(iommu: Iommu) -> Result<()> {
    edu_attacks_in_vain_on(Recipe::new(), iommu)
}

/// QEMU 10 has an AMD-Vi that can be made to translate nothing: `lab` has it translate.
fn edu_attacks_in_vain_in_qemu_10() -> Result<()> {
    edu_attacks_in_vain_on(Recipe::new().on(Emulator::Ten), Iommu::Amd)
}

fn edu_attacks_in_vain_on(recipe: Recipe, iommu: Iommu) -> Result<()> {
    let attack = format!("do=dma,attack at={TARGETS} expect=refused");
    let recipe = recipe.cpus(2).with_devices(iommu, vec![Device::Edu]).guest(edu(&attack)?);
    let mut host = recipe.beating("neighbour")?.start()?;
    host.limit(Duration::from_secs(60));
    host.guest_prints("edu", "edu: dma: ok")?;
    host.guest_prints("edu", "edu: attack: ok")?;
    host.beats("neighbour", 5)?;
    host.powers_off()
}

fn neighbours_notice_no_use_of_registers() -> Result<()> {
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Intel, vec![Device::Edu]);
    let recipe = recipe.guest(edu("do=bars,storm,config,reset,msi-anywhere,check rounds=2000")?);
    let mut host = recipe.beating("neighbour")?.start()?;
    host.limit(Duration::from_secs(60));
    for way in ["bars", "storm", "config", "reset", "msi-anywhere", "check"] {
        host.guest_prints("edu", &format!("edu: {way}: ok"))?;
    }
    host.beats("neighbour", 5)?;
    host.powers_off()
}

/// A guest that ends gives its function back; a warm restart takes it.
fn a_function_serves_again() -> Result<()> {
    let mut host = start(Iommu::Amd, vec![Device::Edu], edu("do=stream")?)?;
    host.limit(Duration::from_secs(60));
    host.guest_prints("edu", "edu: stream 0 transfers=")?;
    host.order(RequestBody::VmReset { name: "edu".into() })?;
    host.guest_prints("edu", "edu: stream 0 transfers=")?;
    match host.client()?.request_within(Duration::from_secs(60), RequestBody::Restart)? {
        ReplyBody::Restarted(report) => ensure!(report.generation == 2, "{report:?}"),
        other => bail!("{other:?}"),
    }
    host.guest_prints("edu", "edu: stream 0 transfers=")?;
    ensure!(!host.seen.console("edu").contains("WRONG"), "{}", host.seen);
    host.powers_off()
}

/// The guest's vCPU is on the second CPU: the first one has the neighbour's.
fn interrupts_follow_a_vcpu() -> Result<()> {
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Amd, vec![Device::Edu]).beating("neighbour")?;
    let mut host = recipe.guest(edu("do=stream")?).start()?;
    host.limit(Duration::from_secs(60));
    host.guest_prints("edu", "edu: stream 0 transfers=")?;
    for _ in 0..2 {
        host.order(RequestBody::CpuOffline { index: 1 })?;
        host.guest_prints("edu", "edu: stream ")?;
        host.order(RequestBody::CpuOnline { index: 1 })?;
        host.guest_prints("edu", "edu: stream ")?;
    }
    host.guest_prints("edu", "lost=0 double=0 wrong=0 stuck=0")?;
    let console = host.seen.console("edu");
    ensure!(!console.contains("WRONG") && !console.contains("lost=1"), "{console}");
    host.powers_off()
}

/// The guest fails each time for the same reason, and the next guest can have the function.
fn a_function_that_was_refused_has_no_owner() -> Result<()> {
    let named = |name: &str, without_reset| -> Result<Guest> {
        let functions = vec![assigned("1234:11e8", without_reset)];
        Ok(Guest { functions, autostart: false, ..tiny(name, "edu", "do=check,wait")? })
    };
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Amd, vec![Device::Edu]).beating("neighbour")?;
    let mut host = recipe.guest(named("refused", false)?).guest(named("edu", true)?).start()?;
    host.limit(Duration::from_secs(30));
    for _ in 0..2 {
        host.order(RequestBody::VmStart { name: "refused".into() })?;
        let vm = host.state("refused", VmState::Failed)?;
        ensure!(vm.reason.as_deref().is_some_and(|reason| reason.contains("it cannot be reset")), "{vm:?}");
    }
    host.order(RequestBody::VmStart { name: "edu".into() })?;
    host.guest_prints("edu", "edu: check: ok")?;
    host.powers_off()
}

/// A function that its bridge resets has its addresses again: the guest finds the device whole each time.
fn a_function_is_reset_with_its_bus() -> Result<()> {
    let functions = vec![assigned("1234:11e8", false)];
    let edu = Guest { functions, ..tiny("edu", "edu", "do=check,wait")? };
    let mut host = Recipe::new().cpus(2).with_devices(Iommu::Intel, vec![Device::Edu]).guest(edu).start()?;
    host.limit(Duration::from_secs(30));
    host.guest_prints("edu", "edu: check: ok")?;
    host.logs(&["is reset with its bus"])?;
    host.order(RequestBody::VmReset { name: "edu".into() })?;
    host.guest_prints("edu", "edu: check: ok")?;
    host.powers_off()
}

/// Of two disks of one model the one with the number, also when it was asked before; one that no disk has is refused.
fn chosen_by_serial(iommu: Iommu) -> Result<()> {
    let disk = |serial: &str| {
        let storage = Storage::Temporary(Size::mebibytes(1));
        Device::Nvme(Nvme { storage, serial: serial.to_owned(), virtual_functions: 0 })
    };
    let guest = |name: &str, serial: &str| -> Result<Guest> {
        Ok(Guest { functions: vec![assigned(serial, false)], autostart: false, ..tiny(name, "keeper", "do=fresh")? })
    };
    let recipe = Recipe::new().cpus(2).with_devices(iommu, vec![disk("S-1"), disk("S-2")]).beating("neighbour")?;
    let mut host = recipe.guest(guest("second", "nvme:S-2")?).guest(guest("third", "nvme:S-3")?).start()?;
    host.limit(Duration::from_secs(30));
    host.order(RequestBody::VmStart { name: "third".into() })?;
    let vm = host.state("third", VmState::Failed)?;
    let reason = vm.reason.unwrap_or_default();
    ensure!(
        reason.contains("no disk has reported the serial number nvme:S-3") && reason.contains("known are: S-1 ("),
        "{reason}"
    );
    let (_, place) = reason.split_once(", S-2 (").with_context(|| reason.clone())?;
    let place = place.trim_end_matches(')');
    host.order(RequestBody::VmStart { name: "second".into() })?;
    host.logs(&["guest second: has PCI function ", place])?;
    host.powers_off()
}

/// The control of the storm: nothing keeps the card from fetching.
fn a_card_floods_the_bare_machine() -> Result<()> {
    let arguments = [&EDU[..], &["-nic", "none", "-device", "e1000e"]].concat();
    let lines = alone::run(Emulator::System, "edu", "do=flood rounds=1000", &arguments)?;
    ensure!(lines.iter().any(|line| line == "edu: flood: laps=1000 card=there"), "{lines:#?}");
    Ok(())
}

/// The guest's network card is refused as fast as the emulator can. It is taken from the guest, whose other function
/// goes on, and it stays stopped in the next image. A reset of the guest gives it back. QEMU's AMD-Vi refuses requests
/// to pages that are not present, and logs none of them.
///
/// The machine's clock counts instructions, so that the rate of the storm is no luck of a loaded machine.
fn a_function_that_storms_is_stopped() -> Result<()> {
    let mut guest = edu("do=flood,stream")?;
    guest.functions.push(assigned("8086:10d3", false));
    let recipe = Recipe::new().cpus(2).with_devices(Iommu::Intel, vec![Device::Edu, card(Model::E1000e)]).guest(guest);
    let recipe = Recipe { cpu: "max,-x2apic", ..recipe }.with(["-icount", "shift=5,sleep=off"].map(Into::into));
    let mut host = recipe.beating("neighbour")?.start()?;
    host.limit(Duration::from_secs(60));
    is_stopped(&mut host, 1)?;
    host.beats("neighbour", 5)?;
    host.update_to(2)?;
    host.guest_prints("edu", "edu: stream ")?;
    is_listed_as_stopped(&mut host)?;
    ensure!(!host.seen.console("edu").contains("WRONG"), "{}", host.seen);
    host.order(RequestBody::VmReset { name: "edu".into() })?;
    is_stopped(&mut host, 2)?;
    host.beats("neighbour", 5)?;
    host.powers_off()
}

/// The function was stopped so often: the guest and the operator were notified, and it was logged.
fn is_stopped(host: &mut Host, times: usize) -> Result<()> {
    host.logs(&["guest edu: PCI function ", " is stopped: its IOMMU has refused ", "`baton vm reset edu`"])?;
    let is_wanted =
        |event: &&EventKind| matches!(event, EventKind::FunctionStopped { guest: Some(guest), .. } if guest == "edu");
    host.wait("a stopped function", |seen| seen.events.iter().filter(is_wanted).count() == times)?;
    host.guest_prints("edu", "card=gone")?;
    host.guest_prints("edu", "edu: flood: ok")?;
    host.guest_prints("edu", "edu: stream ")?;
    is_listed_as_stopped(host)
}

/// `baton pci` lists the card as stopped, and nothing else. An image surveys functions when CPUs are idle.
fn is_listed_as_stopped(host: &mut Host) -> Result<()> {
    let is_stopped = |function: &PciFunction| function.problems.iter().any(|problem| problem.contains("it is stopped"));
    loop {
        let functions = host.client()?.pci()?.1;
        if let Some(found) = functions.iter().find(|function| is_stopped(function)) {
            ensure!((found.vendor, found.device) == (0x8086, 0x10d3), "{found:?}");
            return Ok(());
        }
        host.wait_a_moment().with_context(|| format!("no function is listed as stopped: {functions:#?}"))?;
    }
}
