// SPDX-License-Identifier: MIT OR Apache-2.0
//! The service's page in a real browser: a script does in a frame around it what a person would, and reports what it
//! sees. Between the two is a proxy, which permits the frame and serves the script; all else is the service's.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use lab::checks::is_possible;

use super::common::Running;

/// A browser on a crowded machine may take long.
const START_LIMIT: Duration = Duration::from_secs(90);
const LIMIT: Duration = Duration::from_secs(120);
/// The answer to an update's order comes so much later than the service gives it.
const LATE: Duration = Duration::from_secs(1);
/// A page with which a browser shows that it runs at all, and then visits the service.
const VISIT: &str = "<!DOCTYPE html><html lang=\"en\"><title>visit</title><body>\
                     <script>fetch('/running', { method: 'POST' })</script>\
                     <iframe src=\"/\" title=\"the page\" width=\"1200\" height=\"900\"></iframe>\
                     <script src=\"/visitor.js\"></script></body></html>";
const VISITOR: &str = concat!(include_str!("visitor.js"), include_str!("checks.js"), include_str!("timeline.js"));
/// Checks pages for people with disabilities; `scripts/setup.sh` fetches it.
const AXE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/axe-core/axe.min.js");

/// A guest's output: colours, a title, characters that are written over, lines that are erased, markup.
const CONSOLE: &[u8] = b"\x1b]0;title\x07\x1b[1;31ma\x1b[0m <b>x\x08c</b>\r\nlong\x1b[Kwrong\r\x1b[4C\x1b[Ker\r\n\
                         $ \r\x1b[Jlogin: ";

/// The browser's reports: `running`, then the contents that the page showed.
fn proxy(service: SocketAddr) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (send, receive) = channel();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let send = send.clone();
            thread::spawn(move || pass(stream, service, &send));
        }
    });
    (address, receive)
}

