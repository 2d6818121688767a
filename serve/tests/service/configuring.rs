// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the API's paths for configuration, files, keys, the ends of guests, and restarts.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use serve::access::Role;
use wire::{RequestBody, UpdateBy, VmSettings, VmState};

use super::common::{Answer, Running};

const HOST: &str = "/api/v1/hosts/rack1";

/// Asks for a path of the host.
fn get(running: &Running, path: &str) -> Answer {
    running.get(&format!("{HOST}{path}"))
}

/// Gives an order.
fn post(running: &Running, path: &str, body: &[u8]) -> Answer {
    running.post(&format!("{HOST}{path}"), body)
}

/// Returns the orders that the host has noted.
fn orders(running: &Running) -> Vec<RequestBody> {
    running.host.state.lock().expect("state").own.orders.clone()
}

/// Returns the requests, subjects and results in the audit log.
fn audit(running: &Running) -> Vec<(String, String, String)> {
    let lines = running.audit();
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    let result = |order: &Value| lines.iter().find(|line| line["order"] == *order && line["result"].is_string());
    let asked = lines.iter().filter(|line| line["request"].is_string());
    asked
        .map(|line| {
            let answer = result(&line["order"]).expect("an answer");
            (text(line, "request"), text(line, "subject"), text(answer, "result"))
        })
        .collect()
}

/// Returns an entry of the audit log.
fn entry(request: &str, subject: &str, result: &str) -> (String, String, String) {
    (request.to_owned(), subject.to_owned(), result.to_owned())
}

#[test]
fn the_configuration_is_shown_as_json_and_as_a_host_toml() {
    let running = Running::start();
    let config = get(&running, "/config").json();
    assert_eq!((&config["guest"][0]["name"], &config["network"][0]["name"]), (&json!("web"), &json!("lan")));
    let answer = get(&running, "/config.toml");
    assert!(answer.head.contains("application/toml"), "{}", answer.head);
    assert!(answer.text().contains("[[guest]]\nname = \"web\""), "{}", answer.text());
}

#[test]
fn the_host_before_is_shown_by_its_epitaph_and_its_part_of_the_log() {
    let running = Running::start();
    running.host.state.lock().expect("state").log(9, "of the new image");
    let previous = get(&running, "/log/previous").json();
    assert_eq!(previous["lines"], json!(["panic"]));
    let log = previous["log"].as_array().expect("records");
    assert_eq!((log.len(), &log[0]["time_ns"]), (1, &json!(7)));
}

#[test]
fn a_file_is_sent_once_listed_and_removed() {
    let running = Running::start();
    assert_eq!(get(&running, "/files").json()[0]["name"], "vmlinuz");
    assert_eq!(post(&running, "/files", b"").status, 400);
    let sent = post(&running, "/files", b"disk");
    assert_eq!((sent.status, &sent.json()["bytes"]), (200, &json!(4)), "{}", sent.text());
    let digest = sent.json()["name"].as_str().expect("a name").to_owned();
    assert_eq!(digest.len(), 64);
    assert_eq!(post(&running, "/files", b"disk").json()["name"], *digest);
    assert_eq!(get(&running, "/files").json()[1]["name"], *digest);
    let removed = post(&running, &format!("/files/{digest}/remove"), b"");
    assert_eq!((removed.status, &removed.json()["done"]), (200, &json!("file-remove")));
    assert_eq!(post(&running, "/files/vmlinuz/remove", b"").status, 409);
    let upload = format!("file of 4 bytes, SHA-256 {}…", &digest[..16]);
    let expected = [
        entry("upload", &upload, "done"),
        entry("upload", &upload, "done"),
        entry("file-remove", &digest, "done"),
        entry("file-remove", "vmlinuz", "refused"),
    ];
    assert_eq!(audit(&running), expected);
}

#[test]
fn keys_are_listed_and_revoked() {
    let running = Running::start();
    let key = get(&running, "/keys").json()[0].clone();
    assert_eq!((&key["name"], &key["role"], &key["sessions"]), (&json!("alice"), &json!("update"), &json!(1)));
    assert!(key["key"].as_str().expect("a key").starts_with("ed25519:"), "{key}");
    assert_eq!(post(&running, "/keys/alice/revoke", b"").status, 200);
    assert_eq!(orders(&running), [RequestBody::RevokeControlKey { name: "alice".to_owned() }]);
    assert_eq!(audit(&running), [entry("key-revoke", "alice", "done")]);
}

