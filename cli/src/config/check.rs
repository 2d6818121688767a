// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of `host.toml` and their possible values.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use bundle::{Manifest, PmuEvent, VirtioDevices, WhenDone, limits};
use toml::de::DeValue;

use super::check_disks::Disks;
use super::check_functions::Functions;
use super::check_networks::{self, Networks};
use super::check_smbios::{self, Uuids};
use super::check_sockets::Sockets;
use super::names::is_possible_name;
use super::read::{Section, choice, flag, list, number, path, size, text};
use super::{Config, Guest, Host, Image, check_boot, check_devices, check_functions, check_trust};
use crate::options;
use crate::size::Size;
use crate::suggest::did_you_mean;

/// The name that stands before the host's own lines on the screen.
const RESERVED_NAME: &str = "host";

/// The word for no image.
const NO_IMAGE: &str = "none";

/// The values of keys that are not written.
const USUAL_CPUS: u32 = 2;
const USUAL_MEMORY: Size = Size::mebibytes(2048);
pub(super) const USUAL_WEIGHT: u32 = 100;
pub(super) const USUAL_HUNG_S: u32 = 10;

/// The maximum number of CPUs of a lab machine.
const MAX_CPUS: u32 = 255;

pub(super) fn config(path: &Path, mut root: Section<'_, '_>, beside: &Manifest) -> Option<Config> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let host = host(folder, root.table("host"));
    let trust = check_trust::trust(folder, root.table("trust"));
    let networks = root.tables("network");
    let networks = check_networks::networks(&root, networks, beside);
    let sections = root.tables("guest");
    check_count(&root, sections.len());
    let sockets = Sockets::beside(beside);
    let (mut taken, mut guests) = (Taken { networks, sockets, ..Taken::default() }, Vec::new());
    for section in sections {
        guests.push(guest(folder, section, &mut taken));
    }
    let sockets = taken.sockets.assign(&root);
    let disks = taken.disks.assign(&root, &taken.sockets, &sockets);
    root.finish();
    let guests = guests.into_iter().collect::<Option<Vec<_>>>()?;
    let devices = sockets.into_iter().zip(disks);
    let guests = guests.into_iter().zip(devices).map(|(guest, (vsock, disks))| Guest { vsock, disks, ..guest });
    let guests = guests.collect();
    let networks = taken.networks.into_configs()?;
    let check_trust::Trust { keys: trusted_keys, allow_downgrade, control } = trust;
    Some(Config { path: path.to_owned(), host: host?, trusted_keys, allow_downgrade, control, networks, guests })
}

/// Names and resources that guests may not share.
#[derive(Default)]
struct Taken {
    names: HashSet<String>,
    functions: Functions,
    networks: Networks,
    sockets: Sockets,
    uuids: Uuids,
    disks: Disks,
}

fn check_count(root: &Section<'_, '_>, guests: usize) {
    if guests > limits::GUESTS {
        root.complain(None, format_args!("there are {guests} guests; at most {} are possible", limits::GUESTS));
    }
}

fn host(folder: &Path, mut section: Section<'_, '_>) -> Option<Host> {
    let cpus = section.optional("cpus", number(1..=MAX_CPUS)).unwrap_or(USUAL_CPUS);
    let memory = section.optional("memory", size).unwrap_or(USUAL_MEMORY);
    let when_done = section.optional("when_done", choice).unwrap_or(WhenDone::PowerOff);
    let cmdline = section.placed("cmdline", text);
    if let Some((cmdline, at)) = &cmdline {
        for bad in options::bad_options(cmdline) {
            section.complain(Some(section.place_of(&bad.word, *at)), format_args!("cmdline: {}", bad.message));
        }
    }
    let image = match section.placed("image", path) {
        None => Image::Usual,
        Some((path, _)) if path.as_os_str() == NO_IMAGE => Image::None,
        Some((path, at)) => existing(&section, "image", &folder.join(path), at).map_or(Image::None, Image::File),
    };
    let iommu = section.optional("iommu", choice).unwrap_or_default();
    let devices = section.tables("device");
    let devices = check_devices::devices(folder, &section, devices);
    section.finish();
    let cmdline = cmdline.map(|(cmdline, _)| cmdline).unwrap_or_default();
    Some(Host { cpus, memory, when_done, cmdline, image, iommu, devices })
}

