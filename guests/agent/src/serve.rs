// SPDX-License-Identifier: MIT OR Apache-2.0
//! The other end of other guests' connections: what comes is sent back.

use crate::{log, stream};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::thread;

/// Bytes that are read in one go.
const PIECE_BYTES: usize = 64 << 10;

/// Gives the first network card an address, and sends back what comes to a port, for ever, beside the tasks that
/// follow.
pub fn start(own: SocketAddrV4) {
    thread::spawn(move || {
        if let Err(error) = stream::set_up(*own.ip()).and_then(|()| listen(own)) {
            log!("serve: WRONG: {own}: {error}");
        }
    });
}

fn listen(own: SocketAddrV4) -> Result<(), String> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, own.port())).map_err(|error| error.to_string())?;
    log!("serve: {own} listens");
    for connection in listener.incoming() {
        let connection = connection.map_err(|error| error.to_string())?;
        thread::spawn(move || {
            let ended = connection.set_nodelay(true).and_then(|()| send_back(connection));
            log!("serve: WRONG: a connection has ended: {ended:?}");
        });
    }
    Ok(())
}

/// Returns the bytes that came and went, once the other end has closed the connection.
pub fn send_back(mut connection: impl Read + Write) -> io::Result<u64> {
    let (mut piece, mut all) = (vec![0; PIECE_BYTES], 0);
    loop {
        match connection.read(&mut piece)? {
            0 => return Ok(all),
            bytes => {
                connection.write_all(&piece[..bytes])?;
                all += bytes as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn what_comes_is_sent_back_until_the_connection_is_closed() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let server = thread::spawn(move || send_back(listener.accept().expect("accepted").0));
        let (sent, mut back) = ([7; 100_000], vec![0; 100_000]);
        let mut writer = client.try_clone().expect("a second handle");
        let writing = thread::spawn(move || writer.write_all(&sent));
        client.read_exact(&mut back).expect("all of it");
        writing.join().expect("no panic").expect("sent");
        client.shutdown(std::net::Shutdown::Both).expect("closed");
        assert_eq!((server.join().expect("no panic").expect("closed"), &back[..]), (100_000, &sent[..]));
    }
}
