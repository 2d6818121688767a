// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the values of `host.toml` can be.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use bundle::{PmuEvent, limits};
use seal::PublicKey;

use super::schema::{Written, WrittenGuest, WrittenHost, WrittenTrust};
use super::{Config, Guest, Host, Image};
use crate::keys;
use crate::size::Size;
use crate::suggest::did_you_mean;

/// The name that stands before the host's own lines on the screen.
const RESERVED_NAME: &str = "host";

/// What stands for no image.
const NO_IMAGE: &str = "none";

/// The most processors of a lab machine.
const MAX_CPUS: u32 = 255;

pub(super) fn config(path: &Path, written: Written) -> Result<Config, String> {
    if written.guest.is_empty() {
        return Err("there are no guests; add a [[guest]] with name, kernel and memory".to_owned());
    }
    if written.guest.len() > limits::GUESTS {
        return Err(format!("there are {} guests; at most {} are possible", written.guest.len(), limits::GUESTS));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut names = HashSet::new();
    let mut guests = Vec::new();
    for written in written.guest {
        let name = written.name.clone();
        if !names.insert(name.clone()) {
            return Err(format!("two guests are called {name:?}; rename one of them"));
        }
        guests.push(guest(folder, written).map_err(|message| format!("guest {name:?}: {message}"))?);
    }
    let host = host(folder, written.host).map_err(|message| format!("[host]: {message}"))?;
    let trusted_keys = trusted_keys(folder, &written.trust).map_err(|message| format!("[trust]: {message}"))?;
    Ok(Config { path: path.to_owned(), host, trusted_keys, guests })
}

fn host(folder: &Path, written: WrittenHost) -> Result<Host, String> {
    if !(1..=MAX_CPUS).contains(&written.cpus) {
        return Err(format!("cpus = {} is not possible; write 1 to {MAX_CPUS}", written.cpus));
    }
    let WrittenHost { cpus, when_done, cmdline, .. } = written;
    let image = match written.image {
        None => Image::Usual,
        Some(path) if path.as_os_str() == NO_IMAGE => Image::None,
        Some(path) => Image::File(file("image", &folder.join(path))?),
    };
    Ok(Host { cpus, memory: size(&written.memory)?, when_done, cmdline, image })
}

fn trusted_keys(folder: &Path, written: &WrittenTrust) -> Result<Vec<PublicKey>, String> {
    let most = limits::TRUSTED_KEYS;
    if written.keys.len() > most {
        return Err(format!("there are {} keys; at most {most} are possible", written.keys.len()));
    }
    written.keys.iter().map(|word| keys::public(word, folder)).collect()
}

fn guest(folder: &Path, written: WrittenGuest) -> Result<Guest, String> {
    check_name(&written.name)?;
    check_numbers(&written)?;
    let file = |key, path: &PathBuf| file(key, &folder.join(path));
    let guest = Guest {
        kernel: file("kernel", &written.kernel)?,
        initrd: written.initrd.as_ref().map(|path| file("initrd", path)).transpose()?,
        modules: written.modules.iter().map(|path| file("module", path)).collect::<Result<_, _>>()?,
        memory: memory(&written.memory)?,
        name: written.name,
        cmdline: written.cmdline,
        vcpus: written.vcpus,
        debug_exit: written.debug_exit,
        weight: written.weight,
        on_panic: written.on_panic,
        hung_s: written.hung_s,
        pmu: written.pmu,
        pmu_events: written.pmu_events.map(|events| pmu_events(&events)).transpose()?,
        autostart: written.autostart,
    };
    check_fit(&guest)?;
    Ok(guest)
}

fn check_name(name: &str) -> Result<(), String> {
    let is_possible = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > limits::GUEST_NAME_BYTES || !name.bytes().all(is_possible) {
        let most = limits::GUEST_NAME_BYTES;
        return Err(format!("the name is not possible; write 1 to {most} letters, digits, '-', '_' and '.'"));
    }
    if name == RESERVED_NAME {
        return Err("the name stands for the host's own lines; choose another".to_owned());
    }
    Ok(())
}

fn check_numbers(written: &WrittenGuest) -> Result<(), String> {
    if !(1..=limits::VCPUS).contains(&written.vcpus) {
        return Err(format!("vcpus = {} is not possible; write 1 to {}", written.vcpus, limits::VCPUS));
    }
    if !(1..=limits::WEIGHT_MOST).contains(&written.weight) {
        return Err(format!("weight = {} is not possible; write 1 to {}", written.weight, limits::WEIGHT_MOST));
    }
    if written.hung_s > limits::HUNG_MOST_S {
        return Err(format!("hung_s = {} is not possible; write 0 to {}", written.hung_s, limits::HUNG_MOST_S));
    }
    if written.modules.len() > limits::MODULES {
        return Err(format!("{} modules; at most {} are possible", written.modules.len(), limits::MODULES));
    }
    if written.cmdline.len() > limits::CMDLINE_BYTES || written.cmdline.contains('\0') {
        return Err(format!("the cmdline is too long or holds a zero; at most {} bytes", limits::CMDLINE_BYTES));
    }
    Ok(())
}

fn pmu_events(written: &[String]) -> Result<Vec<PmuEvent>, String> {
    let most = limits::PMU_EVENTS;
    if written.len() > most {
        return Err(format!("pmu_events names {} events; at most {most} are possible", written.len()));
    }
    written.iter().map(|text| pmu_event(text)).collect()
}

/// Event select and unit mask, hexadecimal: `3c`, `d1:20`.
fn pmu_event(text: &str) -> Result<PmuEvent, String> {
    const MOST_SELECT: u16 = 0xfff;
    let (select, unit) = text.split_once(':').unwrap_or((text, "0"));
    match (u16::from_str_radix(select, 16), u8::from_str_radix(unit, 16)) {
        (Ok(select), Ok(unit)) if select <= MOST_SELECT => Ok(PmuEvent { select, unit }),
        _ => Err(format!("pmu_events: {text:?} is no event; write its number and unit mask, hexadecimal: \"d1:20\"")),
    }
}

fn size(text: &str) -> Result<Size, String> {
    text.parse().map_err(|error| format!("memory = {error}"))
}

/// A guest's memory.
fn memory(text: &str) -> Result<Size, String> {
    let size = size(text)?;
    let is_whole = size.bytes.is_multiple_of(limits::MEMORY_GRANULE_BYTES);
    if !is_whole || !(limits::MEMORY_LEAST_BYTES..=limits::MEMORY_MOST_BYTES).contains(&size.bytes) {
        return Err(format!("memory = {text:?} is not possible; write whole MiB, from 1MiB to 128TiB"));
    }
    Ok(size)
}

/// A file that can be read.
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

/// A suggestion from the same folder, or the advice to correct the path.
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
fn check_fit(guest: &Guest) -> Result<(), String> {
    let files = [&guest.kernel].into_iter().chain(&guest.initrd).chain(&guest.modules);
    let bytes: u64 = files.map(|path| fs::metadata(path).map_or(0, |metadata| metadata.len())).sum();
    if bytes < guest.memory.bytes {
        return Ok(());
    }
    let what = if guest.initrd.is_some() { "kernel and initrd are" } else { "its files are" };
    let enough = Size::mebibytes((bytes * 2).div_ceil(1 << 20));
    let (files, memory) = (Size { bytes }, guest.memory);
    Err(format!("{what} larger ({files}) than its memory ({memory}); raise memory, to {enough} or more"))
}
