// SPDX-License-Identifier: MIT OR Apache-2.0
//! A service in this process, and a client of it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use serve::access::Role;
use serve::api;
use serve::ending::Ending;
use serve::listen::{self, Door};
use serve::options::{HistoryOptions, HostOption, Options, Place};
use serve::service::Service;
use tempfile::TempDir;
use tokio::sync::Semaphore;

use super::fake::FakeHost;

/// The longest time for anything.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A service with the host `rack1`, and the means to watch it.
pub struct Running {
    pub folder: TempDir,
    pub host: FakeHost,
    /// The address at which each client has the role update.
    pub address: SocketAddr,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The options of a service with its socket and files in `folder`.
pub fn options(folder: &Path, hosts: &[(&str, &str)]) -> Options {
    let host = hosts
        .iter()
        .map(|(name, address)| HostOption { name: (*name).to_owned(), address: address.parse().expect("an address") });
    Options {
        listen: vec![Place::Unix(folder.join("serve.sock"))],
        host: host.collect(),
        key: None,
        socket_mode: 0o600,
        access: None,
        insecure_loopback: false,
        audit: Some(folder.join("audit.jsonl")),
        refresh: Duration::from_millis(100),
        stop_timeout: LIMIT,
        history: HistoryOptions {
            history_interval: Duration::from_millis(100),
            history_delay: Duration::from_millis(100),
            ..HistoryOptions::default()
        },
    }
}

/// Serves at the options' places and at a port of its own with this role, which is returned.
pub fn serve(options: Options, role: Role) -> SocketAddr {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut doors = Vec::new();
            for place in options.places() {
                doors.push(Door::open(&place, &options).await.expect("a door"));
            }
            let listener = listen::tcp((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
            let address = listener.local_addr().expect("an address");
            doors.push(Door::Loopback(listener, role));
            let (_stage, ending) = Ending::new();
            let app = api::router(Service::start(&options, ending.clone()).expect("started"));
            let limit = Arc::new(Semaphore::new(listen::MAX_CONNECTIONS));
            let serve = |door: Door| tokio::spawn(door.serve(app.clone(), limit.clone(), ending.clone()));
            let serving: Vec<_> = doors.into_iter().map(serve).collect();
            send.send(address).expect("the test waits");
            for door in serving {
                let _ = door.await;
            }
        });
    });
    receive.recv_timeout(LIMIT).expect("the service has started")
}

impl Running {
    pub fn start() -> Self {
        Self::with_role(Role::Update)
    }

    pub fn with_role(role: Role) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let host = FakeHost::start(folder.path(), "rack1");
        let gone = format!("unix:{}", folder.path().join("nowhere.sock").display());
        let here = format!("unix:{}", host.socket.display());
        let address = serve(options(folder.path(), &[("rack1", &here), ("rack2", &gone)]), role);
        let running = Self { folder, host, address };
        running
            .until("rack1 is connected", |running| running.get("/api/v1/hosts/rack1").json()["state"] == "connected");
        running
    }

    /// Waits for a condition.
    pub fn until(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let end = Instant::now() + LIMIT;
        while !is_so(self) {
            assert!(Instant::now() < end, "not within {LIMIT:?}: {what}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.request("GET", path, "", b"")
    }

    pub fn post(&self, path: &str, body: &[u8]) -> Answer {
        self.request("POST", path, "", body)
    }

    /// Sends a request with more headers, each with its line end.
    pub fn request(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).expect("connected");
        ask(&mut stream, method, path, &format!("Host: localhost\r\n{headers}"), body)
    }

    /// Sends a request over the Unix socket.
    pub fn over_socket(&self, method: &str, path: &str) -> Answer {
        let mut stream = UnixStream::connect(self.folder.path().join("serve.sock")).expect("connected");
        ask(&mut stream, method, path, "Host: baton\r\n", b"")
    }

    /// The lines of the audit log.
    pub fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("audit.jsonl")).expect("an audit log");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

/// Sends a request and reads the whole answer.
pub fn ask(stream: &mut (impl Read + Write), method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
    let head = format!(
        "{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\
         Content-Type: application/json\r\n\r\n",
        body.len()
    );
    // The service may refuse before it has read all.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    let end =
        bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or_else(|| panic!("no answer: {read:?}"));
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Answer { status, head, body: bytes[end + 4..].to_vec() }
}
