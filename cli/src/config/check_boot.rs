// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel that a guest starts: `boot` and `drivers`.

use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::read::{Section, path, text};
use super::{Boot, Guest};

const KERNEL: &str = "kernel";
const DISK: &str = "disk";
/// The file that each folder of a release's modules has.
const BUILT_IN: &str = "modules.builtin";

/// The word of `boot`.
enum Wanted {
    Kernel,
    Disk(Option<String>),
}

/// Reads both keys.
pub(super) fn boot(folder: &Path, section: &mut Section<'_, '_>) -> Boot {
    let wanted = section.placed("boot", wanted);
    let is_without_drivers = !section.has("drivers");
    let drivers = section.placed("drivers", path);
    match (wanted, drivers) {
        (Some((Wanted::Disk(serial), at)), drivers) => {
            let drivers = drivers.and_then(|(path, at)| release(section, &folder.join(path), at));
            if is_without_drivers {
                let hint = "add drivers = \"/lib/modules/RELEASE\", of the release of its kernel";
                section.complain(Some(at), format_args!("boot = \"disk\" needs drivers of disks; {hint}"));
            }
            Boot::Disk { drivers: drivers.unwrap_or_default(), serial }
        }
        (_, Some((_, at))) => {
            section.complain(Some(at), "drivers are for boot = \"disk\"; remove the key, or add that one");
            Boot::Kernel
        }
        _ => Boot::Kernel,
    }
}

/// Checks that a guest that starts from a disk has one, and neither initrd nor modules of its own.
pub(super) fn check(section: &Section<'_, '_>, guest: &Guest, has_disks: bool) {
    if guest.boot == Boot::Kernel {
        return;
    }
    if guest.initrd.is_some() || !guest.modules.is_empty() {
        section.complain(None, "boot = \"disk\" takes the initial RAM disk from the disk; remove initrd and modules");
    }
    if !has_disks && guest.functions.is_empty() {
        section.complain(None, "boot = \"disk\", and it has no disk; add a [[guest.disk]], or an NVMe to devices");
    }
}

/// `kernel`, `disk`, or `disk:SERIAL`.
fn wanted(value: &DeValue<'_>) -> Result<Wanted, String> {
    let word = text(value)?;
    match word.split_once(':') {
        None if word == KERNEL => Ok(Wanted::Kernel),
        None if word == DISK => Ok(Wanted::Disk(None)),
        Some((DISK, serial)) if is_serial(serial) => Ok(Wanted::Disk(Some(serial.to_owned()))),
        _ => Err(format!("= {word:?} is not possible; write \"kernel\", \"disk\", or \"disk:\" and its serial number")),
    }
}

/// Returns whether a serial number can be a word of a kernel's command line.
fn is_serial(serial: &str) -> bool {
    !serial.is_empty() && serial.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"')
}

/// Returns the folder of a release's modules, if it is one.
fn release(section: &Section<'_, '_>, folder: &Path, at: usize) -> Option<PathBuf> {
    if folder.join(BUILT_IN).is_file() {
        return Some(folder.to_owned());
    }
    let hint = "give the folder of one release, as \"/lib/modules/6.1.0-57-amd64\"";
    section.complain(Some(at), format_args!("drivers {:?} has no {BUILT_IN}; {hint}", folder.display()));
    None
}