#[test]
fn settings_are_changed_and_bad_ones_refused_in_json() {
    let running = Running::start();
    let answer = post(&running, "/guests/web/set", br#"{"weight": 200, "autostart": false}"#);
    assert_eq!((answer.status, answer.json()), (200, json!({"done": "guest-set", "subject": "web"})));
    let settings = VmSettings { weight: Some(200), autostart: Some(false), ..VmSettings::default() };
    assert_eq!(orders(&running), [RequestBody::VmSet { name: "web".to_owned(), settings }]);
    for (body, status) in [("{}", 400), ("{", 400), (r#"{"wait": 1}"#, 422), (r#"{"weight": "x"}"#, 422)] {
        let answer = post(&running, "/guests/web/set", body.as_bytes());
        assert_eq!((answer.status, &answer.json()["error"]), (status, &json!("invalid")), "{body}: {}", answer.text());
    }
    let large = format!(r#"{{"on_panic": "{}"}}"#, "x".repeat(1 << 16));
    assert_eq!(post(&running, "/guests/web/set", large.as_bytes()).status, 413);
    let answer = post(&running, "/guests/nowhere/set", br#"{"weight": 200}"#);
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("unknown-vm")));
    assert_eq!(audit(&running), [entry("guest-set", "web", "done"), entry("guest-set", "nowhere", "not-found")]);
}

#[test]
fn a_guest_is_deleted() {
    let running = Running::start();
    assert_eq!(post(&running, "/guests/db/delete", b"").status, 200);
    assert_eq!(orders(&running), [RequestBody::VmDelete { name: "db".to_owned() }]);
    assert_eq!(post(&running, "/guests/nowhere/delete", b"").status, 404);
    assert_eq!(audit(&running), [entry("guest-delete", "db", "done"), entry("guest-delete", "nowhere", "not-found")]);
}

#[test]
fn a_guest_shuts_down_by_itself_or_is_stopped_if_that_is_asked() {
    let running = Running::start();
    running.host.state.lock().expect("state").own.shuts_down = false;
    let shutdown = |query: &str| {
        let answer = post(&running, &format!("/guests/web/shutdown{query}"), b"");
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["done"].as_str().expect("a result").to_owned()
    };
    assert_eq!(shutdown(""), "asked");
    assert_eq!(running.host.state.lock().expect("state").guests[0].state, VmState::Running);
    assert_eq!(shutdown("?timeout=0"), "stopped");
    assert_eq!(shutdown("?timeout=0"), "stopped-already");
    assert_eq!(post(&running, "/guests/web/start", b"").status, 200);
    running.host.state.lock().expect("state").own.shuts_down = true;
    assert_eq!(shutdown("?timeout=60"), "shut-down");
    for query in ["?timeout=3601", "?timeout=-1", "?wait=1"] {
        let answer = post(&running, &format!("/guests/web/shutdown{query}"), b"");
        assert_eq!((answer.status, &answer.json()["error"]), (400, &json!("invalid")), "{query}");
    }
    let answer = post(&running, "/guests/wbe/shutdown", b"");
    assert_eq!(answer.status, 404);
    assert!(answer.text().contains("did you mean"), "{}", answer.text());
    assert_eq!(audit(&running)[0], entry("guest-shutdown", "web", "done"));
    assert_eq!(audit(&running)[5], entry("guest-shutdown", "wbe", "not-found"));
}

#[test]
fn a_shutdown_that_waits_leaves_the_line_to_others() {
    let running = Running::start();
    running.host.state.lock().expect("state").own.shuts_down = false;
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| post(&running, "/guests/web/shutdown?timeout=60", b""));
        running.until("it is asked", |running| !orders(running).is_empty());
        let begun = Instant::now();
        assert_eq!(post(&running, "/guests/web/stop", b"").status, 200);
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert_eq!(waits.join().expect("it ends").json()["done"], "shut-down");
    });
}

