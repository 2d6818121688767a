// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hosts with an IOMMU and PCI devices, which Baton finds and leaves alone; and the same machine driven by stock Linux.

use std::collections::HashSet;
use std::fs;
use std::net::Shutdown;
use std::os::unix::net::UnixListener;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use baton::config::{Address, Backend, Device, Iommu, Model, Network, Nvme, Storage};
use baton::size::Size;
use e2e::host::Host;
use e2e::place::{Emulator, Kernel, built};
use e2e::recipe::{Recipe, folder};
use e2e::stock;
use e2e::tool::Operator;
use wire::{PciFunction, ReplyBody, RequestBody};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("the_tool_lists_what_host_toml_adds_behind_amds_iommu", the_tool_lists_what_host_toml_adds_behind_amds_iommu),
    ("a_host_runs_its_guest_behind_intels_iommu", || runs_with(Emulator::System, Iommu::Intel, vec![disk(0)])),
    ("an_emulator_without_igb_is_named_with_its_version", an_emulator_without_igb_is_named_with_its_version),
];

pub const LONG_RULES: &[Rule] = &[
    ("every_card_and_cable_is_there_without_an_iommu", || every_card_and_cable(Emulator::System, Iommu::None)),
    ("every_card_and_cable_is_there_behind_amds_iommu", || every_card_and_cable(Emulator::System, Iommu::Amd)),
    ("every_card_and_cable_is_there_behind_intels_iommu", || every_card_and_cable(Emulator::System, Iommu::Intel)),
    ("a_disk_with_virtual_functions_is_there", || runs_with(Emulator::System, Iommu::Amd, vec![disk(4), disk(127)])),
    ("firmware_places_as_many_devices_as_there_can_be", || {
        runs_with(Emulator::System, Iommu::Amd, (0..MOST).map(|_| card(Model::E1000e)).collect())
    }),
    ("a_host_with_an_iommu_and_devices_is_updated", a_host_with_an_iommu_and_devices_is_updated),
    ("a_guest_loads_modules_that_were_compressed", a_guest_loads_modules_that_were_compressed),
];

pub const TEN_LONG_RULES: &[Rule] = &[
    ("igb_is_there_behind_amds_iommu_of_qemu_10", || igb_is_there(Iommu::Amd)),
    ("igb_is_there_behind_intels_iommu_of_qemu_10", || igb_is_there(Iommu::Intel)),
    ("every_card_and_cable_is_there_in_qemu_10", || every_card_and_cable(Emulator::Ten, Iommu::Amd)),
];

pub const DRIVER_LONG_RULES: &[Rule] = &[
    ("a_guest_loads_the_drivers_of_disks_and_cards", a_guest_loads_the_drivers_of_disks_and_cards),
    ("stock_linux_drives_the_devices_through_amds_iommu", || stock_linux_drives_the_devices(Iommu::Amd)),
    ("stock_linux_drives_the_devices_through_intels_iommu", || stock_linux_drives_the_devices(Iommu::Intel)),
];

const GUEST: &str = "guest";
/// Devices that `host.toml` can have.
const MOST: u32 = 12;
/// How long a cable's other end may take.
const PEER_LIMIT: Duration = Duration::from_secs(60);
/// Vendor and device of what the lab adds.
const ROOT_PORT: (u16, u16) = (0x1b36, 0x000c);
const NVME: (u16, u16) = (0x1b36, 0x0010);
const E1000E: (u16, u16) = (0x8086, 0x10d3);
const IGB: (u16, u16) = (0x8086, 0x10c9);
const VIRTIO_NET: (u16, u16) = (0x1af4, 0x1041);
const EDU: (u16, u16) = (0x1234, 0x11e8);
/// The class of an IOMMU, which AMD's shows as a PCI function (AMD I/O Virtualization 48882, section 3.1).
const IOMMU_CLASS: (u8, u8, u8) = (8, 6, 0);

pub fn disk(virtual_functions: u32) -> Device {
    let storage = Storage::Temporary(Size::mebibytes(64));
    Device::Nvme(Nvme { storage, serial: format!("disk-{virtual_functions}"), virtual_functions })
}

pub fn card(model: Model) -> Device {
    cabled(model, Backend::User { forward: Vec::new() })
}

fn cabled(model: Model, backend: Backend) -> Device {
    Device::Network(Network { model, backend, mac: None })
}

fn id(device: &Device) -> (u16, u16) {
    match device {
        Device::Nvme(_) => NVME,
        Device::Edu => EDU,
        Device::Network(network) => match network.model {
            Model::E1000e => E1000E,
            Model::Igb => IGB,
            Model::VirtioNet => VIRTIO_NET,
        },
    }
}

