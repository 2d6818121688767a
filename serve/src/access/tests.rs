// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of access.

use proptest::prelude::*;

use super::*;

fn access(text: &str) -> Result<Access> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("access.toml");
    fs::write(&path, text)?;
    Access::load(&path)
}

const FILES: &str = "certificate = \"a.pem\"\nkey = \"/etc/b.pem\"\nauthority = \"c.pem\"\n";

#[test]
fn a_role_includes_those_before_it() {
    assert!(Role::Read < Role::Operate && Role::Operate < Role::Update);
}

#[test]
fn paths_are_relative_to_the_file() {
    let access = access(&format!("{FILES}[roles]\nalice = \"update\"\n")).expect("read");
    assert!(access.certificate.is_absolute() && access.certificate.ends_with("a.pem"));
    assert_eq!(access.key, Path::new("/etc/b.pem"));
}

#[test]
fn a_file_without_roles_or_with_an_unknown_one_is_refused() {
    let cases = [
        (FILES.to_owned(), "no client has a role"),
        (format!("{FILES}[roles]\nalice = \"root\"\n"), "unknown variant `root`"),
        (format!("{FILES}ca = 1\n[roles]\nalice = \"read\"\n"), "unknown field `ca`"),
        ("[roles]\nalice = \"read\"\n".to_owned(), "missing field `certificate`"),
    ];
    for (text, reason) in cases {
        let error = access(&text).expect_err(reason);
        assert!(format!("{error:#}").contains(reason), "{error:#}");
    }
}

#[test]
fn the_greatest_role_of_a_certificates_names_counts() {
    let access = access(&format!("{FILES}[roles]\na = \"read\"\nb = \"operate\"\n")).expect("read");
    let peer = |names: &[&str]| {
        let Peer { who, role, .. } = access.peer(names.iter().copied());
        (who, role)
    };
    assert_eq!(peer(&["a", "b"]), ("b".to_owned(), Some(Role::Operate)));
    assert_eq!(peer(&["x", "a"]), ("a".to_owned(), Some(Role::Read)));
    assert_eq!(peer(&["x", "y"]), ("x".to_owned(), None));
    assert_eq!(peer(&[]), ("a certificate without a name".to_owned(), None));
}

#[test]
fn another_sites_page_sends_no_order() {
    let own = Sender { host: Some("localhost:8080"), origin: Some("http://localhost:8080"), site: Some("same-origin") };
    let check = |over, is_order, sender| check_sender(over, is_order, sender).is_ok();
    assert!(check(Over::Unix, true, own));
    assert!(check(Over::Unix, true, Sender { host: Some("baton"), ..Sender::default() }), "no browser");
    for foreign in [
        Sender { origin: Some("http://localhost:9"), ..own },
        Sender { origin: Some("null"), ..own },
        Sender { site: Some("cross-site"), ..own },
        Sender { site: Some("same-site"), origin: None, ..own },
    ] {
        assert!(!check(Over::Unix, true, foreign) && check(Over::Unix, false, foreign), "{foreign:?}");
        assert!(!check(Over::Tls, true, foreign), "{foreign:?}");
    }
}

#[test]
fn another_sites_name_for_this_machine_reads_nothing() {
    let named = |host| Sender { host: Some(host), ..Sender::default() };
    for host in ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example:1", ""] {
        assert!(check_sender(Over::Loopback, false, named(host)).is_err(), "{host}");
        assert!(check_sender(Over::Unix, false, named(host)).is_err(), "{host}");
        assert!(check_sender(Over::Tls, false, named(host)).is_ok(), "its certificate names it");
    }
    for host in ["localhost", "127.0.0.1:9464", "[::1]:9464", "[::1]"] {
        assert!(check_sender(Over::Loopback, false, named(host)).is_ok(), "{host}");
    }
}

proptest! {
    #[test]
    fn any_headers_are_accepted_or_refused(host in any::<String>(), origin in any::<String>(), site in any::<String>()) {
        let sender = Sender { host: Some(&host), origin: Some(&origin), site: Some(&site) };
        for over in [Over::Unix, Over::Loopback, Over::Tls] {
            let order = check_sender(over, true, sender);
            // Every request that is refused as a question is refused as an order.
            prop_assert!(order.is_err() || check_sender(over, false, sender).is_ok());
        }
    }
}
