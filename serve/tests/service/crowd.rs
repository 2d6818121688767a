// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thousand clients.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};

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

#[test]
fn clients_that_are_not_accepted_yet_wait_in_the_kernel() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _in_it = runtime.enter();
    let listener = serve::listen::tcp((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
    let address = listener.local_addr().expect("an address");
    // A connection that finds the queue full is made when there is space: never, here.
    let clients: Vec<_> = (0..1000).map(|_| TcpStream::connect_timeout(&address, LIMIT)).collect();
    assert!(clients.iter().all(Result::is_ok), "{:?}", clients.iter().find(|client| client.is_err()));
}