/// Checks that each device is where the lab puts it, in an isolation group of its own, and that the IOMMU is there.
fn are_found(functions: &[PciFunction], iommu: Iommu, devices: &[Device]) -> Result<()> {
    let find = |bus, slot| functions.iter().find(|function| function.place == (0, bus, slot, 0));
    let mut groups = HashSet::new();
    for (slot, device) in (2..).zip(devices) {
        let first = find(0, slot).with_context(|| format!("nothing in slot {slot:#x}: {functions:#?}"))?;
        let found = match iommu {
            Iommu::Amd => first,
            Iommu::Intel | Iommu::None => {
                ensure!((first.vendor, first.device) == ROOT_PORT && first.group.is_none(), "{first:?}");
                let bus = first.bus_behind.with_context(|| format!("{first:?} is no port"))?;
                find(bus, 0).with_context(|| format!("nothing is behind {first:?}"))?
            }
        };
        ensure!((found.vendor, found.device) == id(device), "{found:?} is no {}", device.kind());
        let group = found.group.with_context(|| format!("{found:?} is in no group"))?;
        ensure!(groups.insert(group), "{found:?} shares a group: {functions:#?}");
        ensure!(found.ranges.iter().any(|range| !range.is_ports), "no memory of {found:?} is placed");
        let virtual_functions = if let Device::Nvme(nvme) = device { nvme.virtual_functions } else { 0 };
        let stated = found.virtual_functions.as_ref().map(|all| (u32::from(all.total), all.places.is_some()));
        // QEMU's igb has some as well.
        let wanted = (virtual_functions > 0).then_some((virtual_functions, true));
        ensure!(!matches!(device, Device::Nvme(_)) || stated == wanted, "{found:?}");
    }
    let iommus = functions.iter().filter(|function| function.class == IOMMU_CLASS).count();
    ensure!(iommus == usize::from(iommu == Iommu::Amd), "{iommus} functions are IOMMUs: {functions:#?}");
    Ok(())
}

/// Boots with these devices: a guest runs, and Baton finds all of them.
fn runs_with(emulator: Emulator, iommu: Iommu, devices: Vec<Device>) -> Result<()> {
    let mut host = start(emulator, iommu, devices.clone())?;
    are_found(&host.client()?.pci()?.1, iommu, &devices)?;
    host.powers_off()
}

/// Starts a host that has probed all functions when its guest runs.
fn start(emulator: Emulator, iommu: Iommu, devices: Vec<Device>) -> Result<Host> {
    let recipe = Recipe::new().on(emulator).options("pci=all").with_devices(iommu, devices);
    let mut host = recipe.beating(GUEST)?.start()?;
    host.beats(GUEST, 2)?;
    Ok(host)
}

