// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the control channel through the service: the tool's client, with certificates, at a real TLS socket.

use std::borrow::Cow;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use baton::client::Client;
use baton::connection::{Address, Identity};
use baton::program::Kind;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use serve::access::Role;
use serve::options::Place;
use wire::{
    EventKind, Refusal, RefusalCode, ReplyBody, RequestBody, Stream, Subscription, UpdateBy, UploadKind, VmState,
};

use super::certificates::{Authority, authority, certificate, write_access, write_identity};
use super::common::{LIMIT, Running, ask, options, serve};
use super::fake::FakeHost;
use super::process::{PROGRAM, Process};

/// Certificates' names and roles.
const ROLES: &str = "alice = \"update\"\nbob = \"operate\"\nprometheus = \"read\"\n";

/// A service with TLS for `rack1`, which is reached, and `rack2`, which is not.
pub struct Service {
    pub port: u16,
    pub authority: Authority,
    pub host: FakeHost,
    pub folder: tempfile::TempDir,
}

/// A port that was free a moment ago.
pub fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr()).expect("a port")
}

pub fn address(port: u16, name: Option<&str>, identity: Identity) -> Address {
    Address::Https { host: "localhost".to_owned(), port, name: name.map(str::to_owned), identity }
}

impl Service {
    pub fn start() -> Self {
        let (folder, authority) = (tempfile::tempdir().expect("a folder"), authority("ours"));
        write_access(folder.path(), &authority, ROLES);
        let host = FakeHost::start(folder.path(), "rack1");
        let (here, gone) = (format!("unix:{}", host.socket.display()), "unix:/nowhere/com2.sock");
        let mut options = options(folder.path(), &[("rack1", &here), ("rack2", gone)]);
        let tls = free_port();
        options.listen.push(Place::Tcp(tls));
        options.access = Some(folder.path().join("access.toml"));
        serve(options, Role::Read);
        let service = Self { port: tls.port(), authority, host, folder };
        service.until("rack1 is connected", || service.json("hosts/rack1")["state"] == "connected");
        service
    }

    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let end = Instant::now() + LIMIT;
        while !is_so() {
            assert!(Instant::now() < end, "not within {LIMIT:?}: {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn json(&self, path: &str) -> Value {
        let mut stream = UnixStream::connect(self.folder.path().join("serve.sock")).expect("connected");
        ask(&mut stream, "GET", &format!("/api/v1/{path}"), "Host: baton\r\n", b"").json()
    }

    pub fn identity(&self, name: &str) -> Identity {
        write_identity(self.folder.path(), &certificate(&self.authority, name, None), &self.authority)
    }

    fn reach(&self, name: &str) -> anyhow::Result<Client> {
        Client::reach(&address(self.port, Some("rack1"), self.identity(name)), None)
    }

    /// The requests, subjects and results in the audit log, in order.
    pub fn audit(&self) -> Vec<(String, String, String)> {
        let text = fs::read_to_string(self.folder.path().join("audit.jsonl")).unwrap_or_default();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let result = |order: &Value| lines.iter().find(|line| line["order"] == *order && !line["result"].is_null());
        let asked = lines.iter().filter(|line| line["result"].is_null());
        let row = |line: &Value| {
            let result = result(&line["order"]).map(|line| text(&line["result"])).unwrap_or_default();
            (format!("{} {}", text(&line["who"]), text(&line["request"])), text(&line["subject"]), result)
        };
        asked.map(row).collect()
    }
}

fn refusal(error: &anyhow::Error) -> &Refusal {
    error.downcast_ref().unwrap_or_else(|| panic!("no refusal: {error:#}"))
}

fn row(request: &str, subject: &str, result: &str) -> (String, String, String) {
    (request.to_owned(), subject.to_owned(), result.to_owned())
}

/// Waits for an event.
fn until_event(client: &mut Client, is_wanted: impl Fn(&EventKind) -> bool) {
    let is_it = |stream| matches!(stream, Stream::Event(event) if is_wanted(&event.kind));
    while !is_it(client.next(LIMIT).expect("a line").expect("in time")) {}
}

#[test]
fn a_certificate_lets_the_tool_read_and_operate_a_host_and_orders_are_written_down() {
    let service = Service::start();
    let mut client = service.reach("bob").expect("reached");
    assert_eq!(client.info().expect("answered").generation, 1);
    client.subscribe(Subscription { log: false, events: true, consoles: false }).expect("subscribed");
    client.order(RequestBody::VmStop { name: "web".to_owned() }).expect("stopped");
    until_event(&mut client, |kind| matches!(kind, EventKind::VmStopped { name, .. } if name == "web"));
    assert_eq!(client.vms().expect("answered")[0].state, VmState::Stopped);
    let again = client.order(RequestBody::VmStop { name: "web".to_owned() }).expect_err("it is stopped");
    assert_eq!((refusal(&again).code, &refusal(&again).hint[..]), (RefusalCode::Invalid, "`baton vm list` shows it"));
    let expected = [row("bob guest-stop", "web", "done"), row("bob guest-stop", "web", "refused")];
    assert_eq!(service.audit(), expected, "questions are not written down");
}

#[test]
fn a_role_that_is_not_enough_is_refused_request_by_request_and_written_down() {
    let service = Service::start();
    let mut client = service.reach("prometheus").expect("reached");
    client.info().expect("it may read");
    let error = client.order(RequestBody::VmStop { name: "web".to_owned() }).expect_err("it may not");
    let refusal = refusal(&error);
    assert_eq!(refusal.code, RefusalCode::Denied);
    assert_eq!(refusal.reason, "prometheus has the role read, and this needs operate");
    let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
    let error = service.reach("bob").expect("reached").request(update).expect_err("it may not");
    assert!(error.to_string().starts_with("bob has the role operate, and this needs update; use"), "{error:#}");
    assert_eq!(service.host.state.lock().expect("state").guests[0].state, VmState::Running);
    let denied = [row("prometheus denied", "guest-stop web", "denied"), row("bob denied", "update bundle", "denied")];
    assert_eq!(service.audit(), denied);
    // Without any role there is no line.
    let error = service.reach("mallory").err().expect("it is refused");
    assert_eq!(Kind::of(&error), Kind::Refused);
    assert_eq!(error.to_string(), "mallory has no role; add its name to [roles] of the access file");
}

#[test]
fn an_image_is_sent_and_the_host_updated_as_one_of_the_services_updates() {
    let service = Service::start();
    let mut client = service.reach("alice").expect("reached");
    let file: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
    client.upload(UploadKind::Image, &file, |_| {}).expect("sent");
    assert_eq!(service.host.state.lock().expect("state").received, 100_000);
    let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Upload };
    let ReplyBody::Updated(report) = client.request(update).expect("updated") else { panic!("another answer") };
    assert_eq!(report.generation, 2);
    let updates = service.json("hosts/rack1/updates");
    assert_eq!((&updates[0]["who"], &updates[0]["step"]), (&"alice".into(), &"done".into()), "{updates}");
    let audit = service.audit();
    let names: Vec<&str> = audit.iter().map(|(request, ..)| &request[..]).collect();
    assert_eq!(names, ["alice upload", "alice update"], "one line a file, whatever the number of its pieces");
    assert!(audit[0].1.starts_with("image of 100000 bytes, SHA-256 "), "{audit:?}");
}

