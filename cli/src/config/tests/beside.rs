// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of guests that are to run beside those of a host.

use bundle::{Bundle, Manifest, VsockConfig};

use super::*;

/// A host with networks `lan` and `wan`, a guest `storage` with sockets and a device on `wan`, and a guest `plain`.
const HOST: &str = "
[[network]]
name = \"lan\"

[[network]]
name = \"wan\"
mtu = 9000

[[guest]]
name = \"storage\"
kernel = \"vmlinuz\"
memory = \"64MiB\"
vsock = true

[[guest.nic]]
network = \"wan\"
mac = \"52:54:00:00:00:01\"

[[guest]]
name = \"plain\"
kernel = \"vmlinuz\"
memory = \"64MiB\"
";

fn host() -> Manifest {
    let folder = folder();
    let config = Config::parse(&folder.path().join("host.toml"), HOST).expect("good");
    let bundle = crate::bundle::build(&config, None).expect("good");
    Bundle::parse(&bundle).expect("good").manifest().clone()
}

/// A guest with these lines after its name, kernel and memory (lines 1 to 4).
fn beside(lines: &str) -> Result<Config, String> {
    let folder = folder();
    let path = folder.path().join("host.toml");
    let text = format!("[[guest]]\nname = \"db\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"\n{lines}\n");
    fs::write(&path, text).expect("written");
    let prefix = format!("{}/", folder.path().display());
    Config::load_beside(&path, &host()).map_err(|error| error.to_string().replace(&prefix, ""))
}

#[test]
fn it_may_name_the_host_s_networks_and_guests() {
    let lines =
        "vsock = { peers = [\"storage\"] }\n[[guest.nic]]\nnetwork = \"wan\"\n[[guest.disk]]\nnbd = \"storage:db\"";
    let config = beside(lines).expect("good");
    let guest = &config.guests[0];
    assert_eq!((guest.nics[0].network, guest.nics[0].mtu), (1, 9000));
    assert_eq!(guest.vsock, Some(VsockConfig { cid: 4, peers: vec![3], control: None }));
    assert_eq!((guest.disks[0].cid, guest.disks[0].export.as_str()), (3, "db"));
    assert_eq!(config.networks, host().host.networks);
}

#[test]
fn a_network_that_the_host_has_is_the_host_s() {
    let config = beside("[[guest.nic]]\nnetwork = \"lan\"\n[[network]]\nname = \"lan\"").expect("good");
    assert_eq!(config.networks, host().host.networks);
    let config = beside("[[network]]\nname = \"dmz\"").expect("good");
    assert_eq!(config.networks.last().map(|network| network.name.as_str()), Some("dmz"));
}

#[test]
fn what_the_host_does_not_have_is_named_with_a_suggestion() {
    for (lines, expected) in [
        (
            "[[guest.nic]]\nnetwork = \"wam\"",
            "host.toml:6:11: guest \"db\": [[guest.nic]] 1: there is no network \"wam\"; did you mean \"wan\"?",
        ),
        (
            "[[guest.nic]]\nnetwork = \"wan\"\nmac = \"52:54:00:00:00:01\"",
            "host.toml:7:7: guest \"db\": [[guest.nic]] 1: another device on this network has the MAC address \
             52:54:00:00:00:01; change one of them",
        ),
        ("vsock = { cid = 3 }", "host.toml:5:9: guest \"db\": vsock: another guest has the cid 3; change one of them"),
        (
            "vsock = { peers = [\"storag\"] }",
            "host.toml:5:21: guest \"db\": vsock: peers: there is no guest \"storag\"; did you mean \"storage\"?",
        ),
        (
            "[[guest.disk]]\nnbd = \"plain:db\"",
            "host.toml:6:7: guest \"db\": [[guest.disk]] 1: nbd: the guest \"plain\" has no sockets; add `vsock = true` \
             to it",
        ),
    ] {
        assert_eq!(beside(lines).map(drop), Err(expected.to_owned()), "{lines}");
    }
}
