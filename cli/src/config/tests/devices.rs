// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the lab machine's devices in `host.toml`.

use super::*;

const GUEST: &str = "[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"\n";

/// A host with these lines before its guest.
fn host(lines: &str) -> Result<Host, String> {
    load(&format!("{lines}\n{GUEST}")).map(|config| config.host)
}

/// The message for a device with these lines; the first is line 2 of the file.
fn message(lines: &str) -> String {
    host(&format!("[[host.device]]\n{lines}")).expect_err("bad").replace("[[host.device]] 1: ", "")
}

#[test]
fn every_kind_of_device_is_understood() {
    let host = host(
        "[host]\niommu = \"amd\"\n\
         [[host.device]]\nkind = \"nvme\"\nfile = \"initrd.img\"\nserial = \"A-1\"\nvfs = 4\n\
         [[host.device]]\nkind = \"nvme\"\nsize = \"64MiB\"\n\
         [[host.device]]\nkind = \"e1000e\"\nbackend = \"user\"\nforward = [\"tcp:127.0.0.1:2222-:22\"]\n\
         [[host.device]]\nkind = \"igb\"\nbackend = \"socket\"\nlisten = \"[::1]:80\"\nmac = \"52:54:00:0A:00:01\"\n\
         [[host.device]]\nkind = \"virtio-net\"\nbackend = \"socket\"\nlocal = \"./a\"\nremote = \"/b\"\n\
         [[host.device]]\nkind = \"virtio-net\"\nbackend = \"socket\"\nconnect = \"localhost:80\"\n\
         [[host.device]]\nkind = \"e1000e\"\nbackend = \"tap\"\ninterface = \"tap0\"\n\
         [[host.device]]\nkind = \"edu\"\n",
    )
    .expect("good");
    assert_eq!(host.iommu, Iommu::Amd);
    let kinds: Vec<&str> = host.devices.iter().map(Device::kind).collect();
    assert_eq!(kinds, ["nvme", "nvme", "e1000e", "igb", "virtio-net", "virtio-net", "e1000e", "edu"]);
    let [Device::Nvme(first), Device::Nvme(second), Device::Network(user), Device::Network(listen), ..] =
        &host.devices[..]
    else {
        panic!("{:?}", host.devices)
    };
    assert!(matches!(&first.storage, Storage::File(path) if path.ends_with("initrd.img")));
    assert_eq!((first.serial.as_str(), first.virtual_functions), ("A-1", 4));
    assert_eq!((&second.storage, second.serial.as_str()), (&Storage::Temporary(Size::mebibytes(64)), "baton-2"));
    assert_eq!(user.backend, Backend::User { forward: vec!["tcp:127.0.0.1:2222-:22".to_owned()] });
    assert_eq!((&listen.backend, listen.model), (&Backend::Listen(Address::Inet("::1".into(), 80)), Model::Igb));
    assert_eq!(listen.mac.map(|mac| mac.to_string()).as_deref(), Some("52:54:00:0a:00:01"));
    let [Device::Network(datagrams), Device::Network(connect), Device::Network(tap), Device::Edu] = &host.devices[4..]
    else {
        panic!("{:?}", host.devices)
    };
    let Backend::Datagrams { local: Address::Unix(local), remote } = &datagrams.backend else {
        panic!("{datagrams:?}")
    };
    assert!(local.is_absolute() && local.ends_with("a") && *remote == Address::Unix("/b".into()), "{datagrams:?}");
    assert_eq!(connect.backend, Backend::Connect(Address::Inet("localhost".into(), 80)));
    assert_eq!(tap.backend, Backend::Tap("tap0".into()));
}

#[test]
fn a_host_has_neither_iommu_nor_devices_unless_its_file_names_them() {
    let host = host("").expect("good");
    assert_eq!((host.iommu, host.devices), (Iommu::None, Vec::new()));
}

#[test]
fn an_unknown_iommu_or_kind_is_named_with_the_known_ones() {
    let expected = "host.toml:2:9: [host]: iommu = \"intell\" is unknown; did you mean \"intel\"? (possible are none, \
                    amd, intel)";
    assert_eq!(host("[host]\niommu = \"intell\"").expect_err("unknown"), expected);
    assert_eq!(
        message("kind = \"e1000\"\nbackend = \"user\"\nfile = \"x\"\nmax = 1"),
        "host.toml:2:8: kind = \"e1000\" is unknown; did you mean \"e1000e\"? (possible are nvme, e1000e, igb, \
         virtio-net, edu)\nhost.toml:5:1: unknown key \"max\"; did you mean \"mac\"?"
    );
    assert_eq!(message(""), "host.toml:1:1: the key \"kind\" is missing; add it");
}

