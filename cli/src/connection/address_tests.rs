// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of addresses.

use proptest::prelude::*;

use super::{Address, Identity};

fn parsed(text: &str) -> Address {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    text.parse::<Address>().expect_err(text).to_string()
}

#[test]
fn an_address_has_a_scheme_and_the_parts_that_the_scheme_takes() {
    assert_eq!(parsed("lab:default"), Address::Lab("default".to_owned()));
    assert_eq!(parsed("unix:/run/a:b"), Address::Unix("/run/a:b".into()));
    assert_eq!(parsed("tty:/dev/ttyS1"), Address::Tty { device: "/dev/ttyS1".into(), baud: 115_200 });
    assert_eq!(parsed("tty:/dev/ttyUSB0,9600"), Address::Tty { device: "/dev/ttyUSB0".into(), baud: 9600 });
    assert_eq!(parsed("tcp:[fe80::1%eth0]:7001"), Address::Tcp { host: "fe80::1%eth0".to_owned(), port: 7001 });
    for (text, name) in [("serve:/run/a,b.sock,rack1", Some("rack1")), ("serve:/run/a,b.sock,", None)] {
        let address = Address::Serve { path: "/run/a,b.sock".into(), name: name.map(str::to_owned) };
        assert_eq!((parsed(text), address.to_string()), (address.clone(), text.to_owned()));
    }
    for (text, name) in [("https://a.example:9464/rack1", Some("rack1")), ("https:a.example:9464", None)] {
        let (host, name, identity) = ("a.example".to_owned(), name.map(str::to_owned), Identity::default());
        assert_eq!(parsed(text), Address::Https { host, port: 9464, name, identity });
    }
    assert_eq!(parsed("vsock:2:1024"), Address::Vsock { cid: 2, port: 1024 });
    assert_eq!(parsed("vsock:2"), Address::Vsock { cid: 2, port: wire::VSOCK_PORT });
    let from_there = Some(Box::new(parsed("tty:/dev/ttyS1")));
    let host = "root@gateway".to_owned();
    assert_eq!(parsed("ssh:root@gateway:22/tty:/dev/ttyS1"), Address::Ssh { host, port: Some(22), from_there });
    let host = "::1".to_owned();
    assert_eq!(parsed("ssh:[::1]"), Address::Ssh { host, port: None, from_there: None });
}

#[test]
fn the_machine_below_a_guest_is_distinguished_from_those_behind_a_line() {
    assert!(parsed("vsock:2").is_below() && parsed("vsock:2:1024").is_below());
    for text in ["vsock:3", "lab:default", "tcp:localhost:7001", "ssh:gateway/vsock:2"] {
        assert!(!parsed(text).is_below(), "{text}");
    }
}

#[test]
fn a_misspelt_scheme_is_guessed() {
    let error = refused("tyt:/dev/ttyS0");
    assert!(error.contains("no scheme \"tyt\"") && error.ends_with("did you mean \"tty\"?"), "{error}");
}

#[test]
fn an_address_without_a_scheme_gets_the_likely_one() {
    for (text, meant) in [("/dev/ttyS1", "tty:/dev/ttyS1"), ("/run/com2", "unix:/run/com2"), ("web", "lab:web")] {
        assert!(refused(text).contains(&format!("perhaps {meant} is meant")), "{}", refused(text));
    }
}

#[test]
fn an_address_that_lacks_a_part_or_has_a_bad_one_is_refused_with_the_form() {
    let cases = [
        ("lab:", "write lab:NAME"),
        ("unix:", "write unix:PATH"),
        ("tty:", "write tty:"),
        ("serve:", "it has no path; write serve:PATH[,NAME]"),
        ("serve:/run/a,b c", "\"b c\" is no name of a host"),
        ("tty:/dev/ttyS0,fast", "\"fast\" is no rate"),
        ("tty:/dev/ttyS0,0", "is no rate"),
        ("tcp:host", "it has no port"),
        ("tcp:host:0", "is no port"),
        ("tcp:host:65536", "is no port"),
        ("tcp::7001", "is no host"),
        ("https://host/rack1", "it has no port; write https://SERVICE:PORT/NAME"),
        ("https://host:0/rack1", "is no port"),
        ("https://host:1/a/b", "\"a/b\" is no name of a host"),
        ("https://user@host:1", "is no host"),
        ("vsock:", "is no context identifier"),
        ("vsock:4294967295:1", "is no context identifier"),
        ("vsock:2:x", "is no port"),
        ("ssh:", "is no machine"),
        ("ssh:-oProxyCommand=x", "is no machine"),
        ("ssh:@host", "is no machine"),
        ("ssh:[]", "is no machine"),
        ("tcp:[host]:7001", "is no host"),
        ("ssh:host/ttx:/dev/ttyS1", "did you mean \"tty\"?"),
        ("unix:/a\nb", "control characters"),
    ];
    for (text, reason) in cases {
        assert!(refused(text).contains(reason), "{}", refused(text));
    }
}

proptest! {
    #[test]
    fn every_address_is_that_of_its_text(text in "(lab|unix|tty|tcp|https|vsock|ssh):[a-z0-9/@:,.\\[\\]-]{1,20}") {
        if let Ok(address) = text.parse::<Address>() {
            prop_assert_eq!(address.to_string().parse::<Address>(), Ok(address));
        }
    }

    #[test]
    fn any_text_is_an_address_or_refused(text in any::<String>()) {
        let _ = text.parse::<Address>();
    }
}
