// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ports of networks as the control channel lists them.

use alloc::string::String;
use alloc::sync::Arc;

use switch::{Figures, Vlans};
use wire::{NetDrops, NetFrames, NetPort, ReplyBody, page};

use super::port::{Lan, NETWORKS};
use crate::arch::timer;
use crate::guests::guest::Guest;
use crate::guests::slots::GUESTS;

/// The most ports collected for one page; a frame holds fewer.
const PAGE_PORTS: usize = 64;

/// A page of the ports, network by network.
pub fn list(from_index: u32) -> ReplyBody {
    let lans = NETWORKS.get().map_or(&[][..], |lans| lans);
    let all = || lans.iter().flat_map(|lan| (0..lan.ports.len()).map(move |port| (lan, port)));
    let from = from_index as usize;
    let ports = page::fill(all().skip(from).filter_map(|(lan, port)| describe(lan, port)), PAGE_PORTS);
    let next = from.saturating_add(ports.len());
    let next_index = (!ports.is_empty() && next < all().count()).then_some(next as u32);
    ReplyBody::NetPorts { ports, next_index }
}

fn describe(lan: &Lan, number: usize) -> Option<NetPort> {
    let (port, config) = (lan.ports.get(number)?, lan.network.ports().get(number)?);
    // The number of a guest that was deleted may be another's.
    let is_its = |guest: &Arc<Guest>| guest.config.nics.iter().any(|nic| nic.mac == config.mac.0);
    let guest = GUESTS.at(port.guest).filter(is_its);
    let figures = port.counters.figures();
    Some(NetPort {
        network: lan.name.clone(),
        mtu: lan.network.mtu() as u32,
        guest: guest.map_or_else(String::new, |guest| guest.config.name.clone()),
        mac: config.mac.0,
        is_up: port.is_plugged(),
        vlans: config.vlans.all().into(),
        is_tagged: matches!(config.vlans, Vlans::Trunk(_)),
        is_isolated: config.is_isolated,
        is_trusted: config.is_trusted,
        stations: lan.network.stations(number, timer::uptime_ns()) as u32,
        sent: NetFrames { frames: figures.sent_frames, bytes: figures.sent_bytes },
        received: NetFrames { frames: figures.received_frames, bytes: figures.received_bytes },
        drops: drops(&figures),
    })
}

/// In the order of [`switch::Reason::ALL`].
fn drops(figures: &Figures) -> NetDrops {
    let [short, long, source, vlan, reserved, unreachable, malformed, full, down, offload] = figures.drops;
    NetDrops { short, long, source, vlan, reserved, unreachable, malformed, full, down, offload }
}
