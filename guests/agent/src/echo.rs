// SPDX-License-Identifier: MIT OR Apache-2.0
//! One TCP connection under constant use: blocks that the other end sends back, each verified.

use crate::disk::{BLOCK_BYTES, fill, holds};
use crate::{log, stream};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// Longest wait for the network card, which gets its address from another task, and for the other end.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// Longest wait for a block to come back.
const ECHO_LIMIT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Between blocks: an emulated machine has other work as well.
const PAUSE: Duration = Duration::from_millis(5);
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Gives the first network card an address, if there is one, and uses one connection for ever, beside the tasks that
/// follow. It is never opened again.
pub fn start(own: Option<Ipv4Addr>, to: SocketAddrV4) {
    thread::spawn(move || {
        let is_set_up = own.map_or(Ok(()), stream::set_up).map_err(io::Error::other);
        if let Err(error) = is_set_up.and_then(|()| connect(to)).and_then(run) {
            log!("echo: WRONG: {to}: {error}");
        }
    });
}

fn connect(to: SocketAddrV4) -> io::Result<TcpStream> {
    let end = Instant::now() + CONNECT_LIMIT;
    let connection = loop {
        match TcpStream::connect(to) {
            Err(_) if Instant::now() < end => sleep(POLL_INTERVAL),
            result => break result?,
        }
    };
    connection.set_read_timeout(Some(ECHO_LIMIT))?;
    connection.set_nodelay(true)?;
    Ok(connection)
}

/// Sends blocks for ever, and verifies what comes back.
pub fn run(mut connection: impl Read + Write) -> io::Result<()> {
    let (mut reported, mut beat, mut trips) = (Instant::now(), 0_u64, Vec::new());
    for number in 0_u64.. {
        let start = Instant::now();
        exchange(&mut connection, number)?;
        trips.push(start.elapsed());
        if reported.elapsed() >= REPORT_INTERVAL {
            let slowest = trips.iter().max().map_or(0, Duration::as_micros);
            let mean = trips.iter().sum::<Duration>().as_micros() / trips.len() as u128;
            log!("echo {beat} verified={} slowest_us={slowest} mean_us={mean}", number + 1);
            (reported, beat) = (Instant::now(), beat + 1);
            trips.clear();
        }
        sleep(PAUSE);
    }
    Ok(())
}

/// Sends a block and verifies what comes back.
fn exchange<C: Read + Write>(connection: &mut C, number: u64) -> io::Result<()> {
    let mut block = vec![0; BLOCK_BYTES];
    fill(&mut block, number, 0);
    connection.write_all(&block)?;
    block.fill(0);
    connection.read_exact(&mut block)?;
    if holds(&block, number, 0) {
        Ok(())
    } else {
        Err(io::Error::other(format!("block {number} came back as another")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another end, which may change a byte.
    #[derive(Default)]
    struct End {
        bytes: Vec<u8>,
        changed: Option<usize>,
    }

    impl Write for End {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.bytes.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Read for End {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.changed.take().into_iter().for_each(|at| self.bytes[at] ^= 1);
            let count = bytes.len().min(self.bytes.len());
            bytes[..count].copy_from_slice(&self.bytes[..count]);
            self.bytes.drain(..count);
            Ok(count)
        }
    }

    #[test]
    fn blocks_that_come_back_are_verified() {
        let mut end = End::default();
        (0..3).for_each(|number| exchange(&mut end, number).unwrap());
        end.changed = Some(BLOCK_BYTES - 1);
        let error = exchange(&mut end, 3).unwrap_err().to_string();
        assert_eq!(error, "block 3 came back as another");
    }

    #[test]
    fn a_connection_that_ends_is_an_error() {
        let mut end = io::Cursor::new(Vec::new());
        assert_eq!(exchange(&mut end, 0).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
