// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the API.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use serve::access::Role;
use wire::{Refusal, RefusalCode};

use super::common::{LIMIT, Running, options, serve};
use super::fake::FakeHost;

#[test]
fn an_unreachable_host_is_shown_with_the_reason_and_keeps_no_other_one_waiting() {
    let running = Running::start();
    running.until("rack2 is given up", |running| running.get("/api/v1/hosts/rack2").json()["state"] == "unreachable");
    let hosts = running.get("/api/v1/hosts").json();
    assert_eq!(
        (&hosts[0]["name"], &hosts[0]["guests"], &hosts[0]["guests_running"]),
        (&json!("rack1"), &json!(2), &json!(1))
    );
    assert!(hosts[1]["reason"].as_str().expect("a reason").contains("nowhere.sock"), "{hosts}");
    let answer = running.get("/api/v1/hosts/rack2/guests");
    assert_eq!((answer.status, &answer.json()["error"]), (503, &json!("unreachable")));
    let answer = running.post("/api/v1/hosts/rack2/guests/web/stop", b"");
    assert_eq!((answer.status, &answer.json()["error"]), (503, &json!("unreachable")));
}

#[test]
fn every_question_of_the_description_has_its_answer() {
    let running = Running::start();
    let description = running.get("/api/v1/openapi.json").json();
    let paths = description["paths"].as_object().expect("paths");
    // Streams have no end, and the tool's connection is not HTTP any more.
    let is_endless = |path: &str| ["stream", "console", "control"].iter().any(|name| path.ends_with(name));
    let questions = paths.iter().filter(|(path, methods)| methods.get("get").is_some() && !is_endless(path));
    let mut asked = 0;
    for (path, _) in questions {
        // The guest `db` has ended.
        let guest = if path.ends_with("wait") { "db" } else { "web" };
        let answer = running.get(&path.replace("{host}", "rack1").replace("{guest}", guest));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert!(path.ends_with(".toml") || answer.json() != Value::Null, "{path}");
        asked += 1;
    }
    assert!(asked >= 19, "{asked}");
    let schemas = description["components"]["schemas"].as_object().expect("schemas");
    for name in ["HostInfo", "VmInfo", "DiskInfo", "RestartReport", "VcpuSpan", "CpuSpan", "TimelineRun"] {
        assert!(schemas.contains_key(name), "{name}: {:?}", schemas.keys());
    }
    let absent: Vec<String> = references(&description).into_iter().filter(|name| !schemas.contains_key(name)).collect();
    assert!(absent.is_empty(), "{absent:?} are referred to, and not described");
}

/// Returns the names of the schemas to which a part of the description refers.
fn references(part: &Value) -> Vec<String> {
    match part {
        Value::Object(fields) => {
            let own = fields.get("$ref").and_then(Value::as_str).and_then(|place| place.rsplit('/').next());
            own.map(str::to_owned).into_iter().chain(fields.values().flat_map(references)).collect()
        }
        Value::Array(parts) => parts.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn items_that_do_not_exist_are_named() {
    let running = Running::start();
    let message = |path: &str| {
        let answer = running.get(path);
        (answer.status, answer.json()["message"].as_str().expect("a message").to_owned())
    };
    assert_eq!(message("/api/v1/hosts/rack"), (404, "there is no host \"rack\"; did you mean \"rack1\"?".to_owned()));
    assert_eq!(message("/x").0, 404);
    assert_eq!(message("/api/v1/hosts/rack1/guests/web/stop").0, 405);
    let answer = running.post("/api/v1/hosts/rack1/guests/nowhere/stop", b"");
    assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("unknown-vm")));
    for path in ["/api/v1/hosts/rack1/log?limit=x", "/api/v1/hosts/rack1/log?form=1", "/api/v1/stream?hosts=x"] {
        assert_eq!(running.get(path).status, 400, "{path}");
    }
    assert_eq!(running.post("/api/v1/hosts/rack1/guests/web/explode", b"").status, 400);
}

#[test]
fn an_order_is_carried_out_and_written_down_with_its_answer() {
    let running = Running::start();
    assert_eq!(running.post("/api/v1/hosts/rack1/guests/web/stop", b"").status, 200);
    running.until("web is seen to be stopped", |running| {
        running.get("/api/v1/hosts/rack1/guests").json()[0]["state"] == "stopped"
    });
    let answer = running.post("/api/v1/hosts/rack1/guests/web/stop", b"");
    let refused = json!({
        "error": "refused", "code": "invalid", "message": "web is stopped; `baton vm list` shows it",
        "hint": "`baton vm list` shows it",
    });
    assert_eq!((answer.status, answer.json()), (409, refused));
    let audit = running.audit();
    assert_eq!(audit.len(), 4, "{audit:?}");
    assert_eq!((&audit[0]["request"], &audit[0]["subject"]), (&json!("guest-stop"), &json!("web")));
    assert_eq!((&audit[1]["order"], &audit[1]["result"]), (&audit[0]["order"], &json!("done")));
    assert_eq!((&audit[3]["result"], &audit[3]["message"]), (&json!("refused"), &answer.json()["message"]));
}

