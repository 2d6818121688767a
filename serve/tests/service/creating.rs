// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of new guests.

use serde_json::{Value, json};
use wire::{FileInfo, RequestBody};

use super::common::{Answer, Running};

/// A guest of the host's files with a card on its network.
fn described() -> Value {
    json!({
        "name": "new", "kernel": "vmlinuz", "initrd": "initrd", "memory": "64MiB", "vcpus": 2,
        "cmdline": "console=ttyS0", "nic": [{"network": "lan"}], "virtio_console": true,
    })
}

/// Starts a service of a host with an initial RAM disk of 2 MiB.
fn start() -> Running {
    let running = Running::start();
    let file = FileInfo { name: "initrd".to_owned(), bytes: 2 << 20, is_sent: true, is_needed: false };
    running.host.state.lock().expect("state").own.files.push(file);
    running
}

fn create(running: &Running, query: &str, guest: &Value) -> Answer {
    running.post(&format!("/api/v1/hosts/rack1/guests{query}"), guest.to_string().as_bytes())
}

#[test]
fn a_guest_of_the_hosts_files_is_added_and_left_stopped_if_that_is_asked() {
    let running = start();
    let answer = create(&running, "?no_start=true", &described());
    assert_eq!((answer.status, answer.json()), (200, json!({"done": "guest-create", "subject": "new"})));
    let orders = running.host.state.lock().expect("state").own.orders.clone();
    let [RequestBody::VmCreate { manifest }] = &orders[..] else { panic!("{orders:?}") };
    running.host.state.lock().expect("state").own.config = manifest.clone();
    let guest = running.get("/api/v1/hosts/rack1/config").json()["guest"][0].clone();
    for (key, value) in [("name", json!("new")), ("kernel", json!("vmlinuz")), ("initrd", json!("initrd"))] {
        assert_eq!(guest[key], value, "{guest}");
    }
    assert_eq!((&guest["vcpus"], &guest["nic"][0]["network"]), (&json!(2), &json!("lan")), "{guest}");
    let audit = running.audit();
    assert_eq!((&audit[0]["request"], &audit[0]["subject"]), (&json!("guest-create"), &json!("new")));
    assert_eq!(audit[1]["result"], "done");
}

#[test]
fn a_guest_that_is_added_and_not_started_is_reported_as_such() {
    let running = start();
    // The host does not know the guest when it is to be started.
    let answer = create(&running, "", &described());
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("unknown-vm")), "{}", answer.text());
    let message = answer.json()["message"].as_str().expect("a message").to_owned();
    assert!(message.starts_with("new is created, and not started: "), "{message}");
}

#[test]
fn a_guest_that_is_not_possible_is_refused_with_every_reason() {
    let running = start();
    let with = |key: &str, value: Value| {
        let mut guest = described();
        guest[key] = value;
        guest
    };
    let cases = [
        (with("kernel", json!("/etc/passwd")), 404, "the host has no file \"/etc/passwd\"; send it first"),
        (with("kernel", json!("vmlinux")), 404, "did you mean \"vmlinuz\""),
        (with("modules", json!(["../x"])), 404, "the host has no file \"../x\""),
        (with("memory", json!("2MiB")), 400, "kernel and initrd are larger"),
        (with("nic", json!([{"network": "wan"}])), 400, "wan"),
        (with("wieght", json!(2)), 400, "unknown key \"wieght\"; did you mean \"weight\"?"),
        (with("drivers", json!("/lib/modules/6.1")), 400, "drivers is a folder that the service does not read"),
        (with("cmdline", Value::Null), 400, "leave out keys without a value"),
        (with("memory", json!(64)), 422, "memory"),
        (json!({"name": "new"}), 422, "missing field"),
    ];
    for (guest, status, message) in cases {
        let answer = create(&running, "", &guest);
        assert_eq!(answer.status, status, "{guest}: {}", answer.text());
        let text = answer.json()["message"].as_str().expect("a message").to_owned();
        assert!(text.contains(message), "{text}");
    }
    assert!(running.audit().is_empty(), "nothing was ordered");
}