#[test]
fn a_device_has_the_keys_of_its_kind_alone() {
    assert_eq!(
        message("kind = \"nvme\"\nsize = \"1MiB\"\ninterface = \"tap0\""),
        "host.toml:4:1: unknown key \"interface\"; the keys here are kind, file, size, serial, vfs"
    );
    assert_eq!(
        message("kind = \"e1000e\"\nbackend = \"user\"\nlisten = \"a:1\""),
        "host.toml:4:1: unknown key \"listen\"; the keys here are kind, backend, mac, forward"
    );
    assert_eq!(
        message("kind = \"edu\"\nsize = \"1MiB\""),
        "host.toml:3:1: unknown key \"size\"; the keys here are kind"
    );
}

#[test]
fn impossible_values_are_refused_with_the_possible_ones() {
    let nvme = |line: &str| message(&format!("kind = \"nvme\"\nsize = \"1MiB\"\n{line}"));
    let card = |backend: &str| message(&format!("kind = \"e1000e\"\nbackend = {backend}"));
    let cases = [
        (
            message("kind = \"nvme\"\nsize = 64"),
            "3:8: size = 64 has no unit; write \"64MiB\" or \"64GiB\", with quotes",
        ),
        (
            message("kind = \"nvme\"\nsize = \"1KiB\""),
            "3:8: size = \"1.0 KiB\" is not possible; write whole MiB, from 1MiB to 1TiB",
        ),
        (
            message("kind = \"nvme\""),
            "1:1: the disk has no content; add file = \"…\", or size = \"…\" for a temporary one",
        ),
        (
            message("kind = \"nvme\"\nfile = \"initrd\""),
            "3:8: the file \"initrd\" does not exist; correct the path (it is relative to this file)",
        ),
        (nvme("file = \"vmlinuz\""), "3:8: a disk has a file or a size; remove one of them"),
        (nvme("vfs = 128"), "4:7: vfs = 128 is not possible; write 0 to 127"),
        (nvme("serial = \"a,b\""), "4:10: serial = \"a,b\" is not possible; write 1 to 20 letters, digits, -, _ and ."),
        (message("kind = \"igb\""), "1:1: the key \"backend\" is missing; add it"),
        (card("\"pipe\""), "3:11: backend = \"pipe\" is unknown; possible are user, socket, tap"),
        (
            card("\"user\"\nmac = \"1:2\""),
            "4:7: mac = \"1:2\" is no MAC address; write six bytes, as \"52:54:00:00:00:01\"",
        ),
        (
            card("\"user\"\nmac = \"01:00:5e:00:00:01\""),
            "4:7: mac = \"01:00:5e:00:00:01\" is no address of one card; the first byte is even, as in \"52:54:00:…\"",
        ),
        (
            card("\"user\"\nforward = [\"tcp:22\"]"),
            "4:11: forward = \"tcp:22\" is no rule; write one as \"tcp:127.0.0.1:2222-:22\"",
        ),
        (
            card("\"socket\""),
            "1:1: a socket has listen, or connect, or local and remote (datagrams); write one of these",
        ),
        (
            card("\"socket\"\nlisten = \"host\""),
            "4:10: listen = \"host\" is no address; write HOST:PORT, or the path of a Unix socket with a \"/\"",
        ),
        (
            card("\"tap\"\ninterface = \"a/b\""),
            "4:13: interface = \"a/b\" is no interface; write 1 to 15 letters, digits, -, _ and .",
        ),
        (card("\"tap\""), "1:1: the key \"interface\" is missing; add it"),
    ];
    for (found, expected) in cases {
        assert_eq!(found, format!("host.toml:{expected}"));
    }
}

#[test]
fn devices_do_not_share_files_serial_numbers_and_addresses() {
    let device = |lines: &str| format!("[[host.device]]\n{lines}\n");
    let disk = device("kind = \"nvme\"\nfile = \"vmlinuz\"\nserial = \"a\"");
    let card = device("kind = \"e1000e\"\nbackend = \"user\"\nmac = \"52:54:00:00:00:01\"");
    let expected = [
        "host.toml:7:8: [[host.device]] 2: another disk has the file \"vmlinuz\"; make a copy",
        "host.toml:8:10: [[host.device]] 2: another disk has the serial number \"a\"; choose another",
        "host.toml:16:7: [[host.device]] 4: another card has the same MAC address; change one of them",
    ];
    let error = host(&format!("{disk}{disk}{card}{card}")).expect_err("shared");
    assert_eq!(error.lines().collect::<Vec<_>>(), expected);
    let many = device("kind = \"edu\"").repeat(13);
    let error = host(&format!("[host]\n{many}")).expect_err("too many");
    assert_eq!(error, "host.toml:1:1: [host]: there are 13 devices; at most 12 are possible");
}

#[test]
fn an_empty_disk_is_refused() {
    let folder = folder();
    fs::write(folder.path().join("disk.img"), "").expect("written");
    let text = format!("[[host.device]]\nkind = \"nvme\"\nfile = \"disk.img\"\n{GUEST}");
    let error = Config::parse(&folder.path().join("host.toml"), &text).expect_err("empty").to_string();
    assert!(error.ends_with("disk.img\" is empty; give it a size: truncate -s 64M FILE"), "{error}");
}
