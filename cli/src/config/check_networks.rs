// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of `[[network]]` and `[[guest.nic]]` and their possible values.

use std::collections::HashSet;

use bundle::{Manifest, NetworkConfig, NicConfig, NicVlans, limits};
use switch::Mac;
use toml::de::DeValue;

use super::read::{Section, flag, mac, number, rate, text};
use crate::suggest::did_you_mean;

/// The MTU of a network that states none: Ethernet's.
const USUAL_MTU: u16 = 1500;

/// The networks, and the names and addresses that their devices may not share.
#[derive(Default)]
pub(super) struct Networks {
    /// `None` where one has a mistake: other sections may name it.
    all: Vec<(String, Option<NetworkConfig>)>,
    addresses: HashSet<(u32, Mac)>,
    ports: Vec<usize>,
}

impl Networks {
    /// Those that a host has, with the devices that are on them.
    fn of(host: &Manifest) -> Self {
        let all = host.host.networks.iter().map(|network| (network.name.clone(), Some(network.clone()))).collect();
        let nics = || host.guests.iter().flat_map(|guest| &guest.nics);
        let on = |network: usize| nics().filter(|nic| nic.network as usize == network).count();
        let addresses = nics().map(|nic| (nic.network, Mac(nic.mac))).collect();
        Self { all, addresses, ports: (0..host.host.networks.len()).map(on).collect() }
    }

    pub fn into_configs(self) -> Option<Vec<NetworkConfig>> {
        self.all.into_iter().map(|(_, network)| network).collect()
    }
}

/// Reads the networks. One that the host has is the host's, whatever is stated of it.
pub(super) fn networks(root: &Section<'_, '_>, sections: Vec<Section<'_, '_>>, host: &Manifest) -> Networks {
    let most = limits::NETWORKS;
    if sections.len() > most {
        root.complain(None, format_args!("there are {} networks; at most {most} are possible", sections.len()));
    }
    let (mut networks, known) = (Networks::of(host), host.host.networks.len());
    for mut section in sections {
        section.set_label("[[network]]: ".to_owned());
        let name = section.required("name", network_name);
        if let Some((name, at)) = &name {
            section.set_label(format!("network {name:?}: "));
            if networks.all[known..].iter().any(|(other, _)| other == name) {
                section.complain(Some(*at), "another network has the same name; rename one of them");
            }
        }
        let mtu = mtu(&mut section, *limits::MTU.end()).unwrap_or(USUAL_MTU);
        section.finish();
        if let Some((name, _)) = name.filter(|(name, _)| networks.all[..known].iter().all(|(other, _)| other != name)) {
            networks.all.push((name.clone(), Some(NetworkConfig { name, mtu })));
        }
    }
    networks.ports.resize(networks.all.len(), 0);
    networks
}

/// Reads the network devices of a guest with this name and so many vCPUs; those with mistakes are left out.
pub(super) fn nics(
    guest: &Section<'_, '_>,
    (owner, vcpus): (&str, u32),
    sections: Vec<Section<'_, '_>>,
    networks: &mut Networks,
) -> Vec<NicConfig> {
    let most = limits::NICS;
    if sections.len() > most {
        guest.complain(None, format_args!("there are {} network devices; at most {most} are possible", sections.len()));
    }
    let numbered = (0..).zip(sections);
    numbered.filter_map(|(number, section)| nic((owner, vcpus), number, section, networks)).collect()
}

