// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of the tool's connection to a service: certificates, files and addresses that are wrong.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use baton::client::Client;
use baton::connection::{Address, Identity};
use baton::program::Kind;

use super::certificates::{authority, certificate, write_identity};
use super::control::{Service, address, free_port};

impl Service {
    /// Returns the error of a client that does not reach the host.
    fn error(&self, host: Option<&str>, identity: Identity) -> String {
        let error = Client::reach(&address(self.port, host, identity), None).err().expect("it is refused");
        assert_eq!(Kind::of(&error), Kind::Unreachable, "{error:#}");
        format!("{error:#}")
    }
}

#[test]
fn each_bad_certificate_is_named_with_its_reason_and_a_hint() {
    let service = Service::start();
    let (port, folder, ours) = (service.port, service.folder.path(), &service.authority);
    let rack1 = |identity| service.error(Some("rack1"), identity);
    let place = format!("localhost:{port}");
    let none = Identity { certificate: None, key: None, ..service.identity("alice") };
    assert_eq!(
        rack1(none),
        format!("{place} demands a client's certificate; name one with --cert and --cert-key, or BATON_CERT")
    );
    let expired = write_identity(folder, &certificate(ours, "alice", Some(2020)), ours);
    let file = expired.certificate.clone().expect("a file");
    let expected = format!("{place} refuses {}: it has expired, or is not valid yet; renew it", file.display());
    assert_eq!(rack1(expired), expected);
    let theirs = authority("theirs");
    let foreign = write_identity(folder, &certificate(&theirs, "alice", None), ours);
    let error = rack1(foreign);
    assert!(error.contains("the service does not know its authority; use a certificate of that one"), "{error}");
    let distrusting = write_identity(folder, &certificate(ours, "alice", None), &theirs);
    let error = rack1(distrusting);
    assert!(error.starts_with(&format!("the certificate of {place} is not of the authority in ")), "{error}");
    assert!(error.ends_with("correct --ca or BATON_CA"), "{error}");
    let elsewhere = Address::Https {
        host: "127.0.0.1".to_owned(),
        port,
        name: Some("rack1".to_owned()),
        identity: service.identity("alice"),
    };
    let error = format!("{:#}", Client::reach(&elsewhere, None).err().expect("another name"));
    assert!(error.contains("is for another name") && error.ends_with("use its name in the address"), "{error}");
    assert!(service.audit().is_empty());
}

#[test]
fn files_and_addresses_that_are_wrong_are_named() {
    let service = Service::start();
    let alice = || service.identity("alice");
    let gone = Identity { certificate: Some("/nowhere/alice.pem".into()), ..alice() };
    assert!(service.error(None, gone).starts_with("/nowhere/alice.pem cannot be read"));
    let public = alice();
    let key = public.key.clone().expect("a file");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).expect("set");
    let error = service.error(Some("rack1"), public);
    assert!(error.contains(&format!("{} can be read by others", key.display())), "{error}");
    let others = Identity { key: service.identity("bob").key, ..alice() };
    let error = service.error(Some("rack1"), others);
    assert!(error.contains("client.pem with the key in "), "{error}");
    let error = service.error(Some("rakc1"), alice());
    assert_eq!(error, format!("localhost:{}: there is no host \"rakc1\"; did you mean \"rack1\"?", service.port));
    let error = service.error(None, alice());
    assert!(error.contains("the service has 2 hosts (rack1, rack2); add a name to the address"), "{error}");
    let error = service.error(Some("rack2"), alice());
    assert!(error.contains("rack2: there is no socket /nowhere/com2.sock"), "{error}");
    let plain = Service { port: free_port().port(), ..service };
    let error = plain.error(Some("rack1"), plain.identity("alice"));
    assert!(error.contains("start `baton serve` there"), "{error}");
}
