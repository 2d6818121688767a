// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disks with an NBD server as storage: the server sends anything, and the driver does anything.

use nbd::testing::{ALL_FLAGS, Server};
use nbd::{Client, Command, Config, Driver, Failure, REQUESTS, Request, Status, Stream};
use virtio::Fault;
use vm::devices::blk::{Blk, BlkConfig, Limits};
use vm::testing::VirtioDriver;

use crate::input::Input;
use crate::virtio::{VERSION_1, step};

const DISK_BYTES: usize = 1 << 16;
const TIMEOUT_NS: u64 = 1_000_000_000;

/// A server that sends what the input holds, in valid frames or not.
struct UntrustedServer<'a> {
    input: Input<'a>,
    /// The part of a request's header that has come, and the cookie of the last whole one.
    header: Vec<u8>,
    cookie: [u8; 8],
    pieces: Vec<u8>,
    status: Status,
}

impl UntrustedServer<'_> {
    fn push_pieces(&mut self) {
        match self.input.u8() % 8 {
            // A reply to the last request, and data.
            0..=3 => {
                self.pieces.extend(0x6744_6698_u32.to_be_bytes());
                self.pieces.extend((u32::from(self.input.u8()) & 0x81 & u32::from(self.input.u8())).to_be_bytes());
                self.pieces.extend(self.cookie);
                let data = usize::from(self.input.u16() & 0xfff);
                self.pieces.extend(vec![self.input.u8(); data]);
            }
            4 => self.push_greeting(),
            5 => self.pieces.clear(),
            _ => self.pieces.extend(self.input.string()),
        }
    }

    fn push_greeting(&mut self) {
        self.pieces.extend(b"NBDMAGICIHAVEOPT\0\x03");
        let mut information = vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, self.input.u8()];
        information[2] = self.input.u8() & self.input.u8() & self.input.u8();
        self.push_option(3, &information);
        if self.input.bool() {
            let sizes: Vec<u8> = [0, 3].into_iter().chain(self.input.array::<12>()).collect();
            self.push_option(3, &sizes);
        }
        self.push_option(1, &[]);
    }

    fn push_option(&mut self, kind: u32, data: &[u8]) {
        self.pieces.extend(0x3_e889_0455_65a9_u64.to_be_bytes());
        [7, kind, data.len() as u32].iter().for_each(|value| self.pieces.extend(value.to_be_bytes()));
        self.pieces.extend(data);
    }
}

impl Stream for UntrustedServer<'_> {
    fn open(&mut self) {
        self.pieces.clear();
        self.header.clear();
        self.status = if self.input.u8() & 7 == 7 { Status::Connecting } else { Status::Open };
        if self.input.u8() & 3 != 3 {
            self.push_greeting();
        }
    }

    fn status(&mut self) -> Status {
        self.status
    }

    fn send(&mut self, bytes: &[u8]) -> usize {
        let most = bytes.len().min(self.input.u16().into());
        for byte in &bytes[..most] {
            self.header.push(*byte);
            if let Some(at) =
                self.header.len().checked_sub(28).filter(|at| self.header[*at..].starts_with(b"\x25\x60\x95\x13"))
            {
                self.cookie.copy_from_slice(&self.header[at + 8..at + 16]);
            }
        }
        most
    }

    fn receive(&mut self, into: &mut [u8]) -> usize {
        let most = into.len().min(self.pieces.len());
        into.iter_mut().zip(self.pieces.drain(..most)).for_each(|(into, byte)| *into = byte);
        most
    }

    fn reset(&mut self) {
        self.status = Status::Closed;
    }
}

/// The requests that are in flight: what comes must be within them.
struct Flying([Option<Request>; REQUESTS]);

impl Flying {
    fn check(&self, tag: u16, at: u32, bytes: usize) {
        let request = self.0[usize::from(tag)].expect("it is in flight");
        assert!(u64::from(at) + bytes as u64 <= u64::from(request.bytes), "{request:?} at {at}: {bytes} bytes");
    }
}

impl Driver for Flying {
    type Fault = ();

    fn read(&mut self, tag: u16, at: u32, into: &mut [u8]) -> Result<(), ()> {
        self.check(tag, at, into.len());
        into.fill(tag as u8);
        Ok(())
    }

    fn write(&mut self, tag: u16, at: u32, from: &[u8]) -> Result<(), ()> {
        self.check(tag, at, from.len());
        Ok(())
    }

    fn complete(&mut self, tag: u16, _: Result<(), Failure>) -> Result<(), ()> {
        self.0[usize::from(tag)].take().map(drop).ok_or(())
    }
}

/// A client, and a server that lies.
pub fn nbd(data: &[u8]) {
    let mut input = Input(data);
    let is_write_back = input.bool();
    let config = Config { export: "disk".into(), is_read_only: input.bool(), is_write_back, timeout_ns: TIMEOUT_NS };
    let mut client = Client::new(config.clone());
    let mut flying = Flying([None; REQUESTS]);
    let mut server =
        UntrustedServer { input, header: Vec::new(), cookie: [0; 8], pieces: Vec::new(), status: Status::Closed };
    let mut now_ns = 0u64;
    while !server.input.is_empty() {
        match server.input.u8() % 8 {
            0 | 1 => submit(&mut client, &mut flying, &mut server.input, now_ns),
            2..=4 => server.push_pieces(),
            5 => now_ns += u64::from(server.input.u16()) << 14,
            6 => server.status = Status::Closed,
            _ => client = resumed(&client, &config),
        }
        client.turn(now_ns, &mut server, &mut flying).expect("each is completed once");
        assert_eq!(client.in_flight(), flying.0.iter().flatten().count());
    }
    for _ in 0..2 {
        now_ns += TIMEOUT_NS;
        client.turn(now_ns, &mut server, &mut flying).expect("each is completed once");
    }
    assert_eq!(client.in_flight(), 0, "time-outs end everything");
}

