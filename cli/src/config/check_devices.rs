// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of `[[host.device]]` and their possible values.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::de::DeValue;

use super::check::existing;
use super::devices::{Address, Backend, Device, Model, Network, Nvme, Storage};
use super::read::{self, Section, choice, list, mac, path, size, text};
use crate::size::Size;

/// The most devices: each has a slot of the first bus to itself, and 4 KiB of the 64 KiB of I/O ports.
const MAX_DEVICES: usize = 12;
/// The length of the field in the controller's answer to Identify (NVM Express base specification 1.4, figure 247).
const MAX_SERIAL_BYTES: usize = 20;
/// The most virtual functions of the emulator's NVMe controller.
const MAX_VIRTUAL_FUNCTIONS: u32 = 127;
/// The most characters of an interface's name (IFNAMSIZ with its terminating zero is 16).
const MAX_INTERFACE_BYTES: usize = 15;
/// The least and the most bytes of a temporary disk.
const LEAST_DISK: Size = Size::mebibytes(1);
const MOST_DISK: Size = Size::mebibytes(1 << 20);

/// The kinds of devices, in the file's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Nvme,
    E1000e,
    Igb,
    VirtioNet,
    Edu,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BackendKind {
    #[default]
    User,
    Socket,
    Tap,
}

/// Every key of a network card's backends.
const BACKEND_KEYS: [&str; 6] = ["forward", "listen", "connect", "local", "remote", "interface"];
/// Every key of a device beside its kind.
const ALL_KEYS: [&str; 12] =
    ["file", "size", "serial", "vfs", "backend", "mac", "forward", "listen", "connect", "local", "remote", "interface"];

/// Names and resources that devices may not share.
#[derive(Default)]
struct Taken {
    files: HashSet<PathBuf>,
    serials: HashSet<String>,
    macs: HashSet<[u8; 6]>,
}

/// Reads the devices of the machine; those with mistakes are left out.
pub(super) fn devices(folder: &Path, host: &Section<'_, '_>, sections: Vec<Section<'_, '_>>) -> Vec<Device> {
    if sections.len() > MAX_DEVICES {
        let count = sections.len();
        host.complain(None, format_args!("there are {count} devices; at most {MAX_DEVICES} are possible"));
    }
    let mut taken = Taken::default();
    let numbered = sections.into_iter().enumerate();
    numbered.filter_map(|(index, section)| device(folder, index + 1, section, &mut taken)).collect()
}

fn device(folder: &Path, number: usize, mut section: Section<'_, '_>, taken: &mut Taken) -> Option<Device> {
    section.set_label(format!("[[host.device]] {number}: "));
    let kind = section.required("kind", choice::<Kind>).map(|(kind, _)| kind);
    let device = match kind {
        Some(Kind::Nvme) => nvme(folder, number, &mut section, taken).map(Device::Nvme),
        Some(Kind::E1000e) => network(folder, Model::E1000e, &mut section, taken).map(Device::Network),
        Some(Kind::Igb) => network(folder, Model::Igb, &mut section, taken).map(Device::Network),
        Some(Kind::VirtioNet) => network(folder, Model::VirtioNet, &mut section, taken).map(Device::Network),
        Some(Kind::Edu) => Some(Device::Edu),
        None => {
            section.know(&ALL_KEYS);
            None
        }
    };
    section.finish();
    device
}

fn nvme(folder: &Path, number: usize, section: &mut Section<'_, '_>, taken: &mut Taken) -> Option<Nvme> {
    let has_content = section.has("file") || section.has("size");
    let (file, size) = (section.placed("file", path), section.placed("size", disk_size));
    if !has_content {
        section.complain(None, "the disk has no content; add file = \"…\", or size = \"…\" for a temporary one");
    }
    let storage = match (file, size) {
        (Some(_), Some((_, at))) => {
            section.complain(Some(at), "a disk has a file or a size; remove one of them");
            None
        }
        (Some((path, at)), None) => disk_image(section, &folder.join(path), at, taken).map(Storage::File),
        (None, size) => size.map(|(size, _)| Storage::Temporary(size)),
    };
    let serial = serial(number, section, taken);
    let virtual_functions = section.optional("vfs", read::number(0..=MAX_VIRTUAL_FUNCTIONS)).unwrap_or(0);
    Some(Nvme { storage: storage?, serial, virtual_functions })
}

/// Returns a raw image that no other disk uses: the emulator writes to it.
fn disk_image(section: &Section<'_, '_>, path: &Path, at: usize, taken: &mut Taken) -> Option<PathBuf> {
    let file = existing(section, "file", path, at)?;
    if fs::metadata(&file).is_ok_and(|metadata| metadata.len() == 0) {
        let hint = "give it a size: truncate -s 64M FILE";
        section.complain(Some(at), format_args!("the file {:?} is empty; {hint}", file.display()));
    }
    if !taken.files.insert(fs::canonicalize(&file).unwrap_or_else(|_| file.clone())) {
        section.complain(Some(at), format_args!("another disk has the file {:?}; make a copy", file.display()));
    }
    Some(file)
}

