// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares one host's control channel among any number of clients: sockets here, decisions in `router`.
//!
//! One thread waits on everything with poll(2) and never on a single peer: every socket is non-blocking, and what a
//! peer does not take waits in its outbox.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::What;
use super::router::{ClientId, Router};

#[cfg(test)]
mod tests;

/// Interval of greetings to a host that has not answered yet.
const GREETING_INTERVAL: Duration = Duration::from_millis(250);
/// Once the host is gone, clients are dropped when none of them has taken any of its last messages for so long.
const QUIET: Duration = Duration::from_secs(1);
/// Longest time for all of them.
const FAREWELL: Duration = Duration::from_secs(10);
/// The maximum number of clients.
const MAX_CLIENTS: usize = 64;

struct Broker<N> {
    host: UnixStream,
    listener: UnixListener,
    sockets: BTreeMap<ClientId, UnixStream>,
    router: Router,
    notify: N,
    /// Set once the host is gone.
    farewell: Option<Farewell>,
}

/// The time at which clients are dropped.
struct Farewell {
    end: Instant,
    /// `end` is never later.
    limit: Instant,
}

impl Farewell {
    fn new() -> Self {
        let now = Instant::now();
        Self { end: now + QUIET, limit: now + FAREWELL }
    }

    /// A client has taken something.
    fn put_off(&mut self) {
        self.end = (Instant::now() + QUIET).min(self.limit);
    }
}

/// The sockets that are ready.
#[derive(Default)]
struct Ready {
    stop: bool,
    host: bool,
    listener: bool,
    clients: Vec<ClientId>,
}

/// Runs the broker until the host has gone or the other end of `stop` is closed. Either way all that the host has sent
/// is read first, and clients may take what is left for them. `notify` is called with each happening.
pub fn run(host: UnixStream, listener: UnixListener, stop: UnixStream, notify: impl Fn(What)) {
    let router = Router::default();
    let mut broker = Broker { host, listener, sockets: BTreeMap::new(), router, notify, farewell: None };
    if let Err(error) = broker.serve(&stop) {
        (broker.notify)(What::Note(format!("the control channel has ended: {error}")));
    }
}

impl<N: Fn(What)> Broker<N> {
    fn serve(&mut self, stop: &UnixStream) -> io::Result<()> {
        self.host.set_nonblocking(true)?;
        self.listener.set_nonblocking(true)?;
        let mut greeting = Instant::now();
        loop {
            if Instant::now() >= greeting {
                self.router.greet();
                greeting = Instant::now() + GREETING_INTERVAL;
            }
            self.write_all();
            self.router.take_happened().into_iter().for_each(&self.notify);
            let is_over = self
                .farewell
                .as_ref()
                .is_some_and(|farewell| self.sockets.is_empty() || Instant::now() >= farewell.end);
            if is_over {
                return Ok(());
            }
            let ready = self.wait(stop)?;
            if ready.stop && self.farewell.is_none() {
                self.take_leave();
            } else {
                self.read_all(&ready)?;
            }
        }
    }

    /// Reads what the host still has in the socket. The caller has seen the emulator end, so nothing follows; and
    /// a broker that found no core until then has read nothing of the host's last words.
    fn take_leave(&mut self) {
        let mut buffer = [0; 16 * 1024];
        while let Some(bytes) = read(&mut self.host, &mut buffer).filter(|bytes| !bytes.is_empty()) {
            self.router.host_bytes(bytes);
        }
        self.host_has_gone();
    }

    fn host_has_gone(&mut self) {
        self.router.host_gone();
        self.farewell = Some(Farewell::new());
    }

    /// Waits until a socket can be read, or written where something waits for it.
    fn wait(&mut self, stop: &UnixStream) -> io::Result<Ready> {
        let interest = |is_idle: bool| if is_idle { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let idle: BTreeMap<_, _> = self.router.clients().map(|(id, client)| (id, client.outbox.is_empty())).collect();
        let ids: Vec<ClientId> = self.sockets.keys().copied().collect();
        let clients = self.sockets.iter().map(|(id, socket)| (socket.as_fd(), interest(idle.get(id) != Some(&false))));
        // A host that has gone and a broker that is stopped would end every wait at once.
        let ends = [(stop.as_fd(), PollFlags::IN), (self.host.as_fd(), interest(self.router.to_host.is_empty()))];
        let ends = ends.into_iter().take(if self.farewell.is_none() { 2 } else { 0 });
        let sources = [(self.listener.as_fd(), PollFlags::IN)].into_iter().chain(clients).chain(ends);
        let mut fds: Vec<PollFd<'_>> = sources.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
        let timeout = Timespec::try_from(GREETING_INTERVAL).ok();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let clients = ids.iter().enumerate().filter(|(at, _)| is_ready(1 + at)).map(|(_, id)| *id).collect();
        let (stop, host) = (is_ready(1 + ids.len()), is_ready(2 + ids.len()));
        Ok(Ready { stop, listener: is_ready(0), host, clients })
    }

    fn read_all(&mut self, ready: &Ready) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        if ready.host {
            match read(&mut self.host, &mut buffer) {
                Some(bytes) => self.router.host_bytes(bytes),
                None => self.host_has_gone(),
            }
        }
        for id in &ready.clients {
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            match read(socket, &mut buffer) {
                Some(bytes) => self.router.client_bytes(*id, bytes),
                None => self.drop_client(*id),
            }
        }
        if ready.listener { self.accept() } else { Ok(()) }
    }

    fn accept(&mut self) -> io::Result<()> {
        match self.listener.accept() {
            // A client too many is hung up on.
            Ok(_) if self.sockets.len() >= MAX_CLIENTS => Ok(()),
            Ok((socket, _)) => {
                socket.set_nonblocking(true)?;
                self.sockets.insert(self.router.connect(), socket);
                Ok(())
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn write_all(&mut self) {
        if self.farewell.is_none() {
            // An error shows at the next read.
            let _ = self.router.to_host.drain_to(&mut self.host);
        }
        let mut gone = Vec::new();
        for (id, socket) in &mut self.sockets {
            let Some(client) = self.router.client(*id) else { continue };
            let result = client.outbox.drain_to(socket);
            if let (Ok(1..), Some(farewell)) = (&result, &mut self.farewell) {
                farewell.put_off();
            }
            if result.is_err() || (client.is_leaving && client.outbox.is_empty()) {
                gone.push(*id);
            }
        }
        gone.into_iter().for_each(|id| self.drop_client(id));
    }

    fn drop_client(&mut self, id: ClientId) {
        self.sockets.remove(&id);
        self.router.disconnect(id);
    }
}

/// Reads the bytes that are there without waiting; `None` at the end of the stream.
fn read<'b>(socket: &mut UnixStream, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    match socket.read(buffer) {
        Ok(0) => None,
        Ok(count) => Some(&buffer[..count]),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Some(&[]),
        Err(_) => None,
    }
}