#[test]
fn an_order_beyond_the_role_is_refused_and_written_down() {
    for (role, paths) in [
        (
            Role::Read,
            &[
                "guests/web/stop",
                "guests/web/dump",
                "guests/web/console",
                "cpus/0/offline",
                "pci/assign",
                "update",
                "power-off",
            ][..],
        ),
        (Role::Operate, &["update", "power-off"]),
    ] {
        let running = Running::with_role(role);
        let answered = running.host.state.lock().expect("state").guests.clone();
        for path in paths {
            let answer = running.post(&format!("/api/v1/hosts/rack1/{path}"), &[0; 1 << 16]);
            assert_eq!((answer.status, &answer.json()["error"]), (403, &json!("denied")), "{path}");
        }
        let audit = running.audit();
        assert_eq!(audit.len(), 2 * paths.len());
        assert!(audit.iter().all(|line| line["request"] == "denied" || line["result"] == "denied"), "{audit:?}");
        assert_eq!(running.host.state.lock().expect("state").guests, answered, "nothing has changed");
    }
}

#[test]
fn the_sockets_file_is_for_its_user_alone_with_every_role() {
    let running = Running::with_role(Role::Read);
    let mode = fs::metadata(running.folder.path().join("serve.sock")).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let me = running.over_socket("GET", "/api/v1/whoami").json();
    assert_eq!(me["role"], "update");
    assert!(me["who"].as_str().expect("a name").starts_with("uid "), "{me}");
    assert_eq!(running.over_socket("POST", "/api/v1/hosts/rack1/guests/web/stop").status, 200);
}

#[test]
fn a_page_of_another_site_neither_reads_nor_orders() {
    let running = Running::start();
    let stop = "/api/v1/hosts/rack1/guests/web/stop";
    for headers in ["Origin: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        assert_eq!(running.request("POST", stop, headers, b"").status, 403, "{headers}");
    }
    let mut stream = TcpStream::connect(running.address).expect("connected");
    let answer = super::common::ask(&mut stream, "GET", "/api/v1/hosts", "Host: evil.example\r\n", b"");
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert_eq!(running.get("/api/v1/hosts/rack1/guests").json()[0]["state"], "running");
}

/// Reads server-sent events until one is as wanted.
pub fn until(reader: &mut impl std::io::BufRead, name: &str, mut is_wanted: impl FnMut(&Value) -> bool) -> Value {
    let mut event = String::new();
    for line in reader.lines() {
        let line = line.expect("the stream goes on");
        if let Some(kind) = line.strip_prefix("event: ") {
            event = kind.to_owned();
        } else if let Some(data) = line.strip_prefix("data: ").filter(|_| event == name) {
            let data = serde_json::from_str(data).expect("JSON");
            if is_wanted(&data) {
                return data;
            }
        }
    }
    panic!("the stream has ended without {name}");
}