/// Answers one request, or passes it on: one for each connection.
fn pass(mut client: TcpStream, service: SocketAddr, send: &Sender<String>) -> Option<()> {
    let mut bytes = Vec::new();
    let end = loop {
        let mut buffer = [0; 4096];
        let count = client.read(&mut buffer).ok().filter(|count| *count > 0)?;
        bytes.extend(&buffer[..count]);
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let path = head.split(' ').nth(1)?;
    let length: Option<usize> =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let image = baton::testing::test_image(5, 3, 4);
    // Without it the script is empty, and the visitor reports that.
    let axe = if path == "/axe.js" { fs::read(AXE).unwrap_or_default() } else { Vec::new() };
    let (kind, own) = match path {
        "/visit" => ("text/html", VISIT.as_bytes()),
        "/visitor.js" => ("text/javascript", VISITOR.as_bytes()),
        "/image" => ("application/octet-stream", &image[..]),
        "/axe.js" => ("text/javascript", &axe[..]),
        "/running" | "/seen" => {
            let mut body = bytes.split_off(end);
            let mut rest = vec![0; length.unwrap_or(0).saturating_sub(body.len())];
            client.read_exact(&mut rest).ok()?;
            body.extend(rest);
            let report = if path == "/running" { "running".to_owned() } else { String::from_utf8_lossy(&body).into() };
            send.send(report).ok()?;
            ("text/plain", &b""[..])
        }
        _ => return forward(client, service, &head, &bytes[end..], length.unwrap_or(0)),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        own.len()
    );
    client.write_all(&[head.as_bytes(), own].concat()).ok()
}

fn forward(mut client: TcpStream, service: SocketAddr, head: &str, body: &[u8], length: usize) -> Option<()> {
    let mut there = TcpStream::connect(service).ok()?;
    there.write_all(head.replace("Connection: keep-alive", "Connection: close").as_bytes()).ok()?;
    there.write_all(body).ok()?;
    let is_update = head.starts_with("POST ") && head.contains("/update?");
    let (mut from, mut to) = (client.try_clone().ok()?, there.try_clone().ok()?);
    let rest = length.saturating_sub(body.len()) as u64;
    thread::spawn(move || std::io::copy(&mut (&mut from).take(rest), &mut to));
    if is_update {
        // The stream has the update's end before this has its beginning.
        thread::sleep(LATE);
    }
    let mut buffer = [0; 16 << 10];
    loop {
        let count = there.read(&mut buffer).ok().filter(|count| *count > 0)?;
        let text = &mut buffer[..count];
        replace(text, b"frame-ancestors 'none'", b"frame-ancestors 'self'");
        // The frame around it could not read a page with an origin of its own.
        replace(text, b"sandbox allow-scripts", b"without-sandbox-here ");
        client.write_all(text).ok()?;
    }
}

/// Replaces words by others of the same length: nothing else changes.
fn replace<const N: usize>(text: &mut [u8], words: &[u8; N], by: &[u8; N]) {
    if let Some(at) = text.windows(N).position(|window| window == words) {
        text[at..at + N].copy_from_slice(by);
    }
}

#[test]
fn a_person_sees_and_operates_hosts_in_a_browser() {
    let folder = tempfile::tempdir().expect("a folder");
    let unchecked = "the service's page is not checked in a browser";
    let Some(browser) = lab::browser::that_runs(folder.path(), unchecked) else { return };
    let running = Running::start();
    {
        let mut state = running.host.state.lock().expect("state");
        state.load_ns = 2_500_000;
        state.output.push(("web", [&b"x\r\n".repeat(2500), CONSOLE].concat()));
    }
    let (address, seen) = proxy(running.address);
    let _open = lab::browser::Open::at(&browser, folder.path(), &format!("http://{address}/visit")).expect("a browser");
    assert_eq!(seen.recv_timeout(START_LIMIT).as_deref(), Ok("running"), "the browser that runs here opens no page");
    let axe = is_possible(Path::new(AXE).is_file(), "no axe-core here: it does not check the service's page");
    // From here on anything missing is the fault of the page or its script.
    let expected = "errors: none\n\
                    who: this machine: role update\n\
                    hosts: rack1 connected, rack2 unreachable\n\
                    guests: web running [stop reset pause console], db stopped [start console]\n\
                    cpu: 0 online 40.0 %: guests 30.0 %, host 10.0 %; Busy now; 0.40\n\
                    hour: web: now 0.25 CPUs, at most 0.25; CPU time of web over the last hour; \
                    now 0.25 CPUs, at most 0.25; 92.0; \
                    web, in CPUs, by five minutes: 0.25\n\
                    host: the host's CPUs: now guests 0.30, host 0.10, idle 0.60 of 1 CPUs; guests host idle; \
                    86.4 108.8 52.8; From guests host idle: 0.30 0.10 0.60\n\
                    events: 0.000 s  host-ready\n\
                    boot: boot, 500 µs; first instruction to first guest instruction: 500 µs; \
                    run from 0 for 1000 of 1000; first instruction to first guest instruction: 500 µs\n\
                    axe, guests and the last hour: AXE\n\
                    asked: true no stop web? Its work is lost, as if its power were cut.\n\
                    axe, a question: AXE\n\
                    no: false running\n\
                    stopped: start console\n\
                    console: Console of web at rack1; keys; 2000 lines, SCREEN; live\n\
                    cleared: 1 line\n\
                    axe, a console: AXE\n\
                    left: console of web, false\n\
                    update: update 1: done; guests stood still for 150 µs, progress 1\n\
                    late: update 1: done; guests stood still for 150 µs\n\
                    chosen again: update 1: done; guests stood still for 150 µs\n\
                    timeline: prepared while guests run: 200 µs | guests stand still: 150 µs | \
                    update: all stop, guests saved: CPU 0 was last, after 40 µs\n\
                    axe, an update and its timeline: AXE\n\
                    landmarks: true\n\
                    unnamed: none, lang en\n\
                    ids: true, contrast good\n\
                    elsewhere: 0\n\
                    whole: /api/v1/hosts/rack1/timeline.html; boot, update to generation 2, all runs\n\
                    last run: update to generation 2: 350 µs; prepared while guests run, guests stand still, \
                    restart: staged, first instruction, update: blackout, update: all stop, guests saved; \
                    150 µs 42.9 % CPU 0 update: blackout\n\
                    first run: boot: 500 µs; first instruction to first guest instruction, boot, first instruction, \
                    first guest instruction: web; 300 µs 60.0 % CPU 0 boot\n\
                    axe, the whole timeline: AXE";
    let screen = r#""a <b>c</b>\nlonger\nlogin: \n""#;
    let expected = expected.replace("SCREEN", screen).replace("AXE", if axe { "no violations" } else { "not here" });
    assert_eq!(seen.recv_timeout(LIMIT).expect("the visitor reports"), expected);
    let typed = running.host.state.lock().expect("state").typed.clone();
    assert_eq!(String::from_utf8_lossy(&typed), "\x1b[2Jöx\ry\x7f\x1b[A\x03\x1b");
}
