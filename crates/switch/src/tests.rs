// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of forwarding, one by one; `model` compares whole histories with a simple bridge.

use std::vec::Vec;
use std::{format, vec};

use proptest::prelude::*;

use crate::*;

mod announcements;
mod captures;
mod mitigation;
mod model;

const MTU: usize = 1500;
const NOW: u64 = 1_000_000_000_000;

fn own(port: usize) -> Mac {
    Mac([0x52, 0x54, 0, 0, 0, port as u8])
}

fn port(number: usize, vlans: Vlans) -> Port {
    Port { mac: own(number), vlans, is_isolated: false, is_trusted: false }
}

fn untagged(ports: usize) -> Vec<Port> {
    (0..ports).map(|number| port(number, Vlans::Access(0))).collect()
}

fn header(from: Mac, to: Mac, tag: Option<Tag>) -> Header {
    Header { destination: to, source: from, tag, payload_bytes: 46 }
}

fn network(ports: Vec<Port>) -> Network {
    Network::new(MTU, ports.into_iter().map(Some).collect()).expect("possible")
}

fn goes_to(network: &Network, from: usize, header: &Header) -> Result<Vec<usize>, Reason> {
    network.forward(from, header, false, NOW).map(|forward| forward.ports.collect())
}

#[test]
fn a_frame_to_a_port_s_address_goes_there_only() {
    let network = network(untagged(3));
    assert_eq!(goes_to(&network, 0, &header(own(0), own(2), None)), Ok(vec![2]));
}

#[test]
fn groups_and_unknown_stations_are_flooded_and_never_come_back() {
    let network = network(untagged(3));
    for to in [Mac::BROADCAST, Mac([1, 0, 0x5e, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 9])] {
        assert_eq!(goes_to(&network, 1, &header(own(1), to, None)), Ok(vec![0, 2]));
    }
    assert_eq!(goes_to(&network, 1, &header(own(1), own(1), None)), Err(Reason::Unreachable));
}

#[test]
fn a_port_sends_from_its_own_address_only() {
    let network = network(untagged(2));
    for source in [own(1), Mac([2; 6]), Mac::BROADCAST, Mac::default()] {
        assert_eq!(goes_to(&network, 0, &header(source, own(1), None)), Err(Reason::Source), "{source}");
    }
}

#[test]
fn a_trusted_port_may_send_from_stations_that_are_not_fixed_elsewhere() {
    let mut ports = untagged(3);
    ports[0].is_trusted = true;
    let network = network(ports);
    let behind = Mac([2, 0, 0, 0, 0, 7]);
    assert_eq!(goes_to(&network, 0, &header(behind, own(1), None)), Ok(vec![1]));
    assert_eq!(goes_to(&network, 1, &header(own(1), behind, None)), Ok(vec![0]), "it has been learned");
    assert_eq!(network.stations(0, NOW), 1);
    for source in [own(1), Mac::BROADCAST, Mac::default()] {
        assert_eq!(goes_to(&network, 0, &header(source, own(2), None)), Err(Reason::Source), "{source}");
    }
}

#[test]
fn a_station_is_aged_out_after_its_time_and_moves_with_its_frames() {
    let mut ports = untagged(3);
    (ports[0].is_trusted, ports[1].is_trusted) = (true, true);
    let network = network(ports);
    let station = Mac([2, 0, 0, 0, 0, 7]);
    let send = |port, now| network.forward(port, &header(station, own(2), None), false, now).expect("forwarded");
    let find = |now| network.forward(2, &header(own(2), station, None), false, now).expect("forwarded").ports;
    send(0, NOW);
    assert_eq!(find(NOW + AGE_NS), Ports::only(0));
    send(1, NOW + 1);
    assert_eq!(find(NOW + 2), Ports::only(1));
    assert_eq!(find(NOW + AGE_NS + 2).count(), 2, "flooded");
}

#[test]
fn a_storm_of_addresses_of_one_port_displaces_no_other_port_s() {
    let mut ports = untagged(3);
    (ports[0].is_trusted, ports[1].is_trusted) = (true, true);
    let network = network(ports);
    let station = Mac([2, 0, 0, 0, 0, 7]);
    network.forward(0, &header(station, own(2), None), false, NOW).expect("forwarded");
    for number in 0..100_000u32 {
        let [a, b, c, d] = number.to_be_bytes();
        let _ = network.forward(1, &header(Mac([2, 1, a, b, c, d]), own(2), None), false, NOW + 1);
    }
    assert!(network.stations(1, NOW) <= STATIONS);
    assert_eq!(goes_to(&network, 2, &header(own(2), station, None)), Ok(vec![0]));
}