fn serial(number: usize, section: &mut Section<'_, '_>, taken: &mut Taken) -> String {
    let written = section.placed("serial", serial_number);
    let (serial, at) = written.map_or((format!("baton-{number}"), None), |(serial, at)| (serial, Some(at)));
    if !taken.serials.insert(serial.clone()) {
        section.complain(at, format_args!("another disk has the serial number {serial:?}; choose another"));
    }
    serial
}

fn network(folder: &Path, model: Model, section: &mut Section<'_, '_>, taken: &mut Taken) -> Option<Network> {
    let kind = section.required("backend", choice::<BackendKind>).map(|(kind, _)| kind);
    let mac = section.placed("mac", mac);
    if let Some((_, at)) = mac.as_ref().filter(|(mac, _)| !taken.macs.insert(mac.0)) {
        section.complain(Some(*at), "another card has the same MAC address; change one of them");
    }
    let backend = match kind {
        Some(BackendKind::User) => {
            Some(Backend::User { forward: section.optional("forward", forward_rules).unwrap_or_default() })
        }
        Some(BackendKind::Socket) => socket(folder, section),
        Some(BackendKind::Tap) => section.required("interface", interface).map(|(name, _)| Backend::Tap(name)),
        None => {
            section.know(&BACKEND_KEYS);
            None
        }
    };
    Some(Network { model, backend: backend?, mac: mac.map(|(mac, _)| mac) })
}

fn socket(folder: &Path, section: &mut Section<'_, '_>) -> Option<Backend> {
    let keys = ["listen", "connect", "local", "remote"];
    let is_written = keys.map(|key| section.has(key));
    let [listen, connect, local, remote] = keys.map(|key| section.optional(key, |value| address(folder, value)));
    match is_written {
        [true, false, false, false] => listen.map(Backend::Listen),
        [false, true, false, false] => connect.map(Backend::Connect),
        [false, false, true, true] => Some(Backend::Datagrams { local: local?, remote: remote? }),
        _ => {
            section
                .complain(None, "a socket has listen, or connect, or local and remote (datagrams); write one of these");
            None
        }
    }
}

/// `HOST:PORT`, or a path with a `/` in it, relative to `folder`.
fn address(folder: &Path, value: &DeValue<'_>) -> Result<Address, String> {
    let text = text(value)?;
    if text.contains('/') {
        return Ok(Address::Unix(folder.join(text)));
    }
    let inet = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    match inet {
        Some((host, port)) if !host.is_empty() && port != 0 => {
            let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
            Ok(Address::Inet(host.to_owned(), port))
        }
        _ => Err(format!("= {text:?} is no address; write HOST:PORT, or the path of a Unix socket with a \"/\"")),
    }
}

fn forward_rules(value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let rules = list(text)(value)?;
    match rules.iter().find(|rule| !is_forward_rule(rule)) {
        None => Ok(rules),
        Some(rule) => Err(format!("= {rule:?} is no rule; write one as \"tcp:127.0.0.1:2222-:22\"")),
    }
}

/// `tcp|udp:[HOST]:PORT-[GUEST]:PORT`.
fn is_forward_rule(rule: &str) -> bool {
    let is_address = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_end = |text: &str| {
        let parts = text.split_once(':');
        parts.is_some_and(|(address, port)| is_address(address) && port.parse::<u16>().is_ok_and(|port| port != 0))
    };
    let ends = rule.strip_prefix("tcp:").or_else(|| rule.strip_prefix("udp:")).and_then(|rest| rest.split_once('-'));
    ends.is_some_and(|(host, guest)| is_end(host) && is_end(guest))
}

fn interface(value: &DeValue<'_>) -> Result<String, String> {
    let name = text(value)?;
    let is_possible = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > MAX_INTERFACE_BYTES || !name.bytes().all(is_possible) {
        return Err(format!(
            "= {name:?} is no interface; write 1 to {MAX_INTERFACE_BYTES} letters, digits, -, _ and ."
        ));
    }
    Ok(name)
}

fn serial_number(value: &DeValue<'_>) -> Result<String, String> {
    let serial = text(value)?;
    let is_possible = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if serial.is_empty() || serial.len() > MAX_SERIAL_BYTES || !serial.bytes().all(is_possible) {
        return Err(format!("= {serial:?} is not possible; write 1 to {MAX_SERIAL_BYTES} letters, digits, -, _ and ."));
    }
    Ok(serial)
}

fn disk_size(value: &DeValue<'_>) -> Result<Size, String> {
    let size = size(value)?;
    match (LEAST_DISK..=MOST_DISK).contains(&size) && size.bytes.is_multiple_of(LEAST_DISK.bytes) {
        true => Ok(size),
        false => Err(format!("= \"{size}\" is not possible; write whole MiB, from 1MiB to 1TiB")),
    }
}
