// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of configurations that are shown: the printed one equals the one that was read.

use std::fs;

use bundle::Bundle;

use super::host_toml;
use crate::bundle::build;
use crate::config::Config;

/// Every key of a bundle.
const FULL: &str = r#"
[host]
when_done = "stay"
image = "none"
[trust]
allow_downgrade = false
serial = "open"
[[trust.control]]
name = "desk"
key = "ed25519:ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
role = "operate"
[[network]]
name = "lan"
mtu = 9000
[[guest]]
name = "a"
kernel = "vmlinuz"
initrd = "initrd.img"
modules = ["vmlinuz"]
cmdline = "console=ttyS0 quoted=\"a\\b\""
memory = "64MiB"
vcpus = 3
weight = 300
cap = 150
on_panic = "dump"
hung_s = 0
autostart = false
debug_exit = true
paravirtual = true
pmu = "amd"
pmu_events = ["d1:20", "3c"]
rng = true
virtio_console = true
uuid = "0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0"
serial = "42"
oem_strings = ["one", "two"]
devices = ["8086:10d3", { function = "0000:00:04.0", reset = "none", gsi = 11, sriov = 2 }]
vsock = { cid = 7, peers = ["b"] }
[[guest.nic]]
network = "lan"
mac = "52:54:00:00:00:01"
mtu = 1500
vlan = [0, 4094]
isolated = true
trusted = true
rate = "10MiB/s"
queues = 2
[[guest.nic]]
network = "lan"
vlan = 7
[[guest.disk]]
nbd = "b:root"
port = 7
read-only = true
cache = "writeback"
timeout = 5
serial = "disk-1"
iops = 100
rate = "1MiB/s"
[[guest]]
name = "b"
kernel = "vmlinuz"
memory = "8MiB"
vsock = { cid = 8, peers = [], control = "operate", rights = ["console", "devices"] }
"#;

/// The bundle of a host.toml, and the folder of its files.
fn bundled(folder: &tempfile::TempDir, text: &str) -> Vec<u8> {
    let config =
        Config::parse(&folder.path().join("host.toml"), text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    build(&config, None).expect("bundled")
}

#[test]
fn a_shown_configuration_is_the_same_when_it_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["vmlinuz", "initrd.img"] {
        fs::write(folder.path().join(name), name).expect("written");
    }
    for text in [FULL, "", "[host]\nwhen_done = 'debug-exit'\n"] {
        let built = bundled(&folder, text);
        let shown = host_toml(Bundle::parse(&built).expect("whole").manifest());
        assert_eq!(bundled(&folder, &shown), built, "{shown}");
    }
}

#[test]
fn usual_values_are_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("vmlinuz"), "kernel").expect("written");
    let built = bundled(&folder, "[[guest]]\nname = 'a'\nkernel = 'vmlinuz'\nmemory = '1GiB'\n");
    let shown = host_toml(Bundle::parse(&built).expect("whole").manifest());
    let guest = "\n[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\nmemory = \"1024MiB\"\nvcpus = 1\n";
    assert!(shown.ends_with(guest), "{shown}");
}
