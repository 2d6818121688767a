// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bridge as a textbook has it, and histories of frames for both.

use std::collections::HashMap;

use super::*;

/// Few stations, so that their frames meet.
const STATION: [Mac; 4] =
    [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2]), Mac([2, 0, 0, 0, 0, 3]), Mac([2, 0, 0, 0, 0, 4])];

struct Bridge {
    ports: Vec<Option<Port>>,
    /// By station, VLAN and port: the time.
    seen: HashMap<(Mac, u16, usize), u64>,
}

impl Bridge {
    fn forward(&mut self, from: usize, header: &Header, now: u64) -> Result<Vec<(usize, Option<u16>)>, Reason> {
        let port = self.ports[from].as_ref().ok_or(Reason::Unreachable)?;
        let all = || self.ports.iter().enumerate().filter_map(|(number, port)| Some((number, port.as_ref()?)));
        let tagged = header.tag.map_or(0, Tag::vlan);
        let vlan = match &port.vlans {
            Vlans::Access(vlan) if tagged == 0 => *vlan,
            Vlans::Trunk(list) if list.contains(&tagged) => tagged,
            _ => return Err(Reason::Vlan),
        };
        let is_fixed = all().any(|(_, port)| port.mac == header.source);
        let is_own = header.source == port.mac;
        if !is_own && (!port.is_trusted || is_fixed || header.source.is_group()) {
            return Err(Reason::Source);
        }
        if !is_own {
            self.seen.insert((header.source, vlan, from), now);
        }
        let may = |(to, other): &(usize, &Port)| {
            *to != from && other.vlans.has(vlan) && !(port.is_isolated && other.is_isolated)
        };
        let fixed = all().find(|(_, port)| port.mac == header.destination && port.vlans.has(vlan));
        let seen = |(number, _): (usize, &Port)| {
            let at = self.seen.get(&(header.destination, vlan, number)).filter(|at| now - **at <= AGE_NS)?;
            Some((*at, number))
        };
        let known = fixed.map_or_else(|| all().filter_map(seen).max().map(|(_, to)| to), |(to, _)| Some(to));
        let to = all().filter(|(number, _)| known.is_none_or(|to| to == *number)).filter(may);
        let to: Vec<usize> = to.map(|(number, _)| number).collect();
        if to.is_empty() {
            return Err(Reason::Unreachable);
        }
        let is_trunk = |to: usize| self.ports[to].as_ref().is_some_and(|port| matches!(port.vlans, Vlans::Trunk(_)));
        Ok(to.into_iter().map(|to| (to, (is_trunk(to) && vlan != 0).then_some(vlan))).collect())
    }

    /// Takes this port away, or adds it again.
    fn change(&mut self, number: usize, port: &Port) {
        self.seen.retain(|(_, _, at), _| *at != number);
        self.ports[number] = if self.ports[number].is_some() { None } else { Some(port.clone()) };
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
    fn frames_go_where_a_textbook_s_bridge_sends_them_while_ports_come_and_go(
        ports in some_ports(),
        frames in prop::collection::vec(
            (0usize..6, prop::option::of(some_mac()), some_mac(), prop::option::of(0u16..3), 0u64..2, 0u8..8),
            1..60,
        ),
    ) {
        let mut bridge = Bridge { ports: ports.iter().cloned().map(Some).collect(), seen: HashMap::new() };
        let (mut network, mut now) = (network(ports.clone()), NOW);
        for (from, source, destination, vlan, pause, change) in frames {
            let from = from % bridge.ports.len();
            if change == 0 {
                bridge.change(from, &ports[from]);
                network = match &bridge.ports[from] {
                    Some(port) => network.with_port(from, port.clone()).expect("possible"),
                    None => network.without_port(from).expect("it was there"),
                };
            }
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
