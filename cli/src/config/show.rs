// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host's configuration as a `host.toml`. Keys with their default values are left out, as are those of the
//! lab's machine, which no host knows.

use std::fmt::{Display, Write as _};

use bundle::{
    AssignedConfig, ControlRights, CpuModel, DiskConfig, GuestConfig, GuestControl, Manifest, NicConfig, NicVlans,
    OnPanic, Pmu, VirtioDevices,
};
use seal::PublicKey;
use serde::Serialize;
use switch::Mac;

use super::check::{USUAL_HUNG_S, USUAL_WEIGHT};
use super::check_disks::{USUAL_PORT, USUAL_TIMEOUT_S};
use super::check_networks::usual_queue_pairs;

/// Returns the configuration as a `host.toml`; files are named as the host has them.
pub fn host_toml(manifest: &Manifest) -> String {
    let mut text = Text::default();
    text.line("# The configuration of a host that runs. Files are named as the host has them.");
    text.line("[host]");
    text.key("when_done", word(&manifest.host.when_done));
    text.key("image", quoted(manifest.host.image.as_deref().unwrap_or("none")));
    trust(&mut text, manifest);
    for network in &manifest.host.networks {
        text.line("\n[[network]]");
        text.key("name", quoted(&network.name));
        text.key("mtu", network.mtu);
    }
    manifest.guests.iter().for_each(|one| guest(&mut text, one, manifest));
    text.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, line: impl Display) {
        // A String takes everything.
        let _ = writeln!(self.0, "{line}");
    }

    fn key(&mut self, key: &str, value: impl Display) {
        self.line(format_args!("{key} = {value}"));
    }

    /// Writes a key unless its value is the default.
    fn unusual<T: PartialEq>(&mut self, key: &str, value: T, usual: T, shown: impl FnOnce(T) -> String) {
        if value != usual {
            self.key(key, shown(value));
        }
    }
}

fn trust(text: &mut Text, manifest: &Manifest) {
    let host = &manifest.host;
    if host.trusted_keys.is_empty() && host.allow_downgrade.is_none() && host.control_keys.is_empty() {
        return;
    }
    text.line("\n[trust]");
    let public = |key: [u8; 32]| quoted(&PublicKey::from_bytes(key).to_string());
    text.key("keys", list(host.trusted_keys.iter().map(|key| public(*key))));
    host.allow_downgrade.iter().for_each(|allow| text.key("allow_downgrade", allow));
    text.unusual("serial", host.is_serial_open, false, |_| quoted("open"));
    for key in &host.control_keys {
        text.line("\n[[trust.control]]");
        text.key("name", quoted(&key.name));
        text.key("key", public(key.key));
        text.key("role", word(&key.role));
    }
}

fn guest(text: &mut Text, guest: &GuestConfig, manifest: &Manifest) {
    text.line("\n[[guest]]");
    text.key("name", quoted(&guest.name));
    text.key("kernel", quoted(&guest.kernel));
    guest.initrd.iter().for_each(|initrd| text.key("initrd", quoted(initrd)));
    if !guest.modules.is_empty() {
        text.key("modules", list(guest.modules.iter().map(|name| quoted(name))));
    }
    text.unusual("cmdline", guest.cmdline.as_str(), "", quoted);
    text.key("memory", size(guest.assured_bytes.unwrap_or(guest.memory_bytes)));
    if guest.assured_bytes.is_some() {
        text.key("memory_max", size(guest.memory_bytes));
    }
    text.key("vcpus", guest.vcpus);
    text.unusual("weight", guest.weight, USUAL_WEIGHT, |weight| weight.to_string());
    text.unusual("cap", guest.cap_percent, 0, |percent| percent.to_string());
    text.unusual("on_panic", guest.on_panic, OnPanic::default(), |action| quoted(action.word()));
    text.unusual("hung_s", guest.hung_s, USUAL_HUNG_S, |seconds| seconds.to_string());
    text.unusual("autostart", guest.autostart, true, |flag| flag.to_string());
    text.unusual("debug_exit", guest.devices.debug_exit, false, |flag| flag.to_string());
    text.unusual("pmu", guest.pmu, Pmu::default(), |pmu| word(&pmu));
    if let Some(events) = &guest.pmu_events {
        let event = |event: &bundle::PmuEvent| quoted(&format!("{:x}:{:x}", event.select, event.unit));
        text.key("pmu_events", list(events.iter().map(event)));
    }
    text.unusual("cpu", guest.cpu, CpuModel::default(), |cpu| word(&cpu));
    text.unusual("paravirtual", guest.is_paravirtual, false, |flag| flag.to_string());
    let VirtioDevices { rng, console } = guest.virtio;
    text.unusual("rng", rng, false, |flag| flag.to_string());
    text.unusual("virtio_console", console, false, |flag| flag.to_string());
    smbios(text, guest);
    if !guest.functions.is_empty() {
        text.key("devices", list(guest.functions.iter().map(function)));
    }
    sockets(text, guest, manifest);
    guest.nics.iter().for_each(|one| nic(text, one, guest.vcpus, manifest));
    guest.disks.iter().for_each(|one| disk(text, one, manifest));
}