#[test]
fn a_host_is_restarted_with_its_image_or_one_that_is_sent() {
    let running = Running::start();
    let answer = post(&running, "/restart", b"");
    assert_eq!((answer.status, &answer.json()["generation"]), (200, &json!(2)), "{}", answer.text());
    let image = baton::testing::test_image(5, 3, 4);
    let answer = post(&running, "/restart?by=image&allow_downgrade=true", &image);
    assert_eq!((answer.status, &answer.json()["generation"]), (200, &json!(3)), "{}", answer.text());
    let expected = [RequestBody::Restart, RequestBody::PermitDowngrade, RequestBody::RestartUploaded];
    assert_eq!(orders(&running), expected);
    for (path, body) in
        [("?by=previous", &b""[..]), ("?by=image", b""), ("", b"x"), ("?by=disk", b""), ("?dry_run=true", b"")]
    {
        let answer = post(&running, &format!("/restart{path}"), body);
        assert_eq!((answer.status, &answer.json()["error"]), (400, &json!("invalid")), "{path}");
    }
    let answer = post(&running, "/restart?by=image", b"no image");
    assert_eq!((answer.status, &answer.json()["error"]), (409, &json!("refused")), "{}", answer.text());
    let expected =
        [entry("restart", "bundle", "done"), entry("restart", "image", "done"), entry("restart", "image", "refused")];
    assert_eq!(audit(&running), expected);
}

#[test]
fn a_host_is_not_restarted_while_an_update_is_under_way() {
    let running = Running::start();
    running.host.state.lock().expect("state").holds_update = true;
    assert_eq!(post(&running, "/update?by=bundle", b"").status, 202);
    let answer = post(&running, "/restart", b"");
    assert_eq!((answer.status, &answer.json()["error"]), (409, &json!("busy")), "{}", answer.text());
    running.host.state.lock().expect("state").holds_update = false;
}

#[test]
fn an_update_that_has_to_be_confirmed_is_confirmed() {
    let running = Running::start();
    let answer = post(&running, "/update?by=bundle&confirm_within=120", b"");
    assert_eq!((answer.status, &answer.json()["confirm_within"]), (202, &json!(120)), "{}", answer.text());
    running.until("it is done", |running| get(running, "/updates").json()[0]["step"] == "done");
    assert_eq!(post(&running, "/confirm", b"").status, 200);
    let update = RequestBody::UpdateUnlessConfirmed { is_dry_run: false, by: UpdateBy::Bundle, seconds: 120 };
    assert_eq!(orders(&running), [update, RequestBody::Confirm]);
    for seconds in ["0", "86401", "x"] {
        let answer = post(&running, &format!("/update?by=bundle&confirm_within={seconds}"), b"");
        assert_eq!((answer.status, &answer.json()["error"]), (400, &json!("invalid")), "{seconds}");
    }
    assert_eq!(audit(&running), [entry("update", "bundle", "done"), entry("confirm", "", "done")]);
}

#[test]
fn a_role_that_is_not_enough_changes_nothing() {
    let update = ["files", "keys/alice/revoke", "restart", "confirm"];
    let operate = [
        "guests",
        "guests/web/set",
        "guests/web/shutdown",
        "guests/db/delete",
        "files/x/remove",
        "perf",
        "networks/lan/capture",
    ];
    for (role, paths) in [(Role::Operate, update.to_vec()), (Role::Read, [&update[..], &operate[..]].concat())] {
        let running = Running::with_role(role);
        for path in &paths {
            let answer = post(&running, &format!("/{path}"), b"{}");
            assert_eq!((answer.status, &answer.json()["error"]), (403, &json!("denied")), "{path}");
        }
        assert!(orders(&running).is_empty(), "{:?}", orders(&running));
        let denied = audit(&running);
        assert_eq!(denied.len(), paths.len());
        assert!(denied.iter().all(|(request, _, result)| request == "denied" && result == "denied"), "{denied:?}");
    }
}

#[test]
fn no_order_of_the_description_is_for_the_role_read() {
    let running = Running::with_role(Role::Read);
    let description = running.get("/api/v1/openapi.json").json();
    let paths = description["paths"].as_object().expect("paths");
    let orders: Vec<_> = paths.iter().filter(|(_, methods)| methods.get("post").is_some()).collect();
    for (path, _) in &orders {
        let answer = running.post(&path.replace("{host}", "rack1"), b"");
        assert_eq!((answer.status, &answer.json()["error"]), (403, &json!("denied")), "{path}");
    }
    assert!(orders.len() >= 15, "{}", orders.len());
}
