// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of `[[guest.disk]]` and their possible values.

use bundle::{DiskConfig, DiskLimits, VsockConfig, limits};
use toml::de::DeValue;

use super::check_sockets::Sockets;
use super::read::{Section, flag, number, rate, text};
use crate::suggest::did_you_mean;

/// The default port of the protocol's servers.
pub(super) const USUAL_PORT: u32 = 10_809;
/// The time within which a storage guest that restarts is back.
pub(super) const USUAL_TIMEOUT_S: u32 = 60;
/// The value of `cache` for a volatile one.
const WRITE_BACK: &str = "writeback";

/// The disks of the guests, in the file's order.
#[derive(Default)]
pub(super) struct Disks {
    guests: Vec<(String, Vec<Wanted>)>,
}

/// A disk with a server that is not known yet.
struct Wanted {
    number: usize,
    at: usize,
    server: String,
    disk: DiskConfig,
}

impl Disks {
    /// Reads the disks of the next guest; those with mistakes are left out.
    pub fn note(&mut self, guest: &Section<'_, '_>, owner: &str, sections: Vec<Section<'_, '_>>) {
        let (count, most) = (sections.len(), limits::DISKS);
        if count > most {
            guest.complain(None, format_args!("there are {count} disks; at most {most} are possible"));
        }
        let numbered = (1..).zip(sections);
        let wanted = numbered.filter_map(|(number, section)| wanted(owner, number, section)).collect();
        self.guests.push((owner.to_owned(), wanted));
    }

    /// Returns the disks of each guest, once all guests' sockets are known.
    pub fn assign(
        self,
        root: &Section<'_, '_>,
        sockets: &Sockets,
        configs: &[Option<VsockConfig>],
    ) -> Vec<Vec<DiskConfig>> {
        let others: Vec<_> = sockets.all(configs).collect();
        let assigned = |(owner, wanted): (String, Vec<Wanted>)| {
            let with_server = |wanted: Wanted| match server(&owner, &wanted.server, &others) {
                Ok(cid) => Some(DiskConfig { cid, ..wanted.disk }),
                Err(message) => {
                    let label = format!("guest {owner:?}: [[guest.disk]] {}", wanted.number);
                    root.complain(Some(wanted.at), format_args!("{label}: nbd: {message}"));
                    None
                }
            };
            wanted.into_iter().filter_map(with_server).collect()
        };
        self.guests.into_iter().map(assigned).collect()
    }
}

fn wanted(owner: &str, number: usize, mut section: Section<'_, '_>) -> Option<Wanted> {
    section.set_label(format!("guest {owner:?}: [[guest.disk]] {number}: "));
    let nbd = section.required("nbd", place);
    let disk = DiskConfig {
        cid: 0,
        export: String::new(),
        port: section.optional("port", self::number(limits::PORTS_OF_SERVERS)).unwrap_or(USUAL_PORT),
        is_read_only: section.optional("read-only", flag).unwrap_or(false),
        is_write_back: section.optional("cache", cache).unwrap_or(false),
        timeout_s: section.optional("timeout", self::number(limits::DISK_TIMEOUTS_S)).unwrap_or(USUAL_TIMEOUT_S),
        serial: section.optional("serial", serial).unwrap_or_default(),
        limits: DiskLimits {
            requests_per_s: section.optional("iops", self::number(1..=u32::MAX)),
            bytes_per_s: section.optional("rate", rate),
        },
    };
    section.finish();
    let ((server, export), at) = nbd?;
    Some(Wanted { number, at, server, disk: DiskConfig { export, ..disk } })
}

/// Returns the identifier of the guest that a disk's server is in.
fn server(owner: &str, name: &str, guests: &[(&str, Option<u32>)]) -> Result<u32, String> {
    let Some((_, cid)) = guests.iter().find(|(other, _)| *other == name) else {
        let suggestion = did_you_mean(name, guests.iter().map(|(name, _)| *name));
        let hint = if suggestion.is_empty() { "; add a [[guest]] with this name" } else { suggestion.as_str() };
        return Err(format!("there is no guest {name:?}{hint}"));
    };
    if name == owner {
        return Err("a guest's own server cannot be its disk's; name another guest".to_owned());
    }
    cid.ok_or_else(|| format!("the guest {name:?} has no sockets; add `vsock = true` to it"))
}

/// Parses a guest, and the name of its server's export, which may be empty.
fn place(value: &DeValue<'_>) -> Result<(String, String), String> {
    let (written, most) = (text(value)?, limits::EXPORT_BYTES);
    let Some((server, export)) = written.split_once(':').filter(|(server, _)| !server.is_empty()) else {
        return Err(format!("= {written:?} names no export; write \"GUEST:EXPORT\", as \"storage:web-root\""));
    };
    if export.len() > most {
        return Err(format!("names an export of {} bytes; at most {most} are possible", export.len()));
    }
    Ok((server.to_owned(), export.to_owned()))
}

fn cache(value: &DeValue<'_>) -> Result<bool, String> {
    match text(value)? {
        word if word == WRITE_BACK => Ok(true),
        word => Err(format!("= {word:?} is not possible; write \"writeback\", or leave it out for none")),
    }
}

fn serial(value: &DeValue<'_>) -> Result<String, String> {
    let (serial, most) = (text(value)?, limits::DISK_SERIAL_BYTES);
    match serial.len() <= most && serial.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(serial),
        false => Err(format!("= {serial:?} is not possible; write up to {most} printable characters without blanks")),
    }
}
