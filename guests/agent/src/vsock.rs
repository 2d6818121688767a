// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tasks `echo` and `serve` over virtio sockets: another guest of the same host, or the host, is the other end.

use crate::{echo, log, serve};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// Longest wait for the driver, and for the other end.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// Longest wait for the other end to close.
const CLOSE_LIMIT: Duration = Duration::from_secs(30);
/// Longest wait for a block to come back.
const ECHO_LIMIT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// Any identifier (VMADDR_CID_ANY).
const ANY_CID: u32 = u32::MAX;

/// Verifies what one connection sends back, for ever, beside the tasks that follow. It is never opened again.
pub fn start_echo(cid: u32, port: u32) {
    thread::spawn(move || {
        if let Err(error) = connect(cid, port, CONNECT_LIMIT).and_then(echo::run) {
            log!("echo: WRONG: vsock {cid}:{port}: {error}");
        }
    });
}

/// Sends back what connections send, for ever, beside the tasks that follow.
pub fn start_serve(port: u32) {
    thread::spawn(move || {
        if let Err(error) = listen(port) {
            log!("serve: WRONG: vsock port {port}: {error}");
        }
    });
}

/// Connects so often, one after the other, without closing: prints how many the other end has accepted, and the reason
/// for the first refusal; then closes all, and waits until the other end has, too: until then they count.
pub fn crowd(cid: u32, port: u32, times: u64) {
    let (mut open, mut refused, mut reason) = (Vec::new(), 0_u64, None);
    for _ in 0..times {
        match connect(cid, port, Duration::ZERO) {
            Ok(connection) => open.push(connection),
            Err(error) => {
                refused += 1;
                reason.get_or_insert(error);
            }
        }
    }
    let reason = reason.map_or("none".to_owned(), |reason| reason.to_string());
    log!("crowd: vsock {cid}:{port}: open={} refused={refused} reason={reason}", open.len());
    for connection in open {
        if let Err(error) = connection.set_linger(Some(CLOSE_LIMIT)) {
            log!("crowd: WRONG: a connection cannot wait for its end: {error}");
        }
    }
}

fn connect(cid: u32, port: u32, limit: Duration) -> io::Result<Socket> {
    let end = Instant::now() + limit;
    loop {
        let connected = Socket::new(Domain::VSOCK, Type::STREAM, None).and_then(|socket| {
            socket.connect(&SockAddr::vsock(cid, port))?;
            socket.set_read_timeout(Some(ECHO_LIMIT))?;
            Ok(socket)
        });
        match connected {
            Err(_) if Instant::now() < end => sleep(POLL_INTERVAL),
            result => return result,
        }
    }
}

fn listen(port: u32) -> io::Result<()> {
    let listener = Socket::new(Domain::VSOCK, Type::STREAM, None)?;
    listener.bind(&SockAddr::vsock(ANY_CID, port))?;
    listener.listen(BACKLOG)?;
    log!("serve: vsock port {port} listens");
    loop {
        let (connection, _) = listener.accept()?;
        thread::spawn(move || {
            let ended = serve::send_back(connection);
            log!("serve: a vsock connection has ended: {ended:?}");
        });
    }
}
