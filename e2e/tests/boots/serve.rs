// SPDX-License-Identifier: MIT OR Apache-2.0
//! The service with a real host.

use std::fs::{self, Permissions};
use std::future::pending;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use baton::client::Client;
use baton::connection::{Address, Identity};
use clap::Parser as _;
use e2e::guest_tool::PLAYS_SERVICE;
use e2e::host::{BOOT_LIMIT, Host};
use e2e::place::Build;
use e2e::recipe::Recipe;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::Value;
use serve::options::{HistoryOptions, HostOption, Options, Place};
use wire::{ReplyBody, RequestBody, UpdateBy, VmState};

use super::Rule;

pub const RULES: &[Rule] = &[
    ("a_host_is_seen_operated_and_updated_through_the_service", || is_operated_and_updated("update?by=bundle", b"")),
    ("a_roll_back_is_counted_by_the_service", a_roll_back_is_counted),
    ("the_tool_operates_and_updates_a_host_through_the_services_certificates", is_operated_by_certificate),
    ("a_console_is_followed_and_typed_on_through_the_service_over_an_update", a_console_is_followed_and_typed_on),
];

/// For the long suite: an image takes 15 s through an emulated UART.
pub const LONG_RULES: &[Rule] = &[("a_host_is_updated_by_an_image_that_is_sent_through_the_service", || {
    is_operated_and_updated("update", &fs::read(Build::Shipped.file()?)?)
})];

const GUEST: &str = "a";

/// Runs as the service, if that is wanted.
pub fn play() -> Option<ExitCode> {
    std::env::var_os(PLAYS_SERVICE)?;
    Some(baton::program::run(|| ::serve::service::run(Options::parse(), ::serve::ending::first_signal()?).map(|()| 0)))
}

/// Starts a service for the host, and waits until it is seen.
fn served(host: &Host, folder: &Path) -> Result<()> {
    served_at(host, folder, None)
}

/// The same with TLS at this address, by the access file in the folder.
fn served_at(host: &Host, folder: &Path, tls: Option<SocketAddr>) -> Result<()> {
    let unix = Place::Unix(folder.join("serve.sock"));
    let options = Options {
        listen: [unix].into_iter().chain(tls.map(Place::Tcp)).collect(),
        host: vec![HostOption {
            name: "h".to_owned(),
            address: format!("unix:{}", host.control_socket().display()).parse()?,
        }],
        key: None,
        socket_mode: 0o600,
        access: tls.map(|_| folder.join("access.toml")),
        insecure_loopback: false,
        audit: Some(folder.join("audit.jsonl")),
        refresh: Duration::from_millis(200),
        stop_timeout: BOOT_LIMIT,
        history: HistoryOptions::default(),
    };
    thread::spawn(|| serve::service::run(options, pending()));
    until("the host is connected", || Ok(get(folder, "/api/v1/hosts")?.contains("\"state\":\"connected\"")))
}

