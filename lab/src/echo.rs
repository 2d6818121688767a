// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other end of a guest's TCP connection (the agent's task `echo`), outside the machine: it sends back what comes.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Longest time for which the end of a server goes unnoticed.
const END_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A server at a port of this machine, until it is dropped.
#[derive(Debug)]
pub struct Echo {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    connections: AtomicUsize,
    ended: AtomicUsize,
    is_over: AtomicBool,
}

impl Echo {
    /// Listens at a free port, and returns it. A guest on QEMU's user network connects to the gateway, 10.0.2.2.
    ///
    /// # Errors
    /// There is no free port.
    pub fn listen() -> Result<(Self, u16)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no TCP port is free")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let thread = Some(thread::spawn(move || accept(&listener, &of_thread)));
        Ok((Self { shared, thread }, port))
    }

    /// Returns how many connections there have been, and how many of them have ended.
    pub fn connections(&self) -> (usize, usize) {
        (self.shared.connections.load(Ordering::SeqCst), self.shared.ended.load(Ordering::SeqCst))
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Serves one connection after the other.
fn accept(listener: &TcpListener, shared: &Shared) {
    while !shared.is_over.load(Ordering::SeqCst) {
        match listener.accept() {
            Ok((connection, _)) => {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let _ = serve(connection, shared);
                shared.ended.fetch_add(1, Ordering::SeqCst);
            }
            Err(_) => thread::sleep(END_CHECK_INTERVAL),
        }
    }
}

fn serve(mut connection: TcpStream, shared: &Shared) -> io::Result<()> {
    connection.set_nonblocking(false)?;
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(END_CHECK_INTERVAL))?;
    let mut bytes = [0; 4096];
    while !shared.is_over.load(Ordering::SeqCst) {
        match connection.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => connection.write_all(&bytes[..count])?,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_comes_back_and_connections_are_counted() {
        let (echo, port) = Echo::listen().expect("a port");
        let mut guest = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("connected");
        guest.write_all(b"abc").expect("sent");
        let mut bytes = [0; 3];
        guest.read_exact(&mut bytes).expect("came back");
        assert_eq!((&bytes, echo.connections()), (b"abc", (1, 0)));
        drop(guest);
        while echo.connections() != (1, 1) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
