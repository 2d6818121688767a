// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line through `baton serve`: TLS with certificates on both sides, then HTTP's upgrade to the control channel's own
//! protocol.
//!
//! Rejected: the service's JSON API, a second form of every command; TLS in a program of its own beside the tool, which
//! an operator's machine would need for one command.

mod bridge;
mod identity;
mod reasons;
#[cfg(test)]
mod tests;

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned, version};

use self::identity::Files;
pub use self::identity::Identity;
use self::reasons::{Peers, explained};
use super::address::DEFAULT_BAUD;
use super::line::Line;
use super::network;
use super::upgrade::{PATIENCE, upgrade};

/// The time for the service's word about the client's certificate, which comes after the client's part of the
/// handshake. Without one, the answer to the request has it.
const VERDICT: Duration = Duration::from_secs(1);

/// An encrypted connection.
type Tls = StreamOwned<ClientConnection, TcpStream>;

/// Connects to a host of a service: the one of this name, or its only one.
///
/// # Errors
/// The reason, with a hint: a certificate of either side, no role, no such host. A refusal is a [`Refusal`].
pub(super) fn open(host: &str, port: u16, name: Option<&str>, identity: &Identity) -> Result<Line> {
    let files = identity.files()?;
    let peers = Peers { service: format!("{host}:{port}"), files: &files };
    let server: ServerName<'static> = host
        .to_owned()
        .try_into()
        .map_err(|_| anyhow!("{host:?} is no name for a certificate; correct the address"))?;
    let connection = ClientConnection::new(Arc::new(config(&files)?), server)?;
    let socket = network::connect(host, port, "start `baton serve` there")?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let mut tls = StreamOwned::new(connection, socket);
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let upgraded = shake_hands(&mut tls).and_then(|()| upgrade(&mut tls, &format!("{host}:{port}"), name));
    upgraded.map_err(|error| explained(error, &peers))?;
    // How fast the line behind the service is, is not known.
    Ok(bridge::over(tls, peers.service)?.with_baud(DEFAULT_BAUD))
}

/// Prepares TLS 1.3 with the client's certificate, if there is one.
fn config(files: &Files) -> Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(&[&version::TLS13])?.with_root_certificates(files.authorities()?);
    let mut config = match files.own()? {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).with_context(|| files.pair())?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Finishes the handshake, and waits for the service's verdict on the client's certificate. A request that was sent
/// before it could have the verdict lost with the connection.
fn shake_hands(tls: &mut Tls) -> Result<()> {
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock)?;
    }
    let limit = Timespec { tv_sec: VERDICT.as_secs() as i64, tv_nsec: 0 };
    if poll(&mut [PollFd::new(&tls.sock, PollFlags::IN)], Some(&limit))? > 0 {
        tls.conn.read_tls(&mut tls.sock)?;
        tls.conn.process_new_packets()?;
    }
    Ok(())
}