fn smbios(text: &mut Text, guest: &GuestConfig) {
    guest.smbios.uuid().iter().for_each(|uuid| text.key("uuid", quoted(&uuid.to_string())));
    guest.smbios.serial().iter().for_each(|serial| text.key("serial", quoted(serial)));
    if guest.smbios.oem_strings().next().is_some() {
        text.key("oem_strings", list(guest.smbios.oem_strings().map(quoted)));
    }
}

fn function(function: &AssignedConfig) -> String {
    let mut keys = vec![format!("function = {}", quoted(&function.selector))];
    keys.extend(function.without_reset.then(|| "reset = \"none\"".to_owned()));
    keys.extend(function.gsi.map(|gsi| format!("gsi = {gsi}")));
    keys.extend((function.virtual_functions > 0).then(|| format!("sriov = {}", function.virtual_functions)));
    format!("{{ {} }}", keys.join(", "))
}

/// Returns the guest that has the sockets of this identifier.
fn with_cid(manifest: &Manifest, cid: u32) -> &str {
    let is_it = |guest: &&GuestConfig| guest.vsock.as_ref().is_some_and(|vsock| vsock.cid == cid);
    manifest.guests.iter().find(is_it).map_or("", |guest| &guest.name)
}

fn sockets(text: &mut Text, guest: &GuestConfig, manifest: &Manifest) {
    let Some(vsock) = &guest.vsock else { return };
    let peers = list(vsock.peers.iter().map(|cid| quoted(with_cid(manifest, *cid))));
    let mut keys = vec![format!("cid = {}", vsock.cid), format!("peers = {peers}")];
    if let Some(GuestControl { role, rights: ControlRights { console, dump, devices } }) = vsock.control {
        keys.push(format!("control = {}", word(&role)));
        let rights = [(console, "console"), (dump, "dump"), (devices, "devices")];
        let has: Vec<String> = rights.iter().filter(|(has, _)| *has).map(|(_, right)| quoted(right)).collect();
        keys.extend((!has.is_empty()).then(|| format!("rights = {}", list(has.into_iter()))));
    }
    text.key("vsock", format_args!("{{ {} }}", keys.join(", ")));
}

fn nic(text: &mut Text, nic: &NicConfig, vcpus: u32, manifest: &Manifest) {
    let network = manifest.host.networks.get(nic.network as usize);
    text.line("\n[[guest.nic]]");
    text.key("network", quoted(network.map_or("", |network| &network.name)));
    text.key("mac", quoted(&Mac(nic.mac).to_string()));
    text.key("mtu", nic.mtu);
    match &nic.vlans {
        NicVlans::Access(0) => {}
        NicVlans::Access(vlan) => text.key("vlan", vlan),
        NicVlans::Trunk(vlans) => text.key("vlan", list(vlans.iter().map(u16::to_string))),
    }
    text.unusual("isolated", nic.is_isolated, false, |flag| flag.to_string());
    text.unusual("trusted", nic.is_trusted, false, |flag| flag.to_string());
    nic.rate_bytes_per_s.iter().for_each(|bytes| text.key("rate", rate(*bytes)));
    text.unusual("queues", nic.queue_pairs, usual_queue_pairs(vcpus), |pairs| pairs.to_string());
}

fn disk(text: &mut Text, disk: &DiskConfig, manifest: &Manifest) {
    text.line("\n[[guest.disk]]");
    text.key("nbd", quoted(&format!("{}:{}", with_cid(manifest, disk.cid), disk.export)));
    text.unusual("port", disk.port, USUAL_PORT, |port| port.to_string());
    text.unusual("read-only", disk.is_read_only, false, |flag| flag.to_string());
    text.unusual("cache", disk.is_write_back, false, |_| quoted("writeback"));
    text.unusual("timeout", disk.timeout_s, USUAL_TIMEOUT_S, |seconds| seconds.to_string());
    text.unusual("serial", disk.serial.as_str(), "", quoted);
    disk.limits.requests_per_s.iter().for_each(|requests| text.key("iops", requests));
    disk.limits.bytes_per_s.iter().for_each(|bytes| text.key("rate", rate(*bytes)));
}

/// Returns the word of a value that has one.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(quoted)).unwrap_or_default()
}

/// Formats a size. Every size of a manifest is of whole KiB: no smaller unit can be written in a `host.toml`.
fn size(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) {
        quoted(&format!("{}MiB", bytes >> 20))
    } else {
        quoted(&format!("{}KiB", bytes >> 10))
    }
}

fn rate(bytes_per_s: u64) -> String {
    quoted(&format!("{}KiB/s", bytes_per_s >> 10))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// Formats a text as a basic string of TOML 1.0.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
