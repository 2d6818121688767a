// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thousand clients.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::common::{LIMIT, Running};

#[test]
fn a_thousand_clients_at_once_get_their_answers_and_cost_the_host_nothing() {
    let running = Running::start();
    let request = b"GET /api/v1/hosts HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let before = running.host.state.lock().expect("state").answered;
    let mut clients: Vec<TcpStream> = (0..1000)
        .map(|_| {
            let stream = TcpStream::connect(running.address).expect("connected");
            stream.set_read_timeout(Some(LIMIT)).expect("set");
            stream
        })
        .collect();
    // The head of each comes in two parts: all are under way at once.
    clients.iter_mut().for_each(|client| client.write_all(&request[..20]).expect("sent"));
    clients.iter_mut().for_each(|client| client.write_all(&request[20..]).expect("sent"));
    for client in &mut clients {
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // The service goes on reading the host by itself: six requests each tenth of a second.
    let asked = running.host.state.lock().expect("state").answered - before;
    assert!(asked < 900, "{asked}");
}
