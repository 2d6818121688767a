// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of figures of a span of time, and of profiles.

use std::time::{Duration, Instant};

use serde_json::json;
use wire::RequestBody;

use super::common::Running;

#[test]
fn a_guests_figures_are_of_a_span_of_time() {
    let running = Running::start();
    running.host.state.lock().expect("state").load_ns = 4_000_000;
    let spans = running.get("/api/v1/hosts/rack1/guests/web/perf?seconds=0.01").json();
    assert_eq!((spans.as_array().map(Vec::len), &spans[0]["vcpu"]), (Some(1), &json!(0)));
    let [over, ran] = ["over_ns", "ran_ns"].map(|key| spans[0][key].as_u64().expect("a time"));
    // Each question takes a sample, those of the service itself as well.
    assert!(over >= 10_000_000 && over.is_multiple_of(10_000_000) && ran * 10 == over * 4, "{spans}");
    let answer = running.get("/api/v1/hosts/rack1/guests/wbe/perf");
    assert_eq!((answer.status, &answer.json()["error"]), (404, &json!("not-found")), "{}", answer.text());
}

#[test]
fn a_hosts_figures_are_of_each_cpu() {
    let running = Running::start();
    let spans = running.get("/api/v1/hosts/rack1/perf/stat?seconds=0.01").json();
    assert_eq!((spans.as_array().map(Vec::len), &spans[0]["cpu"]), (Some(1), &json!(0)));
    let [over, ticks] = ["over_ns", "ticks"].map(|key| spans[0][key].as_u64().expect("a time"));
    // Each question takes a sample, those of the service itself as well.
    assert!(over >= 10_000_000 && over.is_multiple_of(10_000_000) && ticks == over, "{spans}");
}

#[test]
fn a_span_is_more_than_nothing_and_a_minute_at_most() {
    let running = Running::start();
    for path in ["guests/web/perf", "perf/stat"] {
        for query in ["seconds=0", "seconds=-1", "seconds=61", "seconds=NaN", "seconds=x", "hz=1"] {
            let answer = running.get(&format!("/api/v1/hosts/rack1/{path}?{query}"));
            assert_eq!((answer.status, &answer.json()["error"]), (400, &json!("invalid")), "{path}?{query}");
        }
    }
    for query in ["seconds=0", "hz=0", "hz=1001", "image=x"] {
        let answer = running.post(&format!("/api/v1/hosts/rack1/perf?{query}"), b"");
        assert_eq!((answer.status, &answer.json()["error"]), (400, &json!("invalid")), "{query}");
    }
}

#[test]
fn a_span_leaves_the_line_to_others() {
    let running = Running::start();
    std::thread::scope(|scope| {
        let began = Instant::now();
        let perf = scope.spawn(|| running.get("/api/v1/hosts/rack1/guests/web/perf?seconds=2").status);
        assert_eq!(running.post("/api/v1/hosts/rack1/guests/web/stop", b"").status, 200);
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        assert_eq!(perf.join().expect("it ends"), 200);
    });
}

#[test]
fn a_profile_is_begun_read_and_ended() {
    let running = Running::start();
    let answer = running.post("/api/v1/hosts/rack1/perf?seconds=0.2&hz=50", b"");
    assert_eq!((answer.status, &answer.json()["samples"]), (200, &json!(3)), "{}", answer.text());
    let stacks = answer.json()["stacks"].clone();
    assert_eq!(stacks, json!([{"frames": ["guest web"], "samples": 2}, {"frames": ["idle"], "samples": 1}]));
    assert_eq!((&answer.json()["build"], &answer.json()["cut_short"]), (&json!("0".repeat(40)), &json!(null)));
    let orders = running.host.state.lock().expect("state").own.orders.clone();
    assert!(matches!(orders.first(), Some(RequestBody::ProfileBegin { hz: 50, .. })), "{orders:?}");
    assert!(matches!(orders.last(), Some(RequestBody::ProfileRead { is_end: true, .. })), "{orders:?}");
    let audit = running.audit();
    assert_eq!((audit.len(), &audit[0]["request"], &audit[1]["result"]), (2, &json!("profile"), &json!("done")));
}

#[test]
fn a_capture_is_a_file_with_the_frames_of_a_network() {
    let running = Running::start();
    let answer = running.post("/api/v1/hosts/rack1/networks/lan/capture?seconds=0.2&guest=web&snap=100", b"");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.body.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]), "a section's header");
    assert_eq!(answer.body.windows(60).filter(|bytes| *bytes == [7; 60]).count(), 2);
    let orders = running.host.state.lock().expect("state").own.orders.clone();
    let Some(RequestBody::CaptureBegin { network, guest, snap_bytes: 100, .. }) = orders.first() else {
        panic!("{orders:?}")
    };
    assert_eq!((network.as_str(), guest.as_deref()), ("lan", Some("web")));
    assert!(matches!(orders.last(), Some(RequestBody::CaptureRead { is_end: true, .. })), "{orders:?}");
    let audit = running.audit();
    assert_eq!((audit.len(), &audit[0]["request"], &audit[1]["result"]), (2, &json!("capture"), &json!("done")));
}