fn nic(
    (owner, vcpus): (&str, u32),
    number: u32,
    mut section: Section<'_, '_>,
    networks: &mut Networks,
) -> Option<NicConfig> {
    section.set_label(format!("guest {owner:?}: [[guest.nic]] {}: ", number + 1));
    let network = section.required("network", text);
    let network = network.and_then(|(name, at)| find(&section, &name, at, networks));
    let most_mtu = network.and_then(|network| Some(networks.all.get(network as usize)?.1.as_ref()?.mtu));
    let written = section.placed("mac", mac);
    let (mac, at) = written.map_or((Mac::derived(owner, number), None), |(mac, at)| (mac, Some(at)));
    if network.is_some_and(|network| !networks.addresses.insert((network, mac))) {
        let hint = "change one of them";
        section.complain(at, format_args!("another device on this network has the MAC address {mac}; {hint}"));
    }
    let nic = NicConfig {
        network: network.unwrap_or(0),
        mac: mac.0,
        mtu: mtu(&mut section, most_mtu.unwrap_or(*limits::MTU.end())).or(most_mtu).unwrap_or(USUAL_MTU),
        vlans: section.optional("vlan", vlans).unwrap_or(NicVlans::Access(0)),
        is_isolated: section.optional("isolated", flag).unwrap_or(false),
        is_trusted: section.optional("trusted", flag).unwrap_or(false),
        rate_bytes_per_s: section.optional("rate", rate),
        queue_pairs: section.optional("queues", queue_pairs).unwrap_or(usual_queue_pairs(vcpus)),
    };
    section.finish();
    network.map(|_| nic)
}

/// The pairs of queues of a network device that states none: one for each vCPU.
pub(super) fn usual_queue_pairs(vcpus: u32) -> u16 {
    u16::try_from(vcpus).unwrap_or(limits::QUEUE_PAIRS).clamp(1, limits::QUEUE_PAIRS)
}

fn queue_pairs(value: &DeValue<'_>) -> Result<u16, String> {
    let pairs = number(1..=u32::from(limits::QUEUE_PAIRS))(value)?;
    Ok(u16::try_from(pairs).unwrap_or(limits::QUEUE_PAIRS))
}

/// Returns the index of a network, and takes one of its ports.
fn find(section: &Section<'_, '_>, name: &str, at: usize, networks: &mut Networks) -> Option<u32> {
    let Some(index) = networks.all.iter().position(|(other, _)| other == name) else {
        let suggestion = did_you_mean(name, networks.all.iter().map(|(name, _)| name.as_str()));
        let hint = if suggestion.is_empty() { "; add a [[network]] with this name" } else { suggestion.as_str() };
        section.complain(Some(at), format_args!("there is no network {name:?}{hint}"));
        return None;
    };
    networks.ports[index] += 1;
    if networks.ports[index] == limits::PORTS + 1 {
        let most = limits::PORTS;
        section
            .complain(Some(at), format_args!("the network {name:?} has more than {most} devices; add another network"));
    }
    u32::try_from(index).ok()
}

fn network_name(value: &DeValue<'_>) -> Result<String, String> {
    let (name, most) = (text(value)?, limits::NETWORK_NAME_BYTES);
    let is_possible = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match (1..=most).contains(&name.len()) && name.bytes().all(is_possible) {
        true => Ok(name),
        false => Err(format!("= {name:?} is not possible; write 1 to {most} letters, digits, '-', '_' and '.'")),
    }
}

fn mtu(section: &mut Section<'_, '_>, most: u16) -> Option<u16> {
    let mtu = section.optional("mtu", number(u32::from(*limits::MTU.start())..=u32::from(most)))?;
    u16::try_from(mtu).ok()
}

/// Reads a VLAN, or a list of them.
fn vlans(value: &DeValue<'_>) -> Result<NicVlans, String> {
    let most = limits::VLAN_MOST;
    let one = |least: u32, value: &DeValue<'_>| {
        number(least..=u32::from(most))(value).map(|vlan| u16::try_from(vlan).unwrap_or(most))
    };
    let DeValue::Array(items) = value else { return one(1, value).map(NicVlans::Access) };
    if !(1..=limits::VLANS).contains(&items.len()) {
        return Err(format!("names {} VLANs; 1 to {} are possible", items.len(), limits::VLANS));
    }
    items.iter().map(|item| one(0, item.get_ref())).collect::<Result<_, _>>().map(NicVlans::Trunk)
}