/// Sends a request; returns the whole answer.
fn ask(folder: &Path, method: &str, path: &str, body: &[u8]) -> Result<String> {
    let mut stream = UnixStream::connect(folder.join("serve.sock"))?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: baton\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn get(folder: &Path, path: &str) -> Result<String> {
    // The service may not listen yet.
    Ok(ask(folder, "GET", path, b"").unwrap_or_default())
}

fn json(folder: &Path, path: &str) -> Result<Value> {
    let answer = get(folder, path)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    Ok(serde_json::from_str(body)?)
}

fn until(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + BOOT_LIMIT;
    while !is_so()? {
        ensure!(Instant::now() < end, "not in time: {what}");
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Waits for the end of the last update.
fn end_of_update(folder: &Path) -> Result<Value> {
    let mut last = Value::Null;
    until("the update has ended", || {
        last =
            json(folder, "/api/v1/hosts/h/updates")?.as_array().and_then(|all| all.last().cloned()).unwrap_or_default();
        Ok(["done", "refused", "failed"].iter().any(|step| last["step"] == *step))
    })?;
    Ok(last)
}

fn is_operated_and_updated(update: &str, image: &[u8]) -> Result<()> {
    let mut host = Recipe::new().beating(GUEST)?.start()?;
    host.beats(GUEST, 1)?;
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    served(&host, folder)?;
    let order = |order: &str| ask(folder, "POST", &format!("/api/v1/hosts/h/guests/{GUEST}/{order}"), b"");
    ensure!(order("stop")?.starts_with("HTTP/1.1 200"), "{}", order("stop")?);
    host.state(GUEST, VmState::Stopped)?;
    let again = order("stop")?;
    ensure!(again.starts_with("HTTP/1.1 409") && again.contains("\"error\":\"refused\""), "{again}");
    ensure!(order("start")?.starts_with("HTTP/1.1 200"), "it does not start");
    host.state(GUEST, VmState::Running)?;
    let answer = ask(folder, "POST", &format!("/api/v1/hosts/h/{update}"), image)?;
    ensure!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    let update = end_of_update(folder)?;
    ensure!(update["step"] == "done" && update["report"]["generation"] == 2, "{update}");
    until("the update is in the metrics", || {
        Ok(get(folder, "/metrics")?.contains("baton_update_blackout_seconds_count{host=\"h\"} 1\n"))
    })?;
    let timeline = json(folder, "/api/v1/hosts/h/timeline")?;
    let names: Vec<_> = timeline.as_array().context("runs")?.iter().map(|run| run["name"].clone()).collect();
    ensure!(names == ["boot", "update to generation 2"], "{names:?}");
    let audit = fs::read_to_string(folder.join("audit.jsonl"))?;
    ensure!(audit.lines().count() == 8 && audit.contains("\"request\":\"update\""), "{audit}");
    if json(folder, "/api/v1/hosts/h/guests")?[0]["state"] != "running" {
        bail!("the guest has not gone on");
    }
    host.client()?.order(RequestBody::PowerOff)?;
    until("the host is seen to be gone", || Ok(get(folder, "/metrics")?.contains("baton_host_up{host=\"h\"} 0")))
}

fn a_console_is_followed_and_typed_on() -> Result<()> {
    let mut host = Recipe::new().linux(GUEST, "shell,poweroff")?.start()?;
    host.greets(GUEST)?;
    host.guest_prints(GUEST, "# ")?;
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    served(&host, folder)?;
    let path = format!("/api/v1/hosts/h/guests/{GUEST}/console");
    let mut stream = UnixStream::connect(folder.join("serve.sock"))?;
    stream.set_read_timeout(Some(BOOT_LIMIT))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: baton\r\n\r\n")?;
    let mut console = BufReader::new(stream);
    // The terminal's echo is not the shell's result.
    let answers = |console: &mut BufReader<UnixStream>, number: u32| {
        let answer = ask(folder, "POST", &path, format!("echo the answer is $((6 * {number}))\n").as_bytes())?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        output_until(console, &format!("the answer is {}", 6 * number))
    };
    answers(&mut console, 7)?;
    let answer = ask(folder, "POST", "/api/v1/hosts/h/update?by=bundle", b"")?;
    ensure!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    ensure!(end_of_update(folder)?["step"] == "done", "{}", end_of_update(folder)?);
    answers(&mut console, 8)?;
    let audit = fs::read_to_string(folder.join("audit.jsonl"))?;
    ensure!(audit.contains("\"request\":\"guest-type\"") && !audit.contains("answer"), "{audit}");
    host.powers_off()
}

/// Reads server-sent events until a console's output contains this.
fn output_until(console: &mut impl BufRead, wanted: &str) -> Result<()> {
    let mut output = String::new();
    for line in console.lines() {
        let Some(piece) = line?.strip_prefix("data: ").map(serde_json::from_str::<Value>).transpose()? else {
            continue;
        };
        output += piece["text"].as_str().context("no text")?;
        if output.contains(wanted) {
            return Ok(());
        }
    }
    bail!("the service ended the stream; it was: {output:?}")
}

fn a_roll_back_is_counted() -> Result<()> {
    let recipe = Recipe::new().beating(GUEST)?.with_fault_points().options("selftest=update:panic:restore");
    let mut host = recipe.start()?;
    host.beats(GUEST, 1)?;
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    served(&host, folder)?;
    let answer = ask(folder, "POST", "/api/v1/hosts/h/update?by=bundle", b"")?;
    ensure!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    let update = end_of_update(folder)?;
    let message = update["message"].as_str().unwrap_or_default();
    ensure!(update["step"] == "failed" && message.contains("rolled back"), "{update}");
    until("it is counted", || {
        Ok(get(folder, "/metrics")?.contains("baton_update_roll_backs_total{host=\"h\",reason=\"other\"} 1.0\n"))
    })?;
    host.beats(GUEST, 2)
}

/// Writes certificates of the service and of an operator, and the access file.
pub(super) fn write_certificates(folder: &Path) -> Result<Identity> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Other than those that it signs: OpenSSL takes them for signed by themselves otherwise.
    params.distinguished_name.push(DnType::CommonName, "authority");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    fs::write(folder.join("ca.pem"), authority.pem())?;
    for name in ["localhost", "alice"] {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new([name.to_owned()])?.signed_by(&key, &authority)?;
        fs::write(folder.join(format!("{name}.pem")), certificate.pem())?;
        let path = folder.join(format!("{name}.key"));
        fs::write(&path, key.serialize_pem())?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    }
    let files = "certificate = \"localhost.pem\"\nkey = \"localhost.key\"\nauthority = \"ca.pem\"\n";
    fs::write(folder.join("access.toml"), format!("{files}[roles]\nalice = \"update\"\n"))?;
    let file = |name: &str| Some(folder.join(name));
    Ok(Identity { certificate: file("alice.pem"), key: file("alice.key"), authority: file("ca.pem") })
}

fn is_operated_by_certificate() -> Result<()> {
    let mut host = Recipe::new().beating(GUEST)?.start()?;
    host.beats(GUEST, 1)?;
    let folder = tempfile::tempdir()?;
    let identity = write_certificates(folder.path())?;
    let tls = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    served_at(&host, folder.path(), Some(tls))?;
    let (name, port) = ("localhost".to_owned(), tls.port());
    let address = Address::Https { host: name, port, name: Some("h".to_owned()), identity };
    let mut client = Client::reach(&address, None)?;
    client.order(RequestBody::VmPause { name: GUEST.to_owned() })?;
    ensure!(client.vms()?[0].state == VmState::Paused, "it runs on");
    // The same host for a client on the service's machine.
    let local = Address::Serve { path: folder.path().join("serve.sock"), name: None };
    ensure!(Client::reach(&local, None)?.vms()?[0].state == VmState::Paused, "another host");
    let other = Address::Serve { path: folder.path().join("serve.sock"), name: Some("other".to_owned()) };
    let refusal = Client::reach(&other, None).map(drop).expect_err("there is no other");
    ensure!(format!("{refusal:#}").contains("other"), "{refusal:#}");
    client.order(RequestBody::VmResume { name: GUEST.to_owned() })?;
    let update = RequestBody::Update { is_dry_run: false, by: UpdateBy::Bundle };
    match client.request_within(BOOT_LIMIT, update)? {
        ReplyBody::Updated(report) => ensure!(report.generation == 2, "{report:?}"),
        other => bail!("another answer: {other:?}"),
    }
    // The line outlives the image.
    ensure!(client.info()?.generation == 2 && !client.log(0)?.0.is_empty(), "it is not the new image");
    host.beats(GUEST, 2)?;
    let audit = fs::read_to_string(folder.path().join("audit.jsonl"))?;
    ensure!(audit.lines().count() == 6 && audit.contains("\"who\":\"alice\""), "{audit}");
    host.powers_off()
}
