// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ports of networks as the control channel lists them.

use alloc::string::String;
use alloc::vec::Vec;

use switch::Figures;
use wire::{NetDrops, NetFrames, NetPort, ReplyBody, page};

use super::port::{Lan, NETWORKS, Port, Topology};
use crate::arch::timer;
use crate::guests::slots::GUESTS;

/// The most ports collected for one page; a frame holds fewer.
const PAGE_PORTS: usize = 64;

/// A page of the ports, network by network.
pub fn list(from_index: u32) -> ReplyBody {
    let lans = NETWORKS.get().map_or(&[][..], |lans| lans);
    let lans: Vec<_> = lans.iter().map(|lan| (lan, lan.now())).collect();
    let count = lans.iter().map(|(_, now)| now.network.ports().count()).sum();
    let all = lans.iter().flat_map(|(lan, now)| now.network.ports().map(move |port| (lan, now, port)));
    let from = from_index as usize;
    let described = all
        .skip(from)
        .filter_map(|(lan, now, (number, config))| Some(describe(lan, now, (number, config), now.port(number)?)));
    let ports = page::fill(described, PAGE_PORTS);
    let next = from.saturating_add(ports.len());
    let next_index = (!ports.is_empty() && next < count).then_some(next as u32);
    ReplyBody::NetPorts { ports, next_index }
}

fn describe(lan: &Lan, now: &Topology, (number, config): (usize, &switch::Port), port: &Port) -> NetPort {
    let figures = port.counters.figures();
    NetPort {
        network: lan.name.clone(),
        mtu: now.network.mtu() as u32,
        guest: GUESTS.at(port.guest).map_or_else(String::new, |guest| guest.config.name.clone()),
        mac: config.mac.0,
        is_up: port.is_plugged(),
        vlans: config.vlans.all().into(),
        is_tagged: config.vlans.are_tagged(),
        is_isolated: config.is_isolated,
        is_trusted: config.is_trusted,
        stations: now.network.stations(number, timer::uptime_ns()) as u32,
        sent: NetFrames { frames: figures.sent_frames, bytes: figures.sent_bytes },
        received: NetFrames { frames: figures.received_frames, bytes: figures.received_bytes },
        drops: drops(&figures),
    }
}

/// In the order of [`switch::Reason::ALL`].
fn drops(figures: &Figures) -> NetDrops {
    let [short, long, source, vlan, reserved, unreachable, malformed, full, down, offload] = figures.drops;
    NetDrops { short, long, source, vlan, reserved, unreachable, malformed, full, down, offload }
}
