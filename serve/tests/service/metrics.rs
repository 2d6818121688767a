// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the metrics, and of the alerts and the dashboard for them.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serve::access::Role;
use serve::options::Options;

use super::common::{LIMIT, Running, options, serve};
use super::fake::FakeHost;

const ALERTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/monitoring/alerts.yml");
const DASHBOARD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/monitoring/dashboard.json");

/// Prometheus's checker: installed, or unpacked by set-up.
fn promtool() -> Option<PathBuf> {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/prometheus/usr/bin/promtool");
    let folders = env::var_os("PATH").map(|path| env::split_paths(&path).collect::<Vec<_>>()).unwrap_or_default();
    let all = folders.into_iter().map(|folder| folder.join("promtool")).chain([unpacked]);
    let found = all.into_iter().find(|path| path.is_file());
    if found.is_none() {
        // Past the test harness's capture: the person who runs the tests is to know.
        let _ = writeln!(std::io::stderr(), "test: no promtool here: it checks no metrics and no rules");
    }
    found
}

/// Runs promtool; its output, if it finds anything wrong.
fn complaint(promtool: &Path, arguments: &[&str], input: &str) -> Option<String> {
    let mut command = Command::new(promtool);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("promtool starts");
    child.stdin.take().expect("its input").write_all(input.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    let text = [output.stdout, output.stderr].concat();
    (!output.status.success()).then(|| String::from_utf8_lossy(&text).into_owned())
}

/// The value of the row that begins like this.
fn value(text: &str, row: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(row)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {row} in\n{text}")).parse().expect("a number")
}

#[test]
fn metrics_are_those_that_hosts_report_and_promtool_finds_no_mistake() {
    let running = Running::start();
    running.post("/api/v1/hosts/rack1/update?by=bundle", b"");
    running.until("the update is seen", |running| running.get("/metrics").text().contains("phase="));
    let text = running.get("/metrics").text();
    for (row, expected) in [
        ("baton_host_up{host=\"rack1\"}", 1.0),
        ("baton_host_up{host=\"rack2\"}", 0.0),
        ("baton_host_memory_bytes{host=\"rack1\",kind=\"free\"}", (1u64 << 30) as f64),
        ("baton_guest_state{host=\"rack1\",guest=\"web\",state=\"running\"}", 1.0),
        ("baton_guest_exits_total{host=\"rack1\",guest=\"web\",kind=\"port\"}", 12.0),
        ("baton_vcpu_run_seconds_total{host=\"rack1\",guest=\"web\",vcpu=\"0\"}", 1.5),
        ("baton_cpu_busy_ratios{host=\"rack1\",cpu=\"0\"}", 0.125),
        ("baton_pci_functions{host=\"rack1\",state=\"assigned\",guest=\"web\"}", 1.0),
        ("baton_pci_functions{host=\"rack1\",state=\"bridge\",guest=\"\"}", 1.0),
        ("baton_pci_functions{host=\"rack1\",state=\"free\",guest=\"\"}", 1.0),
        ("baton_pci_functions_with_problems{host=\"rack1\"}", 1.0),
        ("baton_console_followers{host=\"rack1\",guest=\"db\"}", 0.0),
        ("baton_guest_console_output_bytes_total{host=\"rack1\",guest=\"web\"}", 5000.0),
        ("baton_guest_console_lost_bytes_total{host=\"rack1\",guest=\"web\"}", 20.0),
        ("baton_vulnerable{host=\"rack1\",vulnerability=\"spectre_v2\"}", 0.0),
        ("baton_updates_total{host=\"rack1\"}", 1.0),
        ("baton_update_blackout_seconds_count{host=\"rack1\"}", 1.0),
        ("baton_update_blackout_seconds_bucket{le=\"0.0001\",host=\"rack1\"}", 0.0),
        ("baton_update_blackout_seconds_bucket{le=\"0.0002\",host=\"rack1\"}", 1.0),
        ("baton_update_phase_seconds_count{host=\"rack1\",phase=\"all stop, guests saved\"}", 1.0),
        ("baton_update_phase_seconds_sum{host=\"rack1\",phase=\"preparation\"}", 200e-6),
        ("baton_update_phase_seconds_bucket{le=\"0.0001\",host=\"rack1\",phase=\"preparation\"}", 0.0),
        ("baton_update_roll_backs_total{host=\"rack1\",reason=\"waited\"}", 0.0),
        ("baton_update_last_blackout_seconds{host=\"rack1\"}", 150e-6),
        ("baton_update_last_phase_seconds{host=\"rack1\",phase=\"all stop, guests saved\"}", 40e-6),
        ("baton_update_requests_total{host=\"rack1\",result=\"done\"}", 1.0),
        ("baton_hardware_errors_total{host=\"rack1\",kind=\"uncorrected\"}", 0.0),
        ("baton_events_total{host=\"rack1\",kind=\"host-updated\"}", 1.0),
    ] {
        assert!((value(&text, row) - expected).abs() < 1e-9, "{row} {}", value(&text, row));
    }
    let reason = "network=\"lan\",guest=\"web\",mac=\"02:00:00:00:00:01\",reason=\"full\"";
    assert_eq!(value(&text, &format!("baton_network_dropped_frames_total{{host=\"rack1\",{reason}}}")), 2.0);
    check_disk(&text);
    if let Some(promtool) = promtool() {
        assert_eq!(complaint(&promtool, &["check", "metrics"], &text), None);
    }
    let answer = running.request("GET", "/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n", b"");
    assert!(answer.head.contains("content-type: application/openmetrics-text"), "{}", answer.head);
    assert!(answer.text().ends_with("# EOF\n") && answer.text().contains("# TYPE baton_updates counter"));
}

fn check_disk(text: &str) {
    for (name, more, expected) in [
        ("connected", "", 1.0),
        ("size_bytes", "", f64::from(1 << 20)),
        ("requests_in_flight", "", 5.0),
        ("requests_total", ",kind=\"read\"", 6.0),
        ("requests_total", ",kind=\"write\"", 7.0),
        ("requests_total", ",kind=\"other\"", 8.0),
        ("bytes_total", ",direction=\"read\"", 3072.0),
        ("bytes_total", ",direction=\"written\"", 3584.0),
        ("failed_requests_total", "", 9.0),
        ("connections_total", "", 10.0),
    ] {
        let row = format!("baton_disk_{name}{{host=\"rack1\",guest=\"web\",disk=\"1\",server=\"storage\"{more}}}");
        assert_eq!(value(text, &row), expected, "{row}");
    }
}

#[test]
fn time_of_cpus_is_counted_by_its_user_and_a_roll_back_by_its_reason() {
    let running = Running::start();
    let row = |mode: &str| format!("baton_cpu_time_seconds_total{{host=\"rack1\",cpu=\"0\",mode=\"{mode}\"}}");
    let times = |text: &str| ["guests", "host", "idle"].map(|mode| value(text, &row(mode)));
    running.until("the CPU is counted", |running| {
        let text = running.get("/metrics").text();
        text.contains(&row("idle")) && times(&text)[2] > 0.0
    });
    // Each reading counts 10 ms.
    let [guests, host, idle] = times(&running.get("/metrics").text());
    assert!((guests - 3.0 * host).abs() < 1e-9 && (idle - 6.0 * host).abs() < 1e-9, "{guests} {host} {idle}");
    let shares = &running.get("/api/v1/hosts/rack1/cpus").json()[0]["shares"];
    assert!((shares["idle"].as_f64().expect("a share") - 0.6).abs() < 1e-9, "{shares}");
    running.host.vanish();
    running.host.state.lock().expect("state").event(wire::EventKind::UpdateReturns { generation: 1 });
    running.host.listen();
    running.until("the roll-back is counted", |running| {
        running.get("/metrics").text().contains("roll_backs_total{host=\"rack1\",reason=\"unconfirmed\"} 1")
    });
}

#[test]
fn counters_go_on_between_readings_that_are_far_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = FakeHost::start(folder.path(), "rack1");
    let here = format!("unix:{}", host.socket.display());
    let refresh = Duration::from_secs(3600);
    serve(Options { refresh, ..options(folder.path(), &[("rack1", &here)]) }, Role::Read);
    let end = Instant::now() + LIMIT;
    // The first reading asks once.
    while host.state.lock().expect("state").counts.ticks < 20_000_000 {
        assert!(Instant::now() < end, "the host is not asked for counters between its readings");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_console_has_its_followers_and_the_bytes_that_came() {
    let running = Running::start();
    let mut stream = std::net::TcpStream::connect(running.address).expect("connected");
    stream.write_all(b"GET /api/v1/hosts/rack1/guests/web/console HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    running.until("it is followed", |running| {
        value(&running.get("/metrics").text(), "baton_console_followers{host=\"rack1\",guest=\"web\"}") == 1.0
    });
    running.host.state.lock().expect("state").output.push(("web", b"login: ".to_vec()));
    let row = "baton_console_output_bytes_total{host=\"rack1\",guest=\"web\"} 7";
    running.until("its output is counted", |running| running.get("/metrics").text().contains(row));
}

#[test]
fn a_scrape_asks_the_host_nothing_and_a_lost_host_has_no_old_figures() {
    let running = Running::start();
    running.host.vanish();
    running.until("rack1 is lost", |running| {
        value(&running.get("/metrics").text(), "baton_host_up{host=\"rack1\"}") == 0.0
    });
    let asked = running.host.state.lock().expect("state").answered;
    let text = running.get("/metrics").text();
    assert!(!text.contains("baton_guest_state{host=\"rack1\""), "{text}");
    assert_eq!(value(&text, "baton_host_line_losses_total{host=\"rack1\"}"), 1.0);
    assert_eq!(running.host.state.lock().expect("state").answered, asked);
}

#[test]
fn text_of_a_host_is_no_line_of_its_own() {
    let running = Running::start();
    running.host.state.lock().expect("state").guests[0].name = "a\"} 1\nbaton_host_up{host=\"rack1\"} 7\\".to_owned();
    running.until("the name is seen", |running| running.get("/metrics").text().contains("\\nbaton_host_up"));
    let text = running.get("/metrics").text();
    assert_eq!(value(&text, "baton_host_up{host=\"rack1\"}"), 1.0);
    if let Some(promtool) = promtool() {
        assert_eq!(complaint(&promtool, &["check", "metrics"], &text), None);
    }
}

#[test]
fn alerts_and_the_dashboard_use_metrics_that_there_are() {
    let running = Running::start();
    running.post("/api/v1/hosts/rack1/update?by=bundle", b"");
    running.until("the update is seen", |running| running.get("/metrics").text().contains("phase="));
    let text = running.get("/metrics").text();
    let there: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for file in [ALERTS, DASHBOARD] {
        let uses = fs::read_to_string(file).expect(file);
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
        let words = uses.split(|c| !is_name(c)).filter(|word| word.starts_with("baton_"));
        let used: BTreeSet<&str> =
            words.map(|word| word.trim_end_matches("_bucket").trim_end_matches("_count")).collect();
        assert!(used.len() > 5, "{file}: {used:?}");
        assert_eq!(used.difference(&there).collect::<Vec<_>>(), Vec::<&&str>::new(), "{file}");
    }
    serde_json::from_str::<serde_json::Value>(&fs::read_to_string(DASHBOARD).expect("read")).expect("JSON");
    if let Some(promtool) = promtool() {
        assert_eq!(complaint(&promtool, &["check", "rules", ALERTS], ""), None);
    }
}