fn guest(folder: &Path, mut section: Section<'_, '_>, taken: &mut Taken) -> Option<Guest> {
    let name = section.required("name", text);
    if let Some((name, at)) = &name {
        section.set_label(format!("guest {name:?}: "));
        check_name(&section, name, *at, &mut taken.names);
    }
    let kernel = section.required("kernel", path);
    let kernel = kernel.and_then(|(path, at)| existing(&section, "kernel", &folder.join(path), at));
    let initrd = section.placed("initrd", path);
    let initrd = initrd.and_then(|(path, at)| existing(&section, "initrd", &folder.join(path), at));
    let modules = modules(folder, &mut section);
    let boot = check_boot::boot(folder, &mut section);
    let memory = section.required("memory", memory);
    let memory_max = memory_max(&mut section, memory.as_ref().map(|(memory, _)| *memory));
    let cmdline = section.optional("cmdline", guest_cmdline).unwrap_or_default();
    let autostart = section.optional("autostart", flag).unwrap_or(true);
    let nics = section.tables("nic");
    let disks = section.tables("disk");
    let owner = name.as_ref().map(|(name, _)| name.as_str()).unwrap_or_default();
    let vcpus = section.optional("vcpus", number(1..=limits::VCPUS)).unwrap_or(1);
    let nics = check_networks::nics(&section, (owner, vcpus), nics, &mut taken.networks);
    let guest = Guest {
        nics,
        vcpus,
        debug_exit: section.optional("debug_exit", flag).unwrap_or(false),
        weight: section.optional("weight", number(1..=limits::WEIGHT_MOST)).unwrap_or(USUAL_WEIGHT),
        cap_percent: section.optional("cap", number(0..=limits::CAP_MOST)).unwrap_or(0),
        on_panic: section.optional("on_panic", choice).unwrap_or_default(),
        hung_s: section.optional("hung_s", number(0..=limits::HUNG_MOST_S)).unwrap_or(USUAL_HUNG_S),
        pmu: section.optional("pmu", choice).unwrap_or_default(),
        pmu_events: section.optional("pmu_events", pmu_events),
        functions: check_functions::functions(&mut section, autostart, &mut taken.functions),
        virtio: virtio(&mut section),
        // Assigned once all guests are known.
        vsock: None,
        cpu: section.optional("cpu", choice).unwrap_or_default(),
        smbios: check_smbios::smbios(&mut section, &mut taken.uuids),
        disks: Vec::new(),
        is_paravirtual: section.optional("paravirtual", flag).unwrap_or(false),
        autostart,
        memory_max,
        memory: memory.as_ref().map_or(USUAL_MEMORY, |(memory, _)| *memory),
        name: name.map(|(name, _)| name).unwrap_or_default(),
        kernel: kernel.unwrap_or_default(),
        initrd,
        modules,
        boot,
        cmdline,
    };
    check_boot::check(&section, &guest, !disks.is_empty());
    taken.sockets.note(&mut section, &guest.name);
    taken.disks.note(&section, &guest.name, disks);
    if let Some((_, at)) = memory {
        check_fit(&section, &guest, at);
    }
    section.finish();
    Some(guest)
}

fn virtio(section: &mut Section<'_, '_>) -> VirtioDevices {
    let mut is_wanted = |key| section.optional(key, flag).unwrap_or(false);
    VirtioDevices { rng: is_wanted("rng"), console: is_wanted("virtio_console") }
}

fn modules(folder: &Path, section: &mut Section<'_, '_>) -> Vec<PathBuf> {
    let Some((paths, at)) = section.placed("modules", list(path)) else { return Vec::new() };
    if paths.len() > limits::MODULES {
        let most = limits::MODULES;
        section.complain(Some(at), format_args!("{} modules; at most {most} are possible", paths.len()));
    }
    paths.iter().filter_map(|path| existing(section, "module", &folder.join(path), at)).collect()
}

fn check_name(section: &Section<'_, '_>, name: &str, at: usize, names: &mut HashSet<String>) {
    if !is_possible_name(name) {
        let most = limits::GUEST_NAME_BYTES;
        let hint = format!("write 1 to {most} letters, digits, '-', '_' and '.'");
        section.complain(Some(at), format_args!("the name is not possible; {hint}"));
    }
    if name == RESERVED_NAME {
        section.complain(Some(at), "the name stands for the host's own lines; choose another");
    }
    if !names.insert(name.to_owned()) {
        section.complain(Some(at), "another guest has the same name; rename one of them");
    }
}