#[test]
fn isolated_ports_reach_only_those_that_are_not() {
    let mut ports = untagged(4);
    (ports[0].is_isolated, ports[1].is_isolated) = (true, true);
    let network = network(ports);
    assert_eq!(goes_to(&network, 0, &header(own(0), Mac::BROADCAST, None)), Ok(vec![2, 3]));
    assert_eq!(goes_to(&network, 0, &header(own(0), own(1), None)), Err(Reason::Unreachable));
    assert_eq!(goes_to(&network, 2, &header(own(2), Mac::BROADCAST, None)), Ok(vec![0, 1, 3]));
}

#[test]
fn a_frame_stays_in_its_vlan_and_has_the_tag_that_the_port_wants() {
    let vlans = [Vlans::Access(10), Vlans::Access(10), Vlans::Access(20), Vlans::Trunk(vec![10, 20]), Vlans::Access(0)];
    let network = network(vlans.into_iter().enumerate().map(|(number, vlans)| port(number, vlans)).collect());
    let egress = |from, tag| -> Result<Vec<(usize, Option<Tag>)>, Reason> {
        let forward = network.forward(from, &header(own(from), Mac::BROADCAST, tag), false, NOW)?;
        Ok(network.egress(forward).map(|egress| (egress.port, egress.tag)).collect())
    };
    assert_eq!(egress(0, None), Ok(vec![(1, None), (3, Some(Tag::of(10)))]));
    assert_eq!(egress(3, Some(Tag::of(20))), Ok(vec![(2, None)]));
    assert_eq!(egress(4, None), Err(Reason::Unreachable), "the network without tags is one of its own");
}

#[test]
fn tags_lead_no_port_into_a_vlan_of_others() {
    let vlans = [Vlans::Access(10), Vlans::Access(20), Vlans::Trunk(vec![10, 0])];
    let network = network(vlans.into_iter().enumerate().map(|(number, vlans)| port(number, vlans)).collect());
    let send = |from, tag| goes_to(&network, from, &header(own(from), Mac::BROADCAST, tag));
    assert_eq!(send(0, Some(Tag::of(20))), Err(Reason::Vlan));
    assert_eq!(send(0, Some(Tag::of(10))), Err(Reason::Vlan), "an access port sends no tags");
    assert_eq!(send(2, Some(Tag::of(20))), Err(Reason::Vlan));
    assert_eq!(send(2, Some(Tag::of(0))), Err(Reason::Unreachable), "a priority only: the VLAN without tags");
    assert_eq!(send(0, Some(Tag::of(0))), Ok(vec![2]));
}

#[test]
fn a_tag_keeps_its_priority() {
    let vlans = [Vlans::Access(10), Vlans::Trunk(vec![10])];
    let network = network(vlans.into_iter().enumerate().map(|(number, vlans)| port(number, vlans)).collect());
    let mut first = [0; 18];
    first[12..16].copy_from_slice(&[0x81, 0, 0xe0, 0]);
    let tag = Header::parse(&first, 64).expect("good").tag;
    let forward = network.forward(0, &header(own(0), own(1), tag), false, NOW).expect("forwarded");
    let egress: Vec<Egress> = network.egress(forward).collect();
    assert_eq!(egress[0].tag.expect("tagged").bytes(), [0x81, 0, 0xe0, 10]);
}

#[test]
fn reserved_addresses_are_not_forwarded() {
    let network = network(untagged(2));
    for last in [0, 0x0e, 0x0f] {
        let to = Mac([1, 0x80, 0xc2, 0, 0, last]);
        assert_eq!(goes_to(&network, 0, &header(own(0), to, None)), Err(Reason::Reserved));
    }
    assert!(goes_to(&network, 0, &header(own(0), Mac([1, 0x80, 0xc2, 0, 0, 0x10]), None)).is_ok());
}

