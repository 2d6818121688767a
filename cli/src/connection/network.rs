// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines over sockets: Unix, TCP, vsock.

use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use super::address::DEFAULT_BAUD;
use super::line::Line;

/// The time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The keep-alive interval: a peer that has vanished is noticed after about four of them.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Connects to a Unix socket behind which is a host.
pub(super) fn unix(path: &Path) -> Result<Line> {
    unix_socket(path, "the host").map(Line::over)
}

/// Connects to a Unix socket; `owner` is the program behind it.
pub(super) fn unix_socket(path: &Path, owner: &str) -> Result<UnixStream> {
    UnixStream::connect(path).map_err(|error| {
        let path = path.display();
        match error.kind() {
            ErrorKind::NotFound => anyhow!("there is no socket {path}; correct the path, or start {owner} first"),
            ErrorKind::ConnectionRefused => anyhow!("no process listens at {path}; {owner} has probably ended"),
            ErrorKind::PermissionDenied => anyhow!("{path} may not be opened by you; ask its owner, or use sudo"),
            _ => anyhow!("{path} cannot be connected to: {error}"),
        }
    })
}

/// Connects to a TCP port behind which is a serial line: its rate is not known, so the usual one is assumed.
pub(super) fn tcp(host: &str, port: u16) -> Result<Line> {
    let socket = connect(host, port, "start the terminal server's service for it")?;
    prepare(&socket).context("the socket cannot be set up")?;
    Ok(Line::over(socket).with_baud(DEFAULT_BAUD))
}

/// Connects to a TCP port; the hint is for one at which nothing listens.
pub(super) fn connect(host: &str, port: u16, hint: &str) -> Result<TcpStream> {
    let addresses = (host, port).to_socket_addrs();
    let addresses = addresses.with_context(|| format!("the name {host:?} cannot be resolved; correct it"))?;
    let mut failure = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = Some((address, error)),
        }
    }
    let Some((address, error)) = failure else { return Err(anyhow!("the name {host:?} has no address; correct it")) };
    Err(match error.kind() {
        ErrorKind::ConnectionRefused => {
            anyhow!("nothing listens at {address}; correct the port, or {hint}")
        }
        ErrorKind::TimedOut => {
            anyhow!("{address} did not answer within {CONNECT_TIMEOUT:?}; a firewall may be between")
        }
        _ => anyhow!("{address} cannot be connected to: {error}"),
    })
}

/// Sets a socket up as a line: it is polled, and a peer that has vanished is noticed.
pub(super) fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_nonblocking(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE).with_retries(3);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}

/// Connects to a port of a virtual machine, or of the machine below.
pub(super) fn vsock(cid: u32, port: u32) -> Result<Line> {
    let connected = Socket::new(Domain::VSOCK, Type::STREAM, None).and_then(|socket| {
        socket.connect_timeout(&SockAddr::vsock(cid, port), CONNECT_TIMEOUT)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    match connected {
        Ok(socket) => Ok(Line::over(socket)),
        Err(error) => {
            let hint = match error.kind() {
                ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused => {
                    "nothing listens at that port there; a Baton host refuses guests whose vsock states no `control`"
                }
                ErrorKind::TimedOut => "that machine does not answer",
                _ => "`modprobe vhost_vsock` on a host, `vmw_vsock_virtio_transport` in a guest; correct the CID",
            };
            Err(anyhow!("vsock {cid}:{port} cannot be connected to ({error}): {hint}"))
        }
    }
}