fn guest_cmdline(value: &DeValue<'_>) -> Result<String, String> {
    let cmdline = text(value)?;
    if cmdline.len() > limits::CMDLINE_BYTES || cmdline.contains('\0') {
        return Err(format!("is too long or holds a zero; at most {} bytes are possible", limits::CMDLINE_BYTES));
    }
    Ok(cmdline)
}

fn pmu_events(value: &DeValue<'_>) -> Result<Vec<PmuEvent>, String> {
    let (written, most) = (list(text)(value)?, limits::PMU_EVENTS);
    if written.len() > most {
        return Err(format!("names {} events; at most {most} are possible", written.len()));
    }
    written.iter().map(|text| pmu_event(text)).collect()
}

/// Event select and unit mask, hexadecimal: `3c`, `d1:20`.
fn pmu_event(text: &str) -> Result<PmuEvent, String> {
    const MOST_SELECT: u16 = 0xfff;
    let (select, unit) = text.split_once(':').unwrap_or((text, "0"));
    match (u16::from_str_radix(select, 16), u8::from_str_radix(unit, 16)) {
        (Ok(select), Ok(unit)) if select <= MOST_SELECT => Ok(PmuEvent { select, unit }),
        _ => Err(format!("= {text:?} is no event; write its number and unit mask, hexadecimal: \"d1:20\"")),
    }
}

/// Checks a guest's memory.
fn memory(value: &DeValue<'_>) -> Result<Size, String> {
    let size = size(value)?;
    let is_whole = size.bytes.is_multiple_of(limits::MEMORY_GRANULE_BYTES);
    if !is_whole || !(limits::MEMORY_LEAST_BYTES..=limits::MEMORY_MOST_BYTES).contains(&size.bytes) {
        let written = value.as_str().unwrap_or_default();
        return Err(format!("= {written:?} is not possible; write whole MiB, from 1MiB to 128TiB"));
    }
    Ok(size)
}

/// Checks the memory that a guest sees beyond what it has in any case.
fn memory_max(section: &mut Section<'_, '_>, assured: Option<Size>) -> Option<Size> {
    let (most, at) = section.placed("memory_max", memory)?;
    let is_whole = |size: Size| size.bytes.is_multiple_of(limits::BLOCK_BYTES);
    if assured.is_some_and(|assured| most.bytes < assured.bytes || !is_whole(assured)) || !is_whole(most) {
        let message = "memory_max is not possible; write it and memory in whole 2 MiB, and it not below memory";
        section.complain(Some(at), message);
    }
    Some(most)
}

/// Returns a file that can be read; the reason why one cannot is noted.
pub(super) fn existing(section: &Section<'_, '_>, key: &str, path: &Path, at: usize) -> Option<PathBuf> {
    match file(key, path) {
        Ok(path) => Some(path),
        Err(message) => {
            section.complain(Some(at), message);
            None
        }
    }
}

/// Returns a file that can be read.
fn file(key: &str, path: &Path) -> Result<PathBuf, String> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(path.to_owned()),
        Ok(_) => Err(format!("the {key} {:?} is no file; give the path of one", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(format!("the {key} {:?} does not exist{}", path.display(), neighbour(path)))
        }
        Err(error) => Err(format!("the {key} {:?} cannot be read: {error}", path.display())),
    }
}

/// Returns a suggestion from the same folder, or the advice to correct the path.
fn neighbour(path: &Path) -> String {
    let advice = || "; correct the path (it is relative to this file)".to_owned();
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return advice() };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    match did_you_mean(&name.to_string_lossy(), names.iter().map(String::as_str)) {
        suggestion if suggestion.is_empty() => advice(),
        suggestion => suggestion,
    }
}

/// Kernel, initrd and modules fit the memory together.
fn check_fit(section: &Section<'_, '_>, guest: &Guest, at: usize) {
    let files = [&guest.kernel].into_iter().chain(&guest.initrd).chain(&guest.modules);
    let bytes: u64 = files.map(|path| fs::metadata(path).map_or(0, |metadata| metadata.len())).sum();
    if bytes < guest.memory.bytes {
        return;
    }
    let files_are = if guest.initrd.is_some() { "kernel and initrd are" } else { "its files are" };
    let enough = Size::mebibytes((bytes * 2).div_ceil(1 << 20));
    let (files, memory) = (Size { bytes }, guest.memory);
    let hint = format!("raise memory, to {enough} or more");
    section.complain(Some(at), format_args!("{files_are} larger ({files}) than its memory ({memory}); {hint}"));
}