#[test]
fn frames_are_as_long_as_a_header_and_at_most_as_the_network_s() {
    let first = [0; 18];
    assert_eq!(Header::parse(&first, 0), Err(Reason::Short));
    assert_eq!(Header::parse(&first, HEADER_BYTES - 1), Err(Reason::Short));
    assert!(Header::parse(&first, HEADER_BYTES).is_ok());
    assert!(Header::parse(&first, HEADER_BYTES + MAX_PAYLOAD_BYTES).is_ok());
    assert_eq!(Header::parse(&first, HEADER_BYTES + MAX_PAYLOAD_BYTES + 1), Err(Reason::Long));
    let mut tagged = first;
    tagged[12..14].copy_from_slice(&[0x81, 0]);
    assert_eq!(Header::parse(&tagged, HEADER_BYTES + TAG_BYTES - 1), Err(Reason::Short));
    let network = network(untagged(2));
    let long = |payload_bytes| Header { payload_bytes, ..header(own(0), own(1), None) };
    assert!(network.forward(0, &long(MTU), false, NOW).is_ok());
    assert_eq!(network.forward(0, &long(MTU + 1), false, NOW), Err(Reason::Long));
    assert!(network.forward(0, &long(MAX_PAYLOAD_BYTES), true, NOW).is_ok());
}

#[test]
fn impossible_networks_are_refused() {
    let refused = |ports: Vec<Port>| Network::new(MTU, ports.into_iter().map(Some).collect()).expect_err("refused");
    assert_eq!(refused(untagged(MAX_PORTS + 1)), Refused::TooManyPorts);
    assert_eq!(refused([untagged(2), untagged(1)].concat()), Refused::SameAddress(2));
    assert_eq!(refused(vec![port(0, Vlans::Trunk(vec![]))]), Refused::BadVlan(0));
    assert_eq!(refused(vec![port(0, Vlans::Access(MAX_VLAN + 1))]), Refused::BadVlan(0));
    assert_eq!(refused(vec![Port { mac: Mac::BROADCAST, ..port(0, Vlans::Access(0)) }]), Refused::NoStation(0));
}

#[test]
fn derived_addresses_are_stations_administered_locally_and_stay_the_same() {
    let mac = Mac::derived("web", 0);
    assert_eq!(mac, Mac::derived("web", 0));
    assert_eq!(format!("{mac}"), "32:c1:50:f1:cf:5f");
    assert!(mac.is_station() && mac.0[0] & 2 != 0);
    assert!(mac != Mac::derived("web", 1) && mac != Mac::derived("db", 0));
}

#[test]
fn addresses_are_read_as_they_are_written() {
    assert_eq!("52:54:00:aB:00:01".parse(), Ok(Mac([0x52, 0x54, 0, 0xab, 0, 1])));
    for text in
        ["", "52:54:00:ab:00", "52:54:00:ab:00:01:02", "5254:00:ab:00:01", "52:54:00:ab:00:+1", "é:54:00:ab:00:1"]
    {
        assert_eq!(text.parse::<Mac>(), Err(NotAMac::Malformed), "{text}");
    }
    for text in ["01:00:00:00:00:00", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"] {
        assert_eq!(text.parse::<Mac>(), Err(NotAMac::NoStation), "{text}");
    }
}

#[test]
fn counters_count_by_reason() {
    let counters = Counters::default();
    counters.count_sent(60);
    counters.count_received(1000);
    counters.count_received(24);
    Reason::ALL.into_iter().for_each(|reason| counters.count_drop(reason));
    counters.count_drop(Reason::Full);
    let figures = counters.figures();
    assert_eq!((figures.sent_frames, figures.sent_bytes), (1, 60));
    assert_eq!((figures.received_frames, figures.received_bytes), (2, 1024));
    assert_eq!(figures.drops, [1, 1, 1, 1, 1, 1, 1, 2, 1, 1]);
    let next = Counters::default();
    next.restore(&figures);
    next.count_drop(Reason::Full);
    let mut expected = figures;
    expected.drops[Reason::Full as usize] += 1;
    assert_eq!(next.figures(), expected);
}

proptest! {
    #[test]
    fn no_header_panics(first: [u8; 18], bytes: usize) {
        if let Ok(header) = Header::parse(&first, bytes) {
            prop_assert!(header.payload_bytes <= MAX_PAYLOAD_BYTES);
        }
    }
}
