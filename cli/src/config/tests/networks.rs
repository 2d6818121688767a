// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of networks and of the network devices that guests have.

use bundle::{NetworkConfig, NicConfig, NicVlans};

use super::*;

/// A file with these lines before a guest's, and these after its name, kernel and memory (lines 1 to 7).
fn with(networks: &str, lines: &str) -> Result<Config, String> {
    load(&format!("{networks}\n[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"\n{lines}\n"))
}

const LAN: &str = "[[network]]\nname = \"lan\"";

/// The network devices of the first guest, on the network `lan`.
fn nics(lines: &str) -> Result<Vec<NicConfig>, String> {
    with(LAN, lines).map(|config| config.guests[0].nics.clone())
}

#[test]
fn a_network_device_has_an_address_of_its_own_and_ethernet_s_mtu() {
    let found = nics("[[guest.nic]]\nnetwork = \"lan\"\n[[guest.nic]]\nnetwork = \"lan\"").expect("good");
    let expected = |number| NicConfig {
        network: 0,
        mac: Mac::derived("a", number).0,
        mtu: 1500,
        vlans: NicVlans::Access(0),
        is_isolated: false,
        is_trusted: false,
        rate_bytes_per_s: None,
        queue_pairs: 1,
    };
    assert_eq!(found, [expected(0), expected(1)]);
}

#[test]
fn every_key_of_a_network_device_is_read() {
    let networks = "[[network]]\nname = \"lan\"\n[[network]]\nname = \"wan\"\nmtu = 9000";
    let config = with(
        networks,
        "[[guest.nic]]\nnetwork = \"wan\"\nmac = \"52:54:00:00:00:01\"\nmtu = 4000\nvlan = [0, 10]\nisolated = true\n\
         trusted = true\nrate = \"10MiB/s\"\nqueues = 4\n[[guest.nic]]\nnetwork = \"wan\"\nvlan = 7",
    );
    let config = config.expect("good");
    let network = |name: &str, mtu| NetworkConfig { name: name.to_owned(), mtu };
    assert_eq!(config.networks, [network("lan", 1500), network("wan", 9000)]);
    let first = NicConfig {
        network: 1,
        mac: [0x52, 0x54, 0, 0, 0, 1],
        mtu: 4000,
        vlans: NicVlans::Trunk(vec![0, 10]),
        is_isolated: true,
        is_trusted: true,
        rate_bytes_per_s: Some(10 << 20),
        queue_pairs: 4,
    };
    assert_eq!(config.guests[0].nics[0], first);
    assert_eq!((config.guests[0].nics[1].mtu, &config.guests[0].nics[1].vlans), (9000, &NicVlans::Access(7)));
}

#[test]
fn mistakes_of_a_network_are_named() {
    for (lines, expected) in [
        ("[[network]]", "host.toml:1:1: [[network]]: the key \"name\" is missing; add it"),
        (
            "[[network]]\nname = \"l n\"",
            "host.toml:2:8: [[network]]: name = \"l n\" is not possible; write 1 to 32 letters, digits, '-', '_' and '.'",
        ),
        (
            "[[network]]\nname = \"lan\"\nmtu = 67",
            "host.toml:3:7: network \"lan\": mtu = 67 is not possible; write 68 to 65535",
        ),
        (
            "[[network]]\nname = \"lan\"\n[[network]]\nname = \"lan\"",
            "host.toml:4:8: network \"lan\": another network has the same name; rename one of them",
        ),
        (
            "[[network]]\nname = \"lan\"\nmtuu = 1500",
            "host.toml:3:1: network \"lan\": unknown key \"mtuu\"; did you mean \"mtu\"?",
        ),
    ] {
        assert_eq!(with(lines, "").map(|_| ()), Err(expected.to_owned()), "{lines}");
    }
}

#[test]
fn mistakes_of_a_network_device_are_named() {
    for (lines, expected) in [
        ("", "host.toml:7:1: guest \"a\": [[guest.nic]] 1: the key \"network\" is missing; add it"),
        (
            "network = \"lam\"",
            "host.toml:8:11: guest \"a\": [[guest.nic]] 1: there is no network \"lam\"; did you mean \"lan\"?",
        ),
        (
            "network = \"office\"",
            "host.toml:8:11: guest \"a\": [[guest.nic]] 1: there is no network \"office\"; add a [[network]] with this \
             name",
        ),
        (
            "network = \"lan\"\nmac = \"01:00:00:00:00:00\"",
            "host.toml:9:7: guest \"a\": [[guest.nic]] 1: mac = \"01:00:00:00:00:00\" is no address of one card; the \
             first byte is even, as in \"52:54:00:…\"",
        ),
        (
            "network = \"lan\"\nmtu = 1501",
            "host.toml:9:7: guest \"a\": [[guest.nic]] 1: mtu = 1501 is not possible; write 68 to 1500",
        ),
        (
            "network = \"lan\"\nvlan = 0",
            "host.toml:9:8: guest \"a\": [[guest.nic]] 1: vlan = 0 is not possible; write 1 to 4094",
        ),
        (
            "network = \"lan\"\nvlan = []",
            "host.toml:9:8: guest \"a\": [[guest.nic]] 1: vlan names 0 VLANs; 1 to 64 are possible",
        ),
        (
            "network = \"lan\"\nvlan = [1, 4095]",
            "host.toml:9:8: guest \"a\": [[guest.nic]] 1: vlan = 4095 is not possible; write 0 to 4094",
        ),
        (
            "network = \"lan\"\nqueues = 17",
            "host.toml:9:10: guest \"a\": [[guest.nic]] 1: queues = 17 is not possible; write 1 to 16",
        ),
        (
            "network = \"lan\"\nrate = \"10MiB\"\nisolated = 1",
            "host.toml:9:8: guest \"a\": [[guest.nic]] 1: rate = \"10MiB\" is no rate; write a whole number and a unit, \
             as \"10MiB/s\"\nhost.toml:10:12: guest \"a\": [[guest.nic]] 1: isolated is a whole number; write true or \
             false",
        ),
        (
            "network = \"lan\"\nmac = \"52:54:00:00:00:01\"\n[[guest.nic]]\nnetwork = \"lan\"\nmac = \
             \"52:54:00:00:00:01\"",
            "host.toml:12:7: guest \"a\": [[guest.nic]] 2: another device on this network has the MAC address \
             52:54:00:00:00:01; change one of them",
        ),
    ] {
        assert_eq!(nics(&format!("[[guest.nic]]\n{lines}")), Err(expected.to_owned()), "{lines}");
    }
}

#[test]
fn a_network_device_has_a_pair_of_queues_for_each_vcpu_and_sixteen_at_most() {
    for (vcpus, expected) in [(1, 1), (3, 3), (64, 16)] {
        let found = nics(&format!("vcpus = {vcpus}\n[[guest.nic]]\nnetwork = \"lan\"")).expect("good");
        assert_eq!(found[0].queue_pairs, expected, "{vcpus}");
    }
}

#[test]
fn a_guest_has_eight_network_devices_at_most() {
    let all = |count| nics(&"[[guest.nic]]\nnetwork = \"lan\"\n".repeat(count));
    assert_eq!(all(8).expect("good").len(), 8);
    let expected = "host.toml:3:1: guest \"a\": there are 9 network devices; at most 8 are possible";
    assert_eq!(all(9), Err(expected.to_owned()));
}