#[test]
fn a_console_is_followed_and_typed_on_and_what_came_before_comes_first() {
    let service = Service::start();
    service.host.state.lock().expect("state").output.push(("web", b"before ".to_vec()));
    let mut client = service.reach("bob").expect("reached");
    client.subscribe(Subscription { log: false, events: false, consoles: true }).expect("subscribed");
    let typed = RequestBody::ConsoleInput { name: "web".to_owned(), bytes: b"\xff secret".to_vec() };
    client.order(typed).expect("typed");
    let mut output = Vec::new();
    while !output.ends_with(b"secret") {
        if let Stream::Console { name, bytes } = client.next(LIMIT).expect("a line").expect("in time") {
            assert_eq!(name, "web");
            output.extend_from_slice(&bytes);
        }
    }
    assert_eq!(output, b"before \xff secret", "bytes come as they are");
    let audit = fs::read_to_string(service.folder.path().join("audit.jsonl")).expect("an audit log");
    assert!(audit.contains("guest-type") && !audit.contains("secret"), "{audit}");
    // Of other guests nothing comes.
    client.subscribe_consoles(Subscription::default(), &["db"]).expect("subscribed");
    service.host.state.lock().expect("state").output.push(("db", b"db's".to_vec()));
    client.order(RequestBody::ConsoleInput { name: "web".to_owned(), bytes: b"unseen".to_vec() }).expect("typed");
    loop {
        let Stream::Console { name, bytes } = client.next(LIMIT).expect("a line").expect("in time") else { continue };
        assert!(name == "db" || bytes.ends_with(b"secret"), "{name}: {bytes:?}");
        if name == "db" {
            break;
        }
    }
    // Without a subscription nothing comes any more.
    client.subscribe(Subscription::default()).expect("subscribed");
    client.order(RequestBody::ConsoleInput { name: "web".to_owned(), bytes: b"unseen".to_vec() }).expect("typed");
    while let Some(stream) = client.next(Duration::from_millis(300)).expect("a line") {
        assert!(!matches!(stream, Stream::Console { bytes: Cow::Owned(bytes), .. } if bytes.ends_with(b"unseen")));
    }
}

