// SPDX-License-Identifier: MIT OR Apache-2.0
//! Updates over restarts of the service.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use wire::{EventKind, Refusal, RefusalCode};

use super::common::{LIMIT, ask};
use super::fake::FakeHost;
use super::parts;
use super::process::Service;

const UPDATES: &str = "hosts/rack1/updates";

/// Starts a service that takes no long wait for updates at its end.
fn start(folder: &Path, host: &FakeHost) -> Service {
    Service::connected(folder, host, &["--stop-timeout", "0.2", "--history-delay", "0.1"])
}

fn end(mut service: Service) {
    service.signal(Signal::TERM);
    assert!(service.ended().code().is_some());
}

/// The rows of the metrics of updates.
fn metrics(service: &Service) -> Vec<String> {
    let text = ask(&mut service.stream(), "GET", "/metrics", "Host: baton\r\n", b"").text();
    text.lines().filter(|line| line.starts_with("baton_update")).map(str::to_owned).collect()
}

/// Has the host updated, and waits for the end of it.
fn update(service: &Service, step: &str) {
    let id = service.ask("POST", "hosts/rack1/update?by=bundle")["id"].clone();
    let is_so = |all: &Value| last(all)["id"] == id && last(all)["step"] == step;
    service.process.until("the update has ended", UPDATES, is_so);
}

fn last(all: &Value) -> &Value {
    all.as_array().and_then(|all| all.last()).unwrap_or(&Value::Null)
}

/// Waits until the metrics have a row with this value.
fn until_row(service: &Service, row: &str, value: f64) {
    let end = Instant::now() + LIMIT;
    let is_it = |line: &str| line.strip_prefix(row).and_then(|rest| rest.trim().parse().ok()) == Some(value);
    while !metrics(service).iter().any(|line| is_it(line)) {
        assert!(Instant::now() < end, "no {row} {value} in {:#?}", metrics(service));
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn updates_and_their_sums_are_kept_and_none_is_counted_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = FakeHost::start(folder.path(), "rack1");
    let service = start(folder.path(), &host);
    update(&service, "done");
    let refusal = Refusal { code: RefusalCode::Invalid, reason: "no".to_owned(), hint: "another".to_owned() };
    host.state.lock().expect("state").refuses = Some(refusal);
    update(&service, "refused");
    {
        let mut state = host.state.lock().expect("state");
        state.refuses = None;
        state.log(9, "the update was rolled back after 9 us: no CPU gave a reason");
        state.event(EventKind::UpdateReturns { generation: 2 });
    }
    // The host goes on without the service, which then reads log, events and timeline from the beginning.
    host.vanish();
    host.listen();
    until_row(&service, "baton_update_roll_backs_total{host=\"rack1\",reason=\"unknown\"}", 1.0);
    until_row(&service, "baton_updates_total{host=\"rack1\"}", 1.0);
    let (all, rows) = (service.ask("GET", UPDATES), metrics(&service));
    end(service);
    for _ in 0..2 {
        let service = start(folder.path(), &host);
        assert_eq!((service.ask("GET", UPDATES), metrics(&service)), (all.clone(), rows.clone()));
        end(service);
    }
    // One that was asked for elsewhere meanwhile is counted, and so are those after the machine was powered on again.
    host.state.lock().expect("state").update(false).expect("carried out");
    let service = start(folder.path(), &host);
    until_row(&service, "baton_updates_total{host=\"rack1\"}", 2.0);
    end(service);
    {
        let mut state = host.state.lock().expect("state");
        (state.info.generation, state.info.uptime_ns) = (1, 0);
        state.points = parts::boot();
        state.update(false).expect("carried out");
    }
    let service = start(folder.path(), &host);
    until_row(&service, "baton_updates_total{host=\"rack1\"}", 3.0);
    until_row(&service, "baton_update_blackout_seconds_count{host=\"rack1\"}", 3.0);
    assert_eq!(service.ask("GET", UPDATES), all);
    update(&service, "done");
    assert_eq!(last(&service.ask("GET", UPDATES))["id"], 3, "numbers go on");
}

#[test]
fn an_update_that_the_services_end_has_cut_is_not_under_way_afterwards() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = FakeHost::start(folder.path(), "rack1");
    let service = start(folder.path(), &host);
    service.begin_update(&host);
    end(service);
    // The host carries it out without the service.
    host.state.lock().expect("state").holds_update = false;
    let until = Instant::now() + LIMIT;
    while host.state.lock().expect("state").info.generation < 2 {
        assert!(Instant::now() < until, "the host does not carry it out");
        thread::sleep(Duration::from_millis(10));
    }
    for _ in 0..2 {
        let service = start(folder.path(), &host);
        let all = service.ask("GET", UPDATES);
        assert_eq!((all.as_array().map(Vec::len), &all[0]["step"]), (Some(1), &json!("failed")));
        let message = all[0]["message"].as_str().expect("a message");
        assert!(message.starts_with("the service ended while this update was under way"), "{message}");
        until_row(&service, "baton_update_requests_total{host=\"rack1\",result=\"failed\"}", 1.0);
        until_row(&service, "baton_updates_total{host=\"rack1\"}", 1.0);
        end(service);
    }
    let service = start(folder.path(), &host);
    update(&service, "done");
    until_row(&service, "baton_update_requests_total{host=\"rack1\",result=\"done\"}", 1.0);
}
