// SPDX-License-Identifier: MIT OR Apache-2.0
//! Announcements of stations that have moved.

use std::vec::Vec;

use crate::{ANNOUNCEMENT_BYTES, HEADER_BYTES, Header, Mac, Network, Port, TAG_BYTES, Tag, Vlans, announcement};

const MAC: Mac = Mac([0x52, 0x54, 0, 0, 0, 9]);

#[test]
fn an_announcement_is_a_reverse_request_for_its_own_address() {
    let frame = announcement(MAC);
    let first = frame.first_chunk::<{ HEADER_BYTES + TAG_BYTES }>().expect("a whole header");
    assert_eq!(Header::parse(first, ANNOUNCEMENT_BYTES), Ok(Header::of_announcement(MAC, None)));
    // RFC 826: hardware, protocol, lengths, operation; sender's addresses; target's addresses.
    assert_eq!(frame[12..22], [0x80, 0x35, 0, 1, 8, 0, 6, 4, 0, 3]);
    assert_eq!((&frame[22..28], &frame[28..32]), (&MAC.0[..], &[0; 4][..]));
    assert_eq!((&frame[32..38], &frame[38..42]), (&MAC.0[..], &[0; 4][..]));
    assert_eq!(frame[42..], [0; 18]);
}

#[test]
fn all_ports_of_the_vlan_get_it_with_their_tags() {
    let port =
        |last, vlans| Some(Port { mac: Mac([2, 0, 0, 0, 0, last]), vlans, is_isolated: false, is_trusted: false });
    let trunk = || Vlans::Trunk([0, 10].to_vec());
    let ports = [port(0, trunk()), port(1, Vlans::Access(10)), port(2, trunk()), port(3, Vlans::Access(0))];
    let network = Network::new(1500, ports.to_vec()).expect("a good network");
    let reached = |tag: Option<u16>| -> Vec<(usize, Option<u16>)> {
        let header = Header::of_announcement(Mac([2, 0, 0, 0, 0, 0]), tag.map(Tag::of));
        let forward = network.forward(0, &header, false, 0).expect("it has ports");
        network.egress(forward).map(|to| (to.port, to.tag.map(Tag::vlan))).collect()
    };
    assert_eq!(reached(Some(10)), [(1, None), (2, Some(10))]);
    assert_eq!(reached(None), [(2, None), (3, None)]);
}
