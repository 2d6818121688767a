// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a manifest's settings are possible at all. Checks that depend on the machine (enough memory, enough
//! CPUs) and on the files (a valid kernel) are the host's, guest by guest.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::control::{ControlKeyConfig, ControlRole};
use crate::error::Problem;
use crate::guest::GuestConfig;
use crate::limits;
use crate::manifest::Manifest;
use crate::network::{NetworkConfig, NicConfig};

/// Checks counts, names and numbers.
pub(crate) fn manifest(manifest: &Manifest) -> Result<(), Problem> {
    if manifest.files.len() > limits::FILES {
        return Err(Problem::TooManyFiles);
    }
    if manifest.host.trusted_keys.len() > limits::TRUSTED_KEYS {
        return Err(Problem::TooManyKeys);
    }
    if manifest.guests.len() > limits::GUESTS {
        return Err(Problem::TooManyGuests);
    }
    let mut names = BTreeSet::new();
    for guest in &manifest.guests {
        let bad = |reason| Problem::BadGuest { guest: guest.name.clone(), reason };
        self::guest(guest).map_err(bad)?;
        if !names.insert(&guest.name) {
            return Err(bad("stands twice"));
        }
    }
    control_keys(&manifest.host.control_keys)?;
    uuids(manifest)?;
    networks(manifest)?;
    sockets(manifest)?;
    disks(manifest)
}

/// Checks number, names and identifiers of the keys.
fn control_keys(keys: &[ControlKeyConfig]) -> Result<(), Problem> {
    if keys.len() > limits::CONTROL_KEYS {
        return Err(Problem::TooManyKeys);
    }
    for (number, key) in keys.iter().enumerate() {
        let bad = |reason| Err(Problem::BadControlKey { key: key.name.clone(), reason });
        if !is_name(&key.name, limits::GUEST_NAME_BYTES) {
            return bad("has a bad name: 1 to 32 letters, digits, '-', '_' and '.' are possible");
        }
        let before = &keys[..number];
        if before.iter().any(|other| other.name == key.name) {
            return bad("has the name of another one");
        }
        if before.iter().any(|other| other.key[..8] == key.key[..8]) {
            return bad("stands twice");
        }
    }
    Ok(())
}

/// Checks that each disk's server is another guest with sockets, and its numbers and names.
fn disks(manifest: &Manifest) -> Result<(), Problem> {
    for guest in &manifest.guests {
        let bad = |reason| Err(Problem::BadGuest { guest: guest.name.clone(), reason });
        if guest.disks.len() > limits::DISKS {
            return bad("has too many disks: 4 are possible");
        }
        for disk in &guest.disks {
            let is_server = |other: &GuestConfig| other.vsock.as_ref().is_some_and(|vsock| vsock.cid == disk.cid);
            if !manifest.guests.iter().any(|other| other.name != guest.name && is_server(other)) {
                return bad("has a disk whose server is no other guest with sockets");
            }
            if !limits::PORTS_OF_SERVERS.contains(&disk.port) {
                return bad("has a disk at a port that is reserved: 1 to 4294967294 are possible");
            }
            if disk.export.len() > limits::EXPORT_BYTES || disk.serial.len() > limits::DISK_SERIAL_BYTES {
                return bad(
                    "has a disk whose names are too long: 128 bytes of the export's and 20 of its serial number",
                );
            }
            if !limits::DISK_TIMEOUTS_S.contains(&disk.timeout_s) {
                return bad("has a disk with a bad timeout: 1 to 3600 seconds are possible");
            }
            if disk.limits.requests_per_s == Some(0) || disk.limits.bytes_per_s == Some(0) {
                return bad("has a disk that may do nothing: leave a limit out for none");
            }
        }
    }
    Ok(())
}

/// Checks that no two guests are given one UUID.
fn uuids(manifest: &Manifest) -> Result<(), Problem> {
    for (number, guest) in manifest.guests.iter().enumerate() {
        let Some(uuid) = guest.smbios.uuid() else { continue };
        if manifest.guests[..number].iter().any(|other| other.smbios.uuid() == Some(uuid)) {
            return Err(Problem::BadGuest { guest: guest.name.clone(), reason: "has the UUID of another guest" });
        }
    }
    Ok(())
}

/// Checks that each guest's sockets have an identifier of their own, and reach guests that have one, too.
fn sockets(manifest: &Manifest) -> Result<(), Problem> {
    let all = || manifest.guests.iter().filter_map(|guest| Some((guest, guest.vsock.as_ref()?)));
    if all().filter(|(_, vsock)| vsock.control.is_some()).count() > limits::CONTROL_GUESTS {
        return Err(Problem::TooManyControlGuests);
    }
    for (guest, vsock) in all() {
        let bad = |reason| Err(Problem::BadGuest { guest: guest.name.clone(), reason });
        if !limits::CIDS.contains(&vsock.cid) {
            return bad("has a context identifier that is reserved: 3 to 4294967294 are possible");
        }
        if all().filter(|(_, other)| other.cid == vsock.cid).count() > 1 {
            return bad("has the context identifier of another guest");
        }
        if vsock.peers.len() > limits::GUESTS {
            return bad("has too many peers: 64 are possible");
        }
        if vsock.control.is_some_and(|control| control.role == ControlRole::Revoked) {
            return bad("may control the host in the role of a revoked key: read, operate and update are possible");
        }
        let is_other = |cid: &u32| *cid != vsock.cid && all().any(|(_, other)| other.cid == *cid);
        if !vsock.peers.iter().all(is_other) {
            return bad("has a peer that is no other guest with sockets");
        }
    }
    Ok(())
}