fn submit(client: &mut Client, flying: &mut Flying, input: &mut Input<'_>, now_ns: u64) {
    let may_trim = input.bool();
    let all = [Command::Read, Command::Write, Command::Flush, Command::Trim, Command::WriteZeroes { may_trim }];
    let command = input.choose(&all);
    let (offset, bytes) = if command == Command::Flush { (0, 0) } else { (input.number(), input.number() as u32) };
    let (tag, request) = (u16::from(input.u8()), Request { command, offset, bytes });
    if client.submit(tag, request, now_ns).is_ok() {
        flying.0[usize::from(tag)] = Some(request);
    }
}

fn resumed(client: &Client, config: &Config) -> Client {
    let mut next = Client::new(config.clone());
    next.resume(&client.save()).expect("its own state");
    client.saved_requests().for_each(|request| next.resume_request(&request).expect("its own request"));
    for (write, data) in client.saved_writes() {
        let data = data.concat();
        let mut rest = &data[..];
        let fill = |into: &mut [u8]| {
            let (part, left) = rest.split_at(into.len());
            into.copy_from_slice(part);
            rest = left;
        };
        next.resume_write(&write, fill).expect("its own change");
    }
    next.check_resumed().expect("its own state");
    next
}

fn config(is_write_back: bool) -> BlkConfig {
    let (export, serial) = ("disk".into(), "serial".into());
    BlkConfig { export, is_read_only: false, is_write_back, timeout_ns: TIMEOUT_NS, serial, limits: Limits::default() }
}

/// A driver of a disk, its server, and states that another image hands over.
pub fn virtio_blk(data: &[u8]) {
    let mut input = Input(data);
    let config = config(input.bool());
    let mut driver = VirtioDriver::new(Blk::new(config.clone()));
    let mut server = Server::new(DISK_BYTES, ALL_FLAGS);
    let mut now_ns = 0;
    if input.bool() {
        work(&mut driver, &mut server, now_ns);
        driver.start(VERSION_1 | u64::from(input.u32() & (3 << 28)));
    }
    while !input.is_empty() {
        match input.u8() % 8 {
            0..=2 => step(&mut driver, &mut input),
            3 => ask(&mut driver, &mut input),
            4 if !server.received.is_empty() => {
                let index = usize::from(input.u8()) % server.received.len();
                answer(&mut server, index);
            }
            5 => server.kill(512, || false),
            6 => {
                let mut state = driver.saved();
                let at = usize::from(input.u16()) % (state.len() + 1);
                state.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= input.u8());
                _ = driver.hand_over_from(Blk::new(config.clone()), &state);
            }
            _ => now_ns += u64::from(input.u16()) << 14,
        }
        work(&mut driver, &mut server, now_ns);
        driver.interrupts();
        driver.world.outputs.take_request();
    }
    let state = driver.saved();
    assert_eq!(driver.hand_over(Blk::new(config.clone())), Ok(()));
    assert_eq!(driver.saved().len(), state.len());
    works_after_reset(&mut driver, now_ns);
}

/// A disk with a saved state of a larger one asks past the end until it has connected to its server again.
fn answer(server: &mut Server, index: usize) {
    const INVALID: u32 = 22;
    if server.is_inside(index) {
        server.execute(index);
    } else {
        server.fail(index, INVALID);
    }
}

fn ask(driver: &mut VirtioDriver<Blk>, input: &mut Input<'_>) {
    let mut bytes = u32::from(input.u8() % 16).to_le_bytes().to_vec();
    bytes.extend([0; 4]);
    bytes.extend((input.number() & 0xff_ffff_ffff).to_le_bytes());
    bytes.extend(vec![input.u8(); usize::from(input.u8() & 3) * 512]);
    driver.add(0, &bytes, 1 + 512 * u32::from(input.u8() & 3));
    driver.notify(0);
}

fn work(driver: &mut VirtioDriver<Blk>, server: &mut Server, now_ns: u64) {
    let world = &mut driver.world;
    driver.endpoint.work(&world.memory, &mut world.outputs, |blk, io| -> Result<(), Fault> {
        blk.work(now_ns, server, io).map(drop)
    });
}

/// With a server that works a disk does, too, whatever was before. One that is smaller than a state states is refused.
fn works_after_reset(driver: &mut VirtioDriver<Blk>, mut now_ns: u64) {
    driver.start(VERSION_1);
    let serial = [&8u32.to_le_bytes()[..], &[0; 12]].concat();
    let head = driver.add(0, &serial, 21).expect("there is room");
    driver.notify(0);
    now_ns += TIMEOUT_NS;
    work(driver, &mut Server::new(DISK_BYTES, ALL_FLAGS), now_ns);
    assert_eq!(driver.collect(0).map(|(found, _)| found), Some(head), "it works after a reset");
}
