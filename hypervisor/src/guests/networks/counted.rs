// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of the ports' frames, from one image to the next. An image that knows no networks refuses them, and with them
//! guests with devices that it could not continue.

use alloc::sync::Arc;
use alloc::vec::Vec;

use handover::layout::PortCounters;
use switch::{Figures, Mac};

use super::port::{Lan, NETWORKS, Port};
use crate::guests::slots::GUESTS;
use crate::kernel::inherited;

/// The counters of every port, as a record has them.
pub fn section() -> Vec<PortCounters> {
    let lans = NETWORKS.get().map_or(&[][..], |lans| lans);
    let ports = |(network, lan): (u32, &'static Lan)| {
        let numbered = in_order(network, lan).into_iter().enumerate();
        numbered.map(move |(number, port)| packed(network, number as u32, &port.counters.figures()))
    };
    (0..).zip(lans).flat_map(ports).collect()
}

/// The ports of a network as an image numbers them that begins with these guests.
fn in_order(network: u32, lan: &Lan) -> Vec<Arc<Port>> {
    let now = lan.now();
    let guests: Vec<_> = GUESTS.all().collect();
    let nics = guests.iter().flat_map(|guest| &guest.config.nics).filter(|nic| nic.network == network);
    nics.filter_map(|nic| Some(now.with_mac(Mac(nic.mac))?.1.clone())).collect()
}

fn packed(network: u32, number: u32, figures: &Figures) -> PortCounters {
    PortCounters {
        network: network.into(),
        port: number.into(),
        sent_frames: figures.sent_frames.into(),
        sent_bytes: figures.sent_bytes.into(),
        received_frames: figures.received_frames.into(),
        received_bytes: figures.received_bytes.into(),
        drops: figures.drops.map(Into::into),
    }
}

/// Goes on from the counters of the image before, once all guests are there.
pub fn adopt() {
    let Some(record) = inherited::record() else { return };
    let lans = NETWORKS.get().map_or(&[][..], |lans| lans);
    let ports: Vec<_> = (0..).zip(lans).map(|(network, lan)| in_order(network, lan)).collect();
    for its in record.ports.iter() {
        let lan = ports.get(its.network.get() as usize);
        let Some(port) = lan.and_then(|ports| ports.get(its.port.get() as usize)) else { continue };
        port.counters.restore(&Figures {
            sent_frames: its.sent_frames.get(),
            sent_bytes: its.sent_bytes.get(),
            received_frames: its.received_frames.get(),
            received_bytes: its.received_bytes.get(),
            drops: its.drops.map(|drops| drops.get()),
        });
    }
}