#[test]
fn a_connection_that_is_no_line_of_frames_ends_with_the_reason() {
    let running = Running::start();
    let upgrade = |request: &str| {
        let mut stream = std::net::TcpStream::connect(running.address).expect("connected");
        stream.set_read_timeout(Some(LIMIT)).expect("set");
        let head = "HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: baton-control\r\n\r\n";
        stream.write_all(format!("GET /api/v1/hosts/{request} {head}").as_bytes()).expect("sent");
        stream
    };
    let mut stream = upgrade("rack1/control");
    stream.write_all(b"GET / HTTP/1.1\r\n\0").expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("it ends");
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.starts_with("HTTP/1.1 101") && text.contains("garbage instead of a frame"), "{text:?}");
    // A browser asks for no such upgrade.
    let plain = running.get("/api/v1/hosts/rack1/control");
    assert_eq!((plain.status, &plain.json()["error"]), (426, &"invalid".into()));
}

#[test]
fn a_service_that_is_a_process_serves_the_tool_and_ends_while_a_line_is_open() {
    let (folder, authority) = (tempfile::tempdir().expect("a folder"), authority("ours"));
    write_access(folder.path(), &authority, ROLES);
    let host = FakeHost::start(folder.path(), "rack1");
    let tls = free_port();
    let mut command = Command::new(PROGRAM);
    command.arg("--listen").arg(format!("tcp:{tls}")).arg("--access").arg(folder.path().join("access.toml"));
    command.arg("--audit").arg(folder.path().join("audit.jsonl"));
    let mut service = Process::start(command, folder.path(), &host);
    service.connected();
    let identity = write_identity(folder.path(), &certificate(&authority, "bob", None), &authority);
    // The service has one host, which needs no name.
    let mut client = Client::reach(&address(tls.port(), None, identity), None).expect("reached");
    client.order(RequestBody::VmStart { name: "db".to_owned() }).expect("started");
    assert!(client.vms().expect("answered").iter().all(|vm| vm.state == VmState::Running));
    assert!(has_line(folder.path(), "\"who\":\"bob\",\"over\":\"tls\",\"role\":\"operate\""));
    kill_process(Pid::from_child(&service.child), Signal::TERM).expect("sent");
    let error = (0..).find_map(|_| client.info().err()).expect("the service ends");
    assert!(format!("{error:#}").contains(&format!("localhost:{} has closed the connection", tls.port())), "{error:#}");
    assert_eq!(Kind::of(&error), Kind::Unreachable);
    assert!(service.child.wait().expect("ended").success());
}

fn has_line(folder: &Path, text: &str) -> bool {
    fs::read_to_string(folder.join("audit.jsonl")).expect("an audit log").contains(text)
}
