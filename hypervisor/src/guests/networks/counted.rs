// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of the ports' frames, from one image to the next. An image that knows no networks refuses them, and with them
//! guests with devices that it could not continue.

use alloc::vec::Vec;

use handover::layout::PortCounters;
use switch::Figures;

use super::port::{Lan, NETWORKS, Port};
use crate::guests::slots::GUESTS;
use crate::kernel::inherited;

/// The counters of every port, as a record has them.
pub fn section() -> Vec<PortCounters> {
    let lans = NETWORKS.get().map_or(&[][..], |lans| lans);
    let ports = |(network, lan): (usize, &'static Lan)| {
        // As the next image numbers them: without those of guests that were deleted.
        let are_left = |(port, its): &(&Port, &switch::Port)| has_port(port.guest, its.mac.0);
        let left = lan.ports.iter().zip(lan.network.ports()).filter(are_left).map(|(port, _)| port);
        left.enumerate().map(move |(port, its)| packed(network as u32, port as u32, &its.counters.figures()))
    };
    lans.iter().enumerate().flat_map(ports).collect()
}

fn has_port(guest: u32, mac: [u8; 6]) -> bool {
    GUESTS.at(guest).is_some_and(|guest| guest.config.nics.iter().any(|nic| nic.mac == mac))
}

fn packed(network: u32, port: u32, figures: &Figures) -> PortCounters {
    PortCounters {
        network: network.into(),
        port: port.into(),
        sent_frames: figures.sent_frames.into(),
        sent_bytes: figures.sent_bytes.into(),
        received_frames: figures.received_frames.into(),
        received_bytes: figures.received_bytes.into(),
        drops: figures.drops.map(Into::into),
    }
}

/// Goes on from the counters of the image before.
pub(super) fn adopt(lans: &[Lan]) {
    let Some(record) = inherited::record() else { return };
    for its in record.ports.iter() {
        let lan = lans.get(its.network.get() as usize);
        let Some(port) = lan.and_then(|lan| lan.ports.get(its.port.get() as usize)) else { continue };
        port.counters.restore(&Figures {
            sent_frames: its.sent_frames.get(),
            sent_bytes: its.sent_bytes.get(),
            received_frames: its.received_frames.get(),
            received_bytes: its.received_bytes.get(),
            drops: its.drops.map(|drops| drops.get()),
        });
    }
}