fn the_tool_lists_what_host_toml_adds_behind_amds_iommu() -> Result<()> {
    let keeper = built("guests/keeper.elf")?;
    let operator = Operator::with(&format!(
        "[host]\nmemory = \"512MiB\"\ncmdline = \"pci=all\"\n\
         [[host.device]]\nkind = \"nvme\"\nsize = \"64MiB\"\nvfs = 4\n\
         [[host.device]]\nkind = \"e1000e\"\nbackend = \"user\"\n\
         [[host.device]]\nkind = \"edu\"\n\
         [[guest]]\nname = \"keeper\"\nkernel = {keeper:?}\ncmdline = \"do=beat\"\nmemory = \"16MiB\"\n"
    ))?;
    operator.run(&["up", "host.toml", "--detach", "--iommu", "amd"])?.well()?;
    let temporary = operator.folder().join("baton/default/disk-1.img");
    ensure!(fs::metadata(&temporary)?.len() == 64 << 20);
    let lines = operator.run(&["pci", "--json"])?.well()?;
    let functions: Vec<PciFunction> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let nvme = Nvme { storage: Storage::File(temporary.clone()), serial: String::new(), virtual_functions: 4 };
    are_found(&functions, Iommu::Amd, &[Device::Nvme(nvme), card(Model::E1000e), Device::Edu])?;
    let text = operator.run(&["pci"])?.well()?;
    ensure!(text.contains("4 virtual functions (0000:00:"), "{text}");
    operator.console_until("keeper", "heartbeat", Duration::from_secs(60))?;
    operator.run(&["down", "--yes"])?.well()?;
    // The tool knows that the host is gone before the process that ran it has removed what it had made.
    let begin = Instant::now();
    while temporary.exists() {
        ensure!(begin.elapsed() < Duration::from_secs(10), "the temporary disk is still there");
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn an_emulator_without_igb_is_named_with_its_version() -> Result<()> {
    let folder = folder()?;
    let old = folder.path().join("qemu");
    fs::write(&old, "#!/bin/sh\necho QEMU emulator version 7.2.22\n")?;
    fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let keeper = built("guests/keeper.elf")?;
    let operator = Operator::with(&format!(
        "[[host.device]]\nkind = \"igb\"\nbackend = \"user\"\n\
         [[guest]]\nname = \"keeper\"\nkernel = {keeper:?}\nmemory = \"16MiB\"\n"
    ))?;
    let output = operator.run(&["up", "host.toml", "--qemu", &old.to_string_lossy()])?;
    let reason = "[[host.device]] 1: igb needs QEMU 8.0 or newer, and ";
    ensure!(
        output.status == Some(1) && output.err.contains(reason) && output.err.contains("is QEMU 7.2;"),
        "{output:?}"
    );
    Ok(())
}

/// Cards of each model with each cable that needs no rights on this machine, and edu.
fn every_card_and_cable(emulator: Emulator, iommu: Iommu) -> Result<()> {
    let folder = folder()?;
    let at = |name: &str| Address::Unix(folder.path().join(name));
    let peer = UnixListener::bind(folder.path().join("peer"))?;
    let forward = Backend::User { forward: vec!["tcp:127.0.0.1:0-:22".into()] };
    let devices = vec![
        cabled(Model::E1000e, Backend::User { forward: Vec::new() }),
        cabled(Model::VirtioNet, Backend::Listen(at("listen"))),
        cabled(Model::E1000e, Backend::Connect(at("peer"))),
        cabled(Model::VirtioNet, Backend::Datagrams { local: at("local"), remote: at("remote") }),
        cabled(Model::VirtioNet, forward),
        Device::Edu,
    ];
    let mut host = start(emulator, iommu, devices.clone())?;
    peer.accept()?.0.shutdown(Shutdown::Both)?;
    for name in ["listen", "local"] {
        ensure!(folder.path().join(name).exists(), "there is no socket {name}");
    }
    are_found(&host.client()?.pci()?.1, iommu, &devices)?;
    host.powers_off()
}

fn igb_is_there(iommu: Iommu) -> Result<()> {
    runs_with(Emulator::Ten, iommu, vec![card(Model::Igb), disk(4), card(Model::VirtioNet)])
}

fn a_host_with_an_iommu_and_devices_is_updated() -> Result<()> {
    for iommu in [Iommu::Amd, Iommu::Intel] {
        let devices = vec![disk(0), card(Model::E1000e), card(Model::VirtioNet), Device::Edu];
        let mut host = start(Emulator::System, iommu, devices.clone())?;
        match host.client()?.request_within(PEER_LIMIT, RequestBody::Restart)? {
            ReplyBody::Restarted(report) => ensure!(report.generation == 2, "{report:?}"),
            other => anyhow::bail!("{other:?}"),
        }
        host.beats(GUEST, 2)?;
        are_found(&host.client()?.pci()?.1, iommu, &devices)?;
        host.powers_off()?;
    }
    Ok(())
}

fn loads(kernel: Kernel, names: &[&str], expected: &[&str]) -> Result<()> {
    let folder = folder()?;
    let guest = stock::guest(folder.path(), GUEST, kernel, names, "wait")?;
    let mut host = Recipe::new().guest(guest).start()?;
    host.limit(Duration::from_secs(300));
    host.guest_prints(GUEST, "baton-agent: drivers done")?;
    let console = host.seen.console(GUEST);
    for name in expected {
        ensure!(console.contains(&format!("baton-agent: loaded {name}")), "{name} is not loaded:\n{console}");
    }
    ensure!(!console.contains("cannot be loaded"), "{console}");
    host.powers_off()
}

fn a_guest_loads_the_drivers_of_disks_and_cards() -> Result<()> {
    let names = ["nvme", "e1000e", "igb", "virtio_net", "virtio_pci", "vfio-pci"];
    loads(Kernel::V6_1Full, &names, &["nvme_core", "nvme", "e1000e", "igb", "virtio_net", "vfio_pci"])
}

fn a_guest_loads_modules_that_were_compressed() -> Result<()> {
    let kernel = if Kernel::V6_12.file().is_ok() { Kernel::V6_12 } else { Kernel::Default };
    loads(kernel, &["virtio_net", "nvme"], &["net_failover", "virtio_net"])
}

/// The control: the lab's machine without Baton. Linux finds the IOMMU and drives disk and cards through it.
fn stock_linux_drives_the_devices(iommu: Iommu) -> Result<()> {
    let devices = vec![disk(0), card(Model::E1000e), card(Model::VirtioNet)];
    let recipe = Recipe::new().cpus(1).with_devices(iommu, devices);
    let names = ["nvme", "e1000e", "virtio_pci", "virtio_net"];
    let mut host = stock::start(&recipe, Kernel::V6_1Full, &names, "wait")?;
    host.limit(Duration::from_secs(300));
    host.logs(&["baton-agent: drivers done"])?;
    let unit =
        if iommu == Iommu::Amd { "AMD-Vi: Interrupt remapping enabled" } else { "DMAR-IR: Enabled IRQ remapping" };
    for words in [unit, "Adding to iommu group", "nvme nvme0: ", "(PCI Express:2.5GT/s:Width x1)"] {
        host.logs(&[words])?;
    }
    host.logs(&["nvme nvme0: 1/0/0 default/read/poll queues"])
}
