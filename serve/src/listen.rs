// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sockets: each connection becomes a [`Peer`], and its requests go to the router. The number of connections is
//! bounded, and so is the time of each wait for a client. When the service ends, its sockets close first; requests
//! under way are answered.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use axum::{Extension, Router};
use futures_util::future::{Either, select};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::access::{Access, Over, Peer, Role};
use crate::ending::{Ending, Stage};
use crate::options::{Options, Place};
use crate::tls;

mod unix;

use unix::SocketFile;

/// The time for a handshake, and for the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause after a connection that could not be accepted: too many files are open.
const PAUSE: Duration = Duration::from_millis(100);
/// The most connections at a time; others wait in the kernel.
pub const MAX_CONNECTIONS: usize = 2048;
/// Connections over TCP that wait in the kernel. One that does not fit there is tried again by its client's kernel
/// after one second, then after two, four, and so on.
const BACKLOG: u32 = 1024;

/// A listening socket.
pub enum Door {
    /// A Unix socket.
    Unix(UnixListener, SocketFile),
    /// TCP without TLS, for this machine: each client has this role.
    Loopback(TcpListener, Role),
    /// TCP with TLS.
    Tls(TcpListener, TlsAcceptor, Arc<Access>),
}

/// A connection's part of the limit, which it keeps until its last answer, or until the protocol after an upgrade has
/// ended.
#[derive(Clone)]
pub struct Hold(
    #[expect(dead_code, reason = "it is given back when the last copy is dropped")] Arc<OwnedSemaphorePermit>,
);

/// A client that is being served.
type Client = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Door {
    /// Opens a place as the options state.
    ///
    /// # Errors
    /// The place is taken, or it would let clients in without TLS.
    pub async fn open(place: &Place, options: &Options) -> Result<Self> {
        let address = match place {
            Place::Unix(path) => {
                return unix::open(path, options.socket_mode).map(|(listener, file)| Self::Unix(listener, file));
            }
            Place::Tcp(address) => address,
        };
        let is_plain = options.insecure_loopback && address.ip().is_loopback();
        let access = match &options.access {
            Some(path) if !is_plain => Some(Access::load(path)?),
            None if !is_plain => bail!(
                "{place}: no TCP without TLS; name certificates with --access, or use a loopback address and \
                 --insecure-loopback"
            ),
            _ => None,
        };
        let listener = tcp(*address).with_context(|| format!("{place} cannot be used"))?;
        Ok(match access {
            Some(access) => Self::Tls(listener, tls::acceptor(&access)?, Arc::new(access)),
            None => Self::Loopback(listener, Role::Read),
        })
    }

    /// Serves clients until the service closes. Each holds a part of `limit` until its last answer.
    pub async fn serve(self, app: Router, limit: Arc<Semaphore>, ending: Ending) {
        let mut closing = ending.clone();
        let clients = pin!(self.take(&app, &limit, &ending));
        select(clients, pin!(closing.comes(Stage::Closing))).await;
    }

    async fn take(&self, app: &Router, limit: &Arc<Semaphore>, ending: &Ending) {
        loop {
            let Ok(permit) = limit.clone().acquire_owned().await else { return };
            match self.accept(app, Hold(Arc::new(permit)), ending).await {
                Ok(client) => drop(tokio::spawn(client)),
                Err(error) => {
                    eprintln!("baton serve: no connection is accepted: {error}");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Takes the next connection; the future serves it.
    async fn accept(&self, app: &Router, hold: Hold, ending: &Ending) -> io::Result<Client> {
        let (app, ending) = (app.clone().layer(Extension(hold)), ending.clone());
        Ok(match self {
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                let who = format!("uid {}", stream.peer_cred()?.uid());
                Box::pin(speak(stream, app, Peer { who, role: Some(Role::Update), over: Over::Unix }, ending))
            }
            Self::Loopback(listener, role) => {
                let (stream, _) = listener.accept().await?;
                let peer = Peer { who: "this machine".to_owned(), role: Some(*role), over: Over::Loopback };
                Box::pin(speak(stream, app, peer, ending))
            }
            Self::Tls(listener, acceptor, access) => {
                let (stream, from) = listener.accept().await?;
                let (acceptor, access) = (acceptor.clone(), access.clone());
                Box::pin(async move {
                    match timeout(PATIENCE, acceptor.accept(stream)).await {
                        Ok(Ok(stream)) => {
                            let peer = tls::peer(&access, stream.get_ref().1.peer_certificates());
                            speak(stream, app, peer, ending).await;
                        }
                        Ok(Err(error)) => eprintln!("baton serve: {from} is refused: {error}"),
                        Err(_) => eprintln!("baton serve: {from} is refused: no handshake within {PATIENCE:?}"),
                    }
                })
            }
        })
    }
}

/// Passes a client's requests to the router; when the service closes, the one that is under way is the last.
async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    app: Router,
    peer: Peer,
    mut ending: Ending,
) {
    let service = TowerToHyperService::new(app.layer(Extension(peer)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let closing = pin!(ending.comes(Stage::Closing));
    // A client that breaks off, or sends no HTTP, ends its own connection.
    if let Either::Right(((), mut connection)) = select(connection, closing).await {
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// Listens on TCP.
///
/// # Errors
/// The address is in use, or is not this machine's.
pub fn tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
