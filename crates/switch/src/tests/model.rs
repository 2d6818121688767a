// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bridge as a textbook has it, and histories of frames for both.

use std::collections::HashMap;

use super::*;

/// Few stations, so that their frames meet.
const STATION: [Mac; 4] =
    [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]), Mac([2, 0, 0, 0, 0, 3]), Mac([2, 0, 0, 0, 0, 4])];

struct Bridge {
    ports: Vec<Port>,
    /// By station and VLAN: port and time.
    seen: HashMap<(Mac, u16), (usize, u64)>,
}

impl Bridge {
    fn forward(&mut self, from: usize, header: &Header, now: u64) -> Result<Vec<(usize, Option<u16>)>, Reason> {
        let port = &self.ports[from];
        let tagged = header.tag.map_or(0, Tag::vlan);
        let vlan = match &port.vlans {
            Vlans::Access(vlan) if tagged == 0 => *vlan,
            Vlans::Trunk(list) if list.contains(&tagged) => tagged,
            _ => return Err(Reason::Vlan),
        };
        let owner = |mac: Mac| self.ports.iter().position(|port| port.mac == mac);
        let is_own = header.source == port.mac;
        if !is_own && (!port.is_trusted || owner(header.source).is_some() || header.source.is_group()) {
            return Err(Reason::Source);
        }
        if !is_own {
            self.seen.insert((header.source, vlan), (from, now));
        }
        let may = |to: &usize| {
            let other = &self.ports[*to];
            *to != from && other.vlans.has(vlan) && !(port.is_isolated && other.is_isolated)
        };
        let known = match self.ports.iter().position(|port| port.mac == header.destination && port.vlans.has(vlan)) {
            None => {
                let seen = self.seen.get(&(header.destination, vlan));
                seen.filter(|(_, at)| now - at <= AGE_NS).map(|(port, _)| *port)
            }
            fixed => fixed,
        };
        let all = 0..self.ports.len();
        let to: Vec<usize> = match known {
            Some(to) => Some(to).into_iter().filter(may).collect(),
            None => all.filter(may).collect(),
        };
        if to.is_empty() {
            return Err(Reason::Unreachable);
        }
        let is_tagged = |to: usize| matches!(self.ports[to].vlans, Vlans::Trunk(_)) && vlan != 0;
        Ok(to.into_iter().map(|to| (to, is_tagged(to).then_some(vlan))).collect())
    }
}

fn some_vlans() -> impl Strategy<Value = Vlans> {
    prop_oneof![
        (0u16..3).prop_map(Vlans::Access),
        prop::sample::subsequence(vec![0u16, 1, 2], 1..=3).prop_map(Vlans::Trunk),
    ]
}

fn some_ports() -> impl Strategy<Value = Vec<Port>> {
    let port = (some_vlans(), any::<bool>(), any::<bool>());
    prop::collection::vec(port, 1..6).prop_map(|ports| {
        let numbered = ports.into_iter().enumerate();
        numbered
            .map(|(number, (vlans, is_isolated, is_trusted))| Port { mac: own(number), vlans, is_isolated, is_trusted })
            .collect()
    })
}

fn some_mac() -> impl Strategy<Value = Mac> {
    prop_oneof![(0usize..6).prop_map(own), prop::sample::select(&STATION[..]), Just(Mac::BROADCAST)]
}

proptest! {
    #[test]
    fn frames_go_where_a_textbook_s_bridge_sends_them(
        ports in some_ports(),
        frames in prop::collection::vec(
            (0usize..6, prop::option::of(some_mac()), some_mac(), prop::option::of(0u16..3), 0u64..2),
            1..60,
        ),
    ) {
        let mut bridge = Bridge { ports: ports.clone(), seen: HashMap::new() };
        let (network, mut now) = (network(ports), NOW);
        for (from, source, destination, vlan, pause) in frames {
            let from = from % bridge.ports.len();
            now += 1 + pause * AGE_NS * 2 / 3;
            let header = header(source.unwrap_or(own(from)), destination, vlan.map(Tag::of));
            let expected = bridge.forward(from, &header, now);
            let found = network.forward(from, &header, false, now).map(|forward| {
                network.egress(forward).map(|egress| (egress.port, egress.tag.map(Tag::vlan))).collect::<Vec<_>>()
            });
            prop_assert_eq!(found, expected);
        }
    }
}
