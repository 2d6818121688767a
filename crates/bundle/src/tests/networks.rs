// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of networks between guests.

use super::reading::VERSION_AT;
use super::*;

fn lan() -> NetworkConfig {
    NetworkConfig { name: "lan".to_string(), mtu: 1500 }
}

fn nic(last: u8) -> NicConfig {
    NicConfig::with_mac([0x52, 0x54, 0, 0, 0, last])
}

/// Guests with these network devices on these networks.
fn built(networks: Vec<NetworkConfig>, nics: Vec<Vec<NicConfig>>) -> Result<Vec<u8>, BundleError> {
    let guest = |(number, nics): (usize, Vec<NicConfig>)| GuestConfig { name: number.to_string(), nics, ..debian() };
    let guests = nics.into_iter().enumerate().map(guest).collect();
    write::build(HostConfig { networks, ..HOST }, guests, &FILES)
}

#[test]
fn networks_and_their_devices_are_read_guest_by_guest() {
    let trunk = NicConfig {
        mtu: 68,
        vlans: NicVlans::Trunk(vec![0, 4094]),
        is_isolated: true,
        is_trusted: true,
        rate_bytes_per_s: Some(1 << 20),
        queue_pairs: 16,
        ..nic(2)
    };
    let nics = vec![vec![nic(1)], vec![], vec![trunk, nic(3)]];
    let bytes = built(vec![lan()], nics.clone()).expect("good");
    assert_eq!(bytes[VERSION_AT..][..2], MANIFEST_VERSION.to_le_bytes());
    let bundle = Bundle::parse(&bytes).expect("good");
    assert_eq!(bundle.manifest().host.networks, [lan()]);
    let found: Vec<_> = bundle.manifest().guests.iter().map(|guest| guest.nics.clone()).collect();
    assert_eq!(found, nics);
}

#[test]
fn a_network_without_devices_stays() {
    let bytes = built(vec![lan()], vec![vec![]]).expect("good");
    assert_eq!(Bundle::parse(&bytes).expect("good").manifest().host.networks, [lan()]);
}

#[test]
fn impossible_networks_and_devices_are_refused() {
    let refused = |networks, nics| built(networks, nics).expect_err("bad").problem.to_string();
    let one = || vec![vec![nic(1)]];
    let with = |nic: NicConfig| refused(vec![lan()], vec![vec![nic]]);
    let long = NetworkConfig { name: "x".repeat(33), ..lan() };
    for (found, expected) in [
        (refused(vec![lan(); 65], one()), "there are more than 64 networks"),
        (refused(vec![lan(); 2], one()), "network \"lan\" stands twice"),
        (refused(vec![long], one()), "has a bad name"),
        (refused(vec![NetworkConfig { mtu: 67, ..lan() }], one()), "network \"lan\" has a bad MTU"),
        (refused(vec![], vec![vec![nic(1)]]), "guest \"0\" is on a network that does not exist"),
        (refused(vec![lan()], vec![vec![nic(1)], vec![nic(1)]]), "guest \"1\" has the MAC address of another"),
        (refused(vec![lan()], vec![(0..9).map(nic).collect()]), "has too many network devices"),
        (with(NicConfig { mac: [1; 6], ..nic(1) }), "the MAC address of no station"),
        (with(NicConfig { mac: [0; 6], ..nic(1) }), "the MAC address of no station"),
        (with(NicConfig { mtu: 1501, ..nic(1) }), "a bad MTU"),
        (with(NicConfig { vlans: NicVlans::Access(4095), ..nic(1) }), "bad VLANs"),
        (with(NicConfig { vlans: NicVlans::Trunk(vec![]), ..nic(1) }), "bad VLANs"),
        (with(NicConfig { rate_bytes_per_s: Some(0), ..nic(1) }), "a rate of 0"),
        (with(NicConfig { queue_pairs: 0, ..nic(1) }), "bad pairs of queues"),
        (with(NicConfig { queue_pairs: 17, ..nic(1) }), "bad pairs of queues"),
    ] {
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn a_network_has_64_devices_at_most() {
    let nics = |guests: usize, each: u8| {
        (0..guests).map(|guest| (0..each).map(|number| nic(guest as u8 * 8 + number)).collect()).collect()
    };
    assert!(built(vec![lan()], nics(8, 8)).is_ok());
    let problem = built(vec![lan()], nics(9, 8)).expect_err("72 of them").problem.to_string();
    assert!(problem.contains("on a network that has too many devices"), "{problem}");
}

#[test]
fn a_digest_differs_where_network_devices_do() {
    let with = |nics| GuestConfig { nics, ..debian() }.digest();
    let digests = [with(vec![]), with(vec![nic(1)]), with(vec![nic(2)]), with(vec![nic(1), nic(2)])];
    let different: std::collections::BTreeSet<u64> = digests.into_iter().collect();
    assert_eq!(different.len(), digests.len());
}
