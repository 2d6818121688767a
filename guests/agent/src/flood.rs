// SPDX-License-Identifier: MIT OR Apache-2.0
//! As much traffic as there can be: the smallest frames, or a TCP connection in one direction.

use crate::{log, stream};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// The data of a datagram in a frame of 64 bytes: 14 of Ethernet, 20 of IP and 8 of UDP are before it, a checksum of 4
/// behind it.
const SMALLEST: [u8; 18] = [0; 18];
/// Bytes that are written or read in one go.
const PIECE_BYTES: usize = 64 << 10;
const CONNECT_LIMIT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Datagrams in frames of 64 bytes.
    Packets,
    /// A TCP connection.
    Bulk,
}

/// Gives the first network card an address, and sends for ever, beside the tasks that follow.
pub fn start(traffic: Traffic, own: Ipv4Addr, to: SocketAddrV4) {
    thread::spawn(move || {
        let sent = stream::set_up(own).and_then(|()| {
            log!("flood: {traffic:?} to {to}");
            match traffic {
                Traffic::Packets => packets(own, to),
                Traffic::Bulk => connect(to).and_then(bulk),
            }
            .map_err(|error| error.to_string())
        });
        log!("flood: WRONG: {to}: {sent:?}");
    });
}

fn packets(own: Ipv4Addr, to: SocketAddrV4) -> io::Result<()> {
    let socket = UdpSocket::bind((own, 0))?;
    socket.connect(to)?;
    loop {
        // A queue that is full, and a receiver that is not up yet, are no end.
        let _ = socket.send(&SMALLEST);
    }
}

fn connect(to: SocketAddrV4) -> io::Result<TcpStream> {
    let end = Instant::now() + CONNECT_LIMIT;
    loop {
        match TcpStream::connect(to) {
            Err(_) if Instant::now() < end => sleep(POLL_INTERVAL),
            result => return result,
        }
    }
}

fn bulk(mut connection: impl Write) -> io::Result<()> {
    let piece = vec![7; PIECE_BYTES];
    loop {
        connection.write_all(&piece)?;
    }
}

/// Gives the first network card an address, and drops all that comes to a port, for ever, beside the tasks that follow.
pub fn sink(own: SocketAddrV4) {
    thread::spawn(move || {
        let ended = stream::set_up(*own.ip()).and_then(|()| listen(own).map_err(|error| error.to_string()));
        log!("sink: WRONG: {own}: {ended:?}");
    });
}

fn listen(own: SocketAddrV4) -> io::Result<()> {
    let datagrams = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, own.port()))?;
    thread::spawn(move || while datagrams.recv(&mut [0; 64]).is_ok() {});
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, own.port()))?;
    log!("sink: {own} listens");
    for connection in listener.incoming() {
        let bytes = discard(connection?);
        log!("sink: a connection has ended: {bytes:?}");
    }
    Ok(())
}

/// Returns the bytes that came, once the other end has closed the connection.
pub fn discard(mut connection: impl Read) -> io::Result<u64> {
    let (mut piece, mut all) = (vec![0; PIECE_BYTES], 0);
    loop {
        match connection.read(&mut piece)? {
            0 => return Ok(all),
            bytes => all += bytes as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_comes_is_counted() {
        assert_eq!(discard(&vec![1; 3 * PIECE_BYTES + 5][..]).expect("read"), 3 * PIECE_BYTES as u64 + 5);
    }

    #[test]
    fn bulk_ends_where_the_other_end_closes() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::BrokenPipe)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        assert_eq!(bulk(Full(5 * PIECE_BYTES)).expect_err("closed").kind(), io::ErrorKind::BrokenPipe);
    }
}
