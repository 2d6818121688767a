// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of the control channel.

use bundle::{ControlKeyConfig, ControlRole};

use super::load;

const GUEST: &str = "[[guest]]\nname = \"a\"\nkernel = \"vmlinuz\"\nmemory = \"64MiB\"\n";

fn public(number: u8) -> seal::PublicKey {
    seal::SecretKey::from_seed([number; 32]).public()
}

fn key(number: u8, name: &str, role: &str) -> String {
    format!("[[trust.control]]\nname = \"{name}\"\nkey = \"{}\"\nrole = \"{role}\"\n", public(number))
}

#[test]
fn control_keys_are_read_with_their_roles() {
    let text = [GUEST, &key(1, "ops", "update"), &key(2, "old", "revoked")].concat();
    let control = load(&text).expect("good").control;
    let of = |number, name: &str, role| ControlKeyConfig { name: name.to_owned(), key: public(number).bytes(), role };
    assert_eq!(control.keys, [of(1, "ops", ControlRole::Update), of(2, "old", ControlRole::Revoked)]);
    assert!(!control.is_serial_open);
    let open = load(&[GUEST, "[trust]\nserial = \"open\"\n", &key(2, "watch", "read")].concat()).expect("good");
    assert!(open.control.is_serial_open && open.control.keys.len() == 1);
    assert_eq!(load(GUEST).expect("good").control.keys, []);
}

#[test]
fn mistakes_in_control_keys_are_named() {
    let many: String = (1..18).map(|number| key(number, &format!("k{number}"), "update")).collect();
    for (keys, part) in [
        (key(1, "ops", "operate"), "no control key has the role \"update\""),
        (key(1, "ops", "admin"), "control key \"ops\": role"),
        (key(1, "a b", "update"), "the name is not possible"),
        (key(1, "a", "update") + &key(2, "a", "read"), "another control key has the same name"),
        (key(1, "a", "update") + &key(1, "b", "read"), "the key stands twice"),
        ("[[trust.control]]\nname = \"a\"\nkey = \"x\"\nrole = \"update\"\n".to_owned(), "x cannot be read"),
        ("[trust]\nserial = \"closed\"\n".to_owned(), "serial"),
        (many, "there are 17 control keys; at most 16 are possible"),
    ] {
        let error = load(&[GUEST, &keys].concat()).expect_err("a mistake");
        assert!(error.contains(part), "{part}: {error}");
    }
}
