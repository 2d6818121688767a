// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests that have come from elsewhere: switches behind a bridging guest send their frames to where they were, until
//! they see one from here.

use switch::{Egress, Header, Tag, announcement};

use super::port::{Nic, Port, Topology};
use crate::arch::timer;
use crate::guests::forwarding::{Kick, work};

/// Sends an announcement from each network device, in each of its VLANs.
pub fn announce(nics: &[Nic]) {
    for nic in nics {
        let Some(sender) = nic.port.senders.first() else { continue };
        let topology = sender.lock().topology.clone();
        if let Some(lan) = topology {
            announce_on(&lan, nic);
        }
    }
}

fn announce_on(lan: &Topology, nic: &Nic) {
    let Some(config) = lan.network.port(nic.number) else { return };
    let (frame, is_tagged) = (announcement(config.mac), config.vlans.are_tagged());
    for vlan in config.vlans.all() {
        let tag = (is_tagged && *vlan != 0).then(|| Tag::of(*vlan));
        let header = Header::of_announcement(config.mac, tag);
        let Ok(forward) = lan.network.forward(nic.number, &header, false, timer::uptime_ns()) else { continue };
        nic.port.counters.count_sent(frame.len());
        for to in lan.network.egress(forward) {
            if let Some(port) = lan.port(to.port) {
                receive(port, &frame, to);
            }
        }
    }
}

fn receive(port: &Port, frame: &[u8], to: Egress) {
    let plugged = port.plugged.lock();
    let Some(plugged) = &*plugged else { return };
    work(&*plugged.run, Kick::AtOnce, &plugged.device, &mut |net, io| {
        if net.receive_own(frame, to.tag, io)? {
            port.counters.count_received(frame.len());
        }
        Ok(())
    });
}