#[test]
fn events_states_and_an_updates_progress_come_unasked() {
    let running = Running::start();
    let mut stream = TcpStream::connect(running.address).expect("connected");
    stream.set_read_timeout(Some(LIMIT)).expect("set");
    stream.write_all(b"GET /api/v1/stream?host=rack1 HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("asked");
    let mut reader = BufReader::new(stream);
    until(&mut reader, "host", |status| status["state"] == "connected");
    running.post("/api/v1/hosts/rack1/guests/web/stop", b"");
    let event = until(&mut reader, "event", |event| event["kind"]["vm-stopped"]["name"] == "web");
    assert_eq!((&event["host"], &event["id"]), (&json!("rack1"), &json!(2)));
    let image = baton::testing::test_image(5, 3, 4);
    let answer = running.post("/api/v1/hosts/rack1/update", &image);
    assert_eq!((answer.status, &answer.json()["step"]), (202, &json!("waiting")), "{}", answer.text());
    until(&mut reader, "update", |update| update["step"] == "sending");
    until(&mut reader, "update", |update| update["step"] == "switching");
    let done = until(&mut reader, "update", |update| update["step"] == "done");
    assert_eq!((&done["report"]["generation"], &done["report"]["gap_ns"]), (&json!(2), &json!(150_000)));
    running.host.vanish();
    let lost = until(&mut reader, "host", |status| status["state"] == "unreachable");
    assert!(lost["reason"].is_string() && lost["version"].is_null(), "{lost}");
    running.host.listen();
    until(&mut reader, "host", |status| status["state"] == "connected");
    let events = running.get("/api/v1/hosts/rack1/events?from=2&limit=1").json();
    assert_eq!(
        (events.as_array().map(Vec::len), &events[0]["kind"]),
        (Some(1), &json!({"host-updated": {"generation": 2}}))
    );
}

#[test]
fn an_update_that_the_host_would_refuse_is_not_sent_and_one_that_it_refuses_states_why() {
    let running = Running::start();
    let end = |running: &Running, answer: super::common::Answer| {
        assert_eq!(answer.status, 202, "{}", answer.text());
        let id = answer.json()["id"].clone();
        let mut last = Value::Null;
        running.until("the update has ended", |running| {
            last = running
                .get("/api/v1/hosts/rack1/updates")
                .json()
                .as_array()
                .and_then(|all| all.last().cloned())
                .expect("one");
            last["id"] == id && ["done", "refused", "failed"].iter().any(|step| last["step"] == *step)
        });
        (last["step"].as_str().expect("a step").to_owned(), last["message"].as_str().unwrap_or_default().to_owned())
    };
    let (step, message) = end(&running, running.post("/api/v1/hosts/rack1/update", b"no image"));
    assert_eq!(step, "refused");
    assert!(message.starts_with("the file is not sent: it is no image of Baton"), "{message}");
    let (step, message) =
        end(&running, running.post("/api/v1/hosts/rack1/update", &baton::testing::test_image(4, 3, 4)));
    assert!(step == "refused" && message.contains("it is too old"), "{message}");
    let reason = "the update was rolled back after 9 us".to_owned();
    running.host.state.lock().expect("state").refuses =
        Some(Refusal { code: RefusalCode::Failed, reason, hint: "use another image".to_owned() });
    let (step, message) = end(&running, running.post("/api/v1/hosts/rack1/update?by=bundle", b""));
    assert_eq!(
        (step.as_str(), message.as_str()),
        ("failed", "the update was rolled back after 9 us; use another image")
    );
    running.host.state.lock().expect("state").refuses = None;
    assert_eq!(end(&running, running.post("/api/v1/hosts/rack1/update?by=bundle&dry_run=true", b"")).0, "done");
    for (path, body) in
        [("update", &b""[..]), ("update?by=bundle", b"x"), ("update?by=disk", b""), ("update?dryrun=1", b"x")]
    {
        assert_eq!(running.post(&format!("/api/v1/hosts/rack1/{path}"), body).status, 400, "{path}");
    }
    let answers: Vec<_> = running.audit().iter().filter_map(|line| Some(line["result"].as_str()?.to_owned())).collect();
    assert_eq!(answers, ["refused", "refused", "failed", "done"]);
}

#[test]
fn an_unresponsive_host_keeps_no_other_one_waiting_and_goes_on_where_it_was() {
    let running = Running::start();
    running.host.state.lock().expect("state").is_mute = true;
    let (asked, began) = (running.get("/api/v1/hosts/rack1").json()["read_ms"].clone(), Instant::now());
    for path in ["hosts", "hosts/rack1/guests", "hosts/rack2/events"] {
        assert_eq!(running.get(&format!("/api/v1/{path}")).status, 200, "{path}");
    }
    assert!(began.elapsed() < Duration::from_secs(2), "an unresponsive host is asked again after 3 s");
    running.host.state.lock().expect("state").is_mute = false;
    running.until("rack1 is read again", |running| {
        let status = running.get("/api/v1/hosts/rack1").json();
        status["state"] == "connected" && status["read_ms"].as_u64() > asked.as_u64().map(|ms| ms + 500)
    });
}

#[test]
fn a_host_that_was_powered_on_again_is_heard_from_its_first_event_on() {
    let running = Running::start();
    running.post("/api/v1/hosts/rack1/guests/web/stop", b"");
    {
        let mut state = running.host.state.lock().expect("state");
        state.info.uptime_ns = 0;
        state.events.truncate(1);
    }
    running.until("its first event comes again", |running| {
        let events = running.get("/api/v1/hosts/rack1/events").json();
        let ready = events.as_array().expect("events").iter().filter(|event| event["kind"] == "host-ready");
        ready.count() == 2
    });
}

#[test]
fn an_order_that_cannot_be_written_down_is_not_carried_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = FakeHost::start(folder.path(), "rack1");
    let mut options = options(folder.path(), &[("rack1", &format!("unix:{}", host.socket.display()))]);
    options.audit = Some("/dev/full".into());
    let address = serve(options, Role::Update);
    let running = Running { folder, host, address };
    running.until("rack1 is connected", |running| running.get("/api/v1/hosts").json()[0]["state"] == "connected");
    let answer = running.post("/api/v1/hosts/rack1/guests/web/stop", b"");
    let message = answer.json()["message"].as_str().expect("a message").to_owned();
    assert!(answer.status == 500 && message.contains("the audit log cannot be written"), "{message}");
    assert_eq!(running.get("/api/v1/hosts/rack1/guests").json()[0]["state"], "running");
}

#[test]
fn a_client_that_reads_nothing_keeps_no_other_one_waiting() {
    let running = Running::start();
    let mut idle = TcpStream::connect(running.address).expect("connected");
    idle.write_all(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("asked");
    for _ in 0..50 {
        assert_eq!(running.post("/api/v1/hosts/rack1/guests/web/stop", b"").status, 200);
        assert_eq!(running.post("/api/v1/hosts/rack1/guests/web/start", b"").status, 200);
    }
    // The host sends an event after the answer to the order.
    running.until("every event", |running| {
        let events = running.get("/api/v1/hosts/rack1/events").json();
        events.as_array().map(Vec::len) == Some(101)
    });
}
