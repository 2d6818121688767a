// SPDX-License-Identifier: MIT OR Apache-2.0
mod durability;
mod liars;
mod properties;
mod requests;

use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

use super::*;
use crate::testing::{ALL_FLAGS, Server};

const SECOND_NS: u64 = 1_000_000_000;
const TIMEOUT_NS: u64 = 10 * SECOND_NS;

/// A driver with a buffer for each request.
#[derive(Clone, Debug, Default)]
struct Buffers {
    data: BTreeMap<u16, Vec<u8>>,
    done: Vec<(u16, Result<(), Failure>)>,
    /// Its memory ends.
    is_faulty: bool,
}

impl Driver for Buffers {
    type Fault = &'static str;

    fn read(&mut self, tag: u16, at: u32, into: &mut [u8]) -> Result<(), Self::Fault> {
        let data = self.data.get(&tag).filter(|_| !self.is_faulty).ok_or("no memory")?;
        into.copy_from_slice(&data[at as usize..][..into.len()]);
        Ok(())
    }

    fn write(&mut self, tag: u16, at: u32, from: &[u8]) -> Result<(), Self::Fault> {
        let data = self.data.get_mut(&tag).filter(|_| !self.is_faulty).ok_or("no memory")?;
        data[at as usize..][..from.len()].copy_from_slice(from);
        Ok(())
    }

    fn complete(&mut self, tag: u16, result: Result<(), Failure>) -> Result<(), Self::Fault> {
        self.done.push((tag, result));
        Ok(())
    }
}

/// A client, its server, its driver, and the time.
#[derive(Debug)]
struct World {
    client: Client,
    server: Server,
    driver: Buffers,
    now_ns: u64,
    next_ns: Option<u64>,
}

fn config(is_write_back: bool) -> Config {
    Config { export: String::from("disk"), is_read_only: false, is_write_back, timeout_ns: TIMEOUT_NS }
}

impl World {
    fn new(server: Server, config: Config) -> Self {
        Self { client: Client::new(config), server, driver: Buffers::default(), now_ns: SECOND_NS, next_ns: None }
    }

    /// Returns a connected client of a disk of this size.
    fn up(bytes: usize, flags: u16, is_write_back: bool) -> Self {
        let mut world = Self::new(Server::new(bytes, flags), config(is_write_back));
        world.turn();
        assert!(world.client.is_up(), "{:?}", world.client.take_news());
        world.client.take_news();
        world
    }

    fn turn(&mut self) {
        self.next_ns =
            self.client.turn(self.now_ns, &mut self.server, &mut self.driver).expect("a driver without fault");
    }

    /// Lets the server do all that there is, until nothing moves.
    fn run_until_idle(&mut self) {
        for _ in 0..1000 {
            self.turn();
            if self.server.received.is_empty() && self.next_ns != Some(self.now_ns) {
                break;
            }
            self.server.execute_all();
        }
    }

    fn wait(&mut self, ns: u64) {
        self.now_ns += ns;
        self.turn();
    }

    fn submit(&mut self, tag: u16, command: Command, offset: u64, data: &[u8]) {
        self.driver.data.insert(tag, data.to_vec());
        let request = Request { command, offset, bytes: data.len() as u32 };
        assert_eq!(self.client.submit(tag, request, self.now_ns), Ok(()));
    }

    fn write(&mut self, tag: u16, offset: u64, data: &[u8]) {
        self.submit(tag, Command::Write, offset, data);
    }

    fn read(&mut self, tag: u16, offset: u64, bytes: usize) {
        self.submit(tag, Command::Read, offset, &std::vec![0; bytes]);
    }

    fn flush(&mut self, tag: u16) {
        self.submit(tag, Command::Flush, 0, &[]);
    }

    fn done(&mut self) -> Vec<(u16, Result<(), Failure>)> {
        core::mem::take(&mut self.driver.done)
    }

    /// Hands the client's state over to another image, with its stream or without.
    fn hand_over(&mut self, keeps_stream: bool) {
        let saved = self.client.save();
        let requests: Vec<_> = self.client.saved_requests().collect();
        let writes: Vec<_> = self.client.saved_writes().map(|(write, data)| (write, data.concat())).collect();
        let mut next = Client::new(self.client.config().clone());
        next.resume(&saved).expect("its own state");
        requests.iter().for_each(|request| next.resume_request(request).expect("its own request"));
        for (write, data) in &writes {
            let mut at = 0;
            let fill = |into: &mut [u8]| {
                into.copy_from_slice(&data[at..at + into.len()]);
                at += into.len();
            };
            next.resume_write(write, fill).expect("its own change");
        }
        next.check_resumed().expect("its own state");
        self.client = next;
        if !keeps_stream {
            self.server.disconnect();
        }
    }
}