/// Checks the networks, and that each network device can be on its own.
fn networks(manifest: &Manifest) -> Result<(), Problem> {
    let networks = &manifest.host.networks;
    if networks.len() > limits::NETWORKS {
        return Err(Problem::TooManyNetworks);
    }
    for (number, network) in networks.iter().enumerate() {
        let bad = |reason| Problem::BadNetwork { network: network.name.clone(), reason };
        if !is_name(&network.name, limits::NETWORK_NAME_BYTES) {
            return Err(bad("has a bad name: 1 to 32 letters, digits, '-', '_' and '.' are possible"));
        }
        if !limits::MTU.contains(&network.mtu) {
            return Err(bad("has a bad MTU: 68 to 65535 are possible"));
        }
        if networks[..number].iter().any(|other| other.name == network.name) {
            return Err(bad("stands twice"));
        }
    }
    let (mut addresses, mut ports) = (Vec::new(), [0; limits::NETWORKS]);
    for guest in &manifest.guests {
        let bad = |reason| Problem::BadGuest { guest: guest.name.clone(), reason };
        if guest.nics.len() > limits::NICS {
            return Err(bad("has too many network devices: 8 are possible"));
        }
        for nic in &guest.nics {
            let network = networks.get(nic.network as usize).ok_or(bad("is on a network that does not exist"))?;
            self::nic(nic, network).map_err(bad)?;
            if addresses.contains(&(nic.network, nic.mac)) {
                return Err(bad("has the MAC address of another network device on its network"));
            }
            addresses.push((nic.network, nic.mac));
            let ports = &mut ports[nic.network as usize];
            *ports += 1;
            if *ports > limits::PORTS {
                return Err(bad("is on a network that has too many devices: 64 are possible"));
            }
        }
    }
    Ok(())
}

fn nic(nic: &NicConfig, network: &NetworkConfig) -> Result<(), &'static str> {
    const GROUP: u8 = 1;
    if nic.mac[0] & GROUP != 0 || nic.mac == [0; 6] {
        return Err("has a network device with the MAC address of no station");
    }
    if nic.mtu < *limits::MTU.start() || nic.mtu > network.mtu {
        return Err("has a network device with a bad MTU: 68 up to its network's are possible");
    }
    let vlans = nic.vlans.all();
    if vlans.is_empty() || vlans.len() > limits::VLANS || vlans.iter().any(|vlan| *vlan > limits::VLAN_MOST) {
        return Err("has a network device with bad VLANs: 1 to 64 up to 4094 are possible");
    }
    if nic.rate_bytes_per_s == Some(0) {
        return Err("has a network device with a rate of 0");
    }
    if !(1..=limits::QUEUE_PAIRS).contains(&nic.queue_pairs) {
        return Err("has a network device with bad pairs of queues: 1 to 16 are possible");
    }
    Ok(())
}

pub(crate) fn guest(guest: &GuestConfig) -> Result<(), &'static str> {
    if !is_name(&guest.name, limits::GUEST_NAME_BYTES) {
        return Err("has a bad name: 1 to 32 letters, digits, '-', '_' and '.' are possible");
    }
    if guest.cmdline.len() > limits::CMDLINE_BYTES || guest.cmdline.contains('\0') {
        return Err("has a bad command line: at most 4095 bytes without zeroes are possible");
    }
    if guest.modules.len() > limits::MODULES {
        return Err("has too many modules: 16 are possible");
    }
    if !(1..=limits::VCPUS).contains(&guest.vcpus) {
        return Err("has a bad number of CPUs: 1 to 512 are possible");
    }
    if !(1..=limits::WEIGHT_MOST).contains(&guest.weight) {
        return Err("has a bad weight: 1 to 1024 are possible");
    }
    if guest.cap_percent > limits::CAP_MOST {
        return Err("has a bad cap: up to 51200 percent of a CPU are possible");
    }
    if guest.pmu_events.as_ref().is_some_and(|events| events.len() > limits::PMU_EVENTS) {
        return Err("names too many events for its performance counters: 16 are possible");
    }
    if guest.functions.len() > limits::FUNCTIONS {
        return Err("gets too many PCI functions: 16 are possible");
    }
    if guest.functions.iter().any(|function| function.selector.len() > limits::SELECTOR_BYTES) {
        return Err("gets a PCI function whose selector is too long: 64 bytes are possible");
    }
    if guest.functions.iter().any(|function| function.virtual_functions > limits::VIRTUAL_FUNCTIONS) {
        return Err("gets too many virtual functions of a PCI function: 7 are possible");
    }
    guest.smbios.check()?;
    let is_whole = guest.memory_bytes.is_multiple_of(limits::MEMORY_GRANULE_BYTES);
    if !is_whole || !(limits::MEMORY_LEAST_BYTES..=limits::MEMORY_MOST_BYTES).contains(&guest.memory_bytes) {
        return Err("has a bad size of memory: a multiple of 1 MiB up to 128 TiB is possible");
    }
    on_demand(guest)
}

/// Checks memory on demand.
fn on_demand(guest: &GuestConfig) -> Result<(), &'static str> {
    let Some(assured_bytes) = guest.assured_bytes else { return Ok(()) };
    let is_whole = [assured_bytes, guest.memory_bytes].iter().all(|bytes| bytes.is_multiple_of(limits::BLOCK_BYTES));
    if !is_whole || !(limits::MEMORY_LEAST_BYTES..=guest.memory_bytes).contains(&assured_bytes) {
        return Err("has bad sizes of memory on demand: multiples of 2 MiB, the assured one not above the other");
    }
    if !guest.functions.is_empty() {
        return Err("has memory on demand and PCI functions, which reach all of its memory at any time");
    }
    Ok(())
}

fn is_name(name: &str, most_bytes: usize) -> bool {
    let is_possible = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=most_bytes).contains(&name.len()) && name.bytes().all(is_possible)
}
