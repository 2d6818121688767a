// SPDX-License-Identifier: MIT OR Apache-2.0
//! The history: over restarts of the host and of the service, with a file that is damaged or cannot grow. The service
//! is a process of its own here, which ends as it does in a power failure.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::common::Running;
use super::fake::FakeHost;
use super::process::{PROGRAM, Process};

/// Starts a service with files of at most so many blocks of 512 or 1,024 bytes.
fn start(folder: &Path, host: &FakeHost, blocks: Option<u32>) -> Process {
    // SIGXFSZ ends a process with a file that is too long, unless it is ignored.
    let limit = blocks.map(|blocks| format!("trap '' XFSZ; ulimit -f {blocks}; ")).unwrap_or_default();
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{limit}exec \"$@\"")).args(["sh", PROGRAM]).stderr(Stdio::null());
    command.args(["--history-interval", "0.1", "--history-delay", "0.1"]);
    let service = Process::start(command, folder, host);
    service.connected();
    service
}

fn kinds(events: &Value) -> Vec<String> {
    let name = |kind: &Value| match kind.as_object() {
        Some(object) => object.keys().next().cloned().unwrap_or_default(),
        None => kind.as_str().unwrap_or_default().to_owned(),
    };
    events.as_array().expect("events").iter().map(|event| name(&event["kind"])).collect()
}

fn count(events: &Value) -> usize {
    events.as_array().map_or(0, Vec::len)
}

#[test]
fn events_log_and_metrics_are_kept_when_host_and_service_start_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = FakeHost::start(folder.path(), "rack1");
    let service = start(folder.path(), &host, None);
    let since = "hosts/rack1/events?since=0";
    service.until("the event is kept", since, |events| kinds(events) == ["host-ready"]);
    service.until("samples are kept", "hosts/rack1/history?metric=guests_cpu", |all| count(&all[0]["points"]) > 1);
    drop(service);
    // The host goes on without the service, which then reads all of its events again.
    host.state.lock().expect("state").event(wire::EventKind::VmStarted { name: "db".to_owned() });
    let service = start(folder.path(), &host, None);
    let events = service.until("the event in between is there", since, |events| count(events) >= 2);
    assert_eq!(kinds(&events), ["host-ready", "vm-started"], "none of them twice");
    assert_eq!((&events[0]["id"], &events[1]["id"]), (&json!(1), &json!(2)));
    assert_eq!(service.get("hosts/rack1/events").expect("an answer"), events, "it has the past ones in memory, too");
    // The host is powered on again: its numbers begin with 0.
    host.vanish();
    {
        let mut state = host.state.lock().expect("state");
        state.info.uptime_ns = 0;
        state.events.truncate(1);
    }
    host.listen();
    let events = service.until("its first event comes again", since, |events| count(events) >= 3);
    assert_eq!(kinds(&events), ["host-ready", "vm-started", "host-ready"]);
    let log = service.get("hosts/rack1/log?since=0&limit=1").expect("an answer");
    assert_eq!((count(&log), &log[0]["level"]), (1, &json!("warn")));
    let later = events[2]["at_ms"].as_u64().expect("a time") + 1;
    let none = service.get(&format!("hosts/rack1/events?since={later}")).expect("an answer");
    assert_eq!(none, json!([]));
    let health = service.get("health").expect("an answer");
    assert_eq!((&health["history"]["is_kept"], &health["history"]["dropped"]), (&json!(true), &json!(0)));
}

#[test]
fn a_damaged_file_is_moved_aside_and_the_service_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = FakeHost::start(folder.path(), "rack1");
    let file = folder.path().join("history.redb");
    drop(start(folder.path(), &host, None));
    let mut bytes = fs::read(&file).expect("a file");
    bytes[64..320].fill(0xff);
    fs::write(&file, &bytes).expect("written");
    let service = start(folder.path(), &host, None);
    let health = service.get("health").expect("an answer");
    let moved = health["history"]["moved_aside"].as_str().expect("it was moved").to_owned();
    assert!(moved.contains("history.redb is damaged") && moved.contains("history.redb.damaged now"), "{moved}");
    assert_eq!(fs::read(folder.path().join("history.redb.damaged")).expect("a file"), bytes);
    service.until("another is kept", "hosts/rack1/events?since=0", |events| kinds(events) == ["host-ready"]);
}

#[test]
fn a_full_disk_is_reported_and_stops_neither_the_service_nor_a_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = FakeHost::start(folder.path(), "rack1");
    let service = start(folder.path(), &host, Some(8));
    let health = service.until("it is noticed", "health", |health| health["history"]["is_kept"] == false);
    let problem = health["history"]["problem"].as_str().expect("a reason");
    assert!(problem.starts_with("there is no space left for the history"), "{problem}");
    let refused = service.get("hosts/rack1/events?since=0").expect("an answer");
    assert_eq!((&refused["error"], &refused["message"]), (&json!("failed"), &json!(problem)));
    let events = service.get("hosts/rack1/events").expect("an answer");
    assert_eq!(kinds(&events), ["host-ready"], "the new event is still there");
    service.until("lost records are counted", "health", |health| health["history"]["dropped"] != 0);
}

#[test]
fn without_a_file_the_past_is_in_memory_and_a_wrong_question_is_named() {
    let running = Running::start();
    let points = "/api/v1/hosts/rack1/history?metric=memory_free";
    running.until("samples are kept", |running| count(&running.get(points).json()[0]["points"]) > 1);
    let series = running.get(points).json();
    let point = &series[0]["points"][0];
    assert_eq!((&series[0]["of"], &point["value"]), (&json!(""), &json!((1u64 << 30) as f64)));
    let from = point["at_ms"].as_u64().expect("a time") + 1;
    let later = running.get(&format!("{points}&from={from}")).json();
    assert!(later[0]["points"][0]["at_ms"].as_u64() >= Some(from), "{later}");
    assert_eq!(running.get(&format!("{points}&from={from}&to=0")).json(), json!([]));
    let message = |path: &str| {
        let answer = running.get(path);
        (answer.status, answer.json()["message"].as_str().expect("a message").to_owned())
    };
    let expected = "there is no metric \"guest_cpus\"; did you mean \"guest_cpu\"?".to_owned();
    assert_eq!(message("/api/v1/hosts/rack1/history?metric=guest_cpus"), (400, expected));
    assert_eq!(message("/api/v1/hosts/rack1/events?until=5").0, 400);
    let text = running.get("/metrics").text();
    assert!(text.contains("baton_history_up{} 1") && text.contains("baton_history_failures_total{} 0"), "{text}");
}
