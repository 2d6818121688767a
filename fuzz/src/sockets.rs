// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests with virtio sockets, and a stream of the host's: drivers that write anything into rings and memory, send any
//! packets, lie about their room, and are reset meanwhile.

use vm::addr::{AccessSize, Gpa};
use vm::devices::virtio::{Chain, Fault};
use vm::devices::vsock::{Outgoing, Packet, Received, Taken, Vsock};
use vm::memory::GuestMemory as _;
use vm::testing::{Between, VirtioDriver};
use vsock::{Address, HOST_CID, Header, Operation, STREAM_BYTES, Stream};

use crate::input::Input;

const GUESTS: usize = 3;
const FIRST: u32 = 3;
/// Where the host's stream leads, and its own ports.
const SERVER: Address = Address { cid: FIRST, port: 0 };
const HOST_PORTS: u32 = 0;
const VERSION_1: u64 = 1 << 32;
const RECEIVE: u16 = 0;
const TRANSMIT: u16 = 1;

type Driver = VirtioDriver<Vsock>;

/// Three guests, and what they do.
pub fn sockets(data: &[u8]) {
    let mut input = Input(data);
    let mut drivers: Vec<Driver> = (0..GUESTS).map(device).map(Driver::new).collect();
    for driver in &mut drivers {
        driver.start(VERSION_1 | u64::from(input.bool()));
    }
    let mut host = Stream::new(SERVER);
    while !input.is_empty() {
        let guest = usize::from(input.u8()) % GUESTS;
        act(&mut drivers, &mut host, guest, &mut input);
    }
    for (number, driver) in drivers.iter_mut().enumerate() {
        driver.hand_over(device(number)).expect("its own state is good");
    }
}

/// The first may connect to both others and to the host, the second to the third.
fn device(number: usize) -> Vsock {
    let others = FIRST + number as u32 + 1..FIRST + GUESTS as u32;
    Vsock::new(FIRST + number as u32, others.chain((number == 0).then_some(HOST_CID)).collect())
}

fn act(drivers: &mut [Driver], host: &mut Stream, guest: usize, input: &mut Input<'_>) {
    let driver = &mut drivers[guest];
    match input.u8() % 10 {
        8 => host_acts(host, input),
        9 => host_sends(host, &mut drivers[0]),
        0 | 1 => drop(driver.add(RECEIVE, &[], 1 + u32::from(input.u16()) % 4096)),
        2 | 3 => drop(driver.add(TRANSMIT, &packet(guest, input), 0)),
        // Rings, descriptors and buffers, at any time.
        4 => {
            let at = u64::from(input.u16()) << 2;
            let _ = driver.world.memory.write(Gpa(at), &input.number().to_le_bytes());
        }
        5 => driver.write(u64::from(input.u16()) & 0x3fff, AccessSize::Dword, input.number()),
        _ => pass(drivers, host, guest, input.bool()),
    }
}

/// The host uses its stream.
fn host_acts(host: &mut Stream, input: &mut Input<'_>) {
    let mut bytes = vec![7; usize::from(input.u16())];
    match input.u8() % 5 {
        // It goes on in the next image.
        4 => {
            if let Some(progress) = host.progress() {
                *host = Stream::new(SERVER);
                assert!(host.resume(&progress));
            }
        }
        0 => host.open(HOST_PORTS + u32::from(input.bool())),
        1 => assert!(host.send(&bytes) <= STREAM_BYTES),
        2 => assert!(host.receive(&mut bytes) <= STREAM_BYTES),
        _ => host.reset(),
    }
}

/// The first guest gets what the host has for it, as far as it has buffers.
fn host_sends(host: &mut Stream, to: &mut Driver) {
    while let Some(Outgoing { header, data }) = host.next() {
        let mut packet = Packet::of_host(header);
        match to.with(|vsock, io| vsock.receive_of_host(&mut packet, data, io)) {
            Some(Received::All | Received::Part) => host.note_sent(&header, packet.passed()),
            Some(Received::Full) if packet.passed() > 0 => return host.note_sent(&header, packet.passed()),
            Some(Received::Full) => return,
            Some(Received::Refused | Received::Sender(_)) | None => host.note_refused(&header),
        }
    }
}

/// A guest's packet comes to the host's stream: it is done, or refused.
fn host_receives(host: &mut Stream, from: &mut Driver, packet: &Packet) {
    let header = *packet.header();
    if header.operation == Some(Operation::Request) && host.is_free() {
        host.answer(&header);
        from.with(Vsock::done);
        return;
    }
    let Ok(places) = host.accept(&header) else {
        from.with(|vsock, io| vsock.refuse(&header, io));
        return;
    };
    let bytes = places.iter().map(|place| place.len() as u32).sum();
    assert!(bytes == 0 || bytes == header.bytes);
    host.note_received(bytes);
    from.with(Vsock::done);
}

/// A packet: any bytes, but most often of one of few connections.
fn packet(guest: usize, input: &mut Input<'_>) -> Vec<u8> {
    let end = |cid: usize, input: &mut Input<'_>| Address { cid: FIRST + cid as u32, port: u32::from(input.u8()) & 1 };
    let from = if input.u8() & 15 == 0 { usize::from(input.u8()) } else { guest };
    let (source, to) = (end(from, input), usize::from(input.u8()) % (GUESTS + 1));
    let (buffer_bytes, consumed) = match input.u8() & 7 {
        0 => (input.number() as u32, input.number() as u32),
        _ => (1 << 16, 0),
    };
    let bytes = u32::from(input.u16()) % 3000;
    let destination = match input.u8() & 3 {
        3 => Address { cid: HOST_CID, port: HOST_PORTS + u32::from(input.bool()) },
        _ => end(to, input),
    };
    let flags = u32::from(input.u8()) & 3;
    let header = Header { source, destination, bytes, operation: None, flags, buffer_bytes, consumed };
    let mut packet = header.bytes().to_vec();
    packet[30] = input.u8() % 9;
    packet.extend((0..bytes).map(|at| at as u8));
    let kept = if input.u8() & 15 == 0 { usize::from(input.u8()) } else { packet.len() };
    packet.truncate(kept);
    packet
}

/// Takes a packet to its receiver, as the host does. The guest may be reset in between.
fn pass(drivers: &mut [Driver], host: &mut Stream, guest: usize, is_reset: bool) {
    let mut chain = Chain::new();
    let taken = drivers[guest].with(|vsock, io| {
        vsock.begin_sending(io)?;
        vsock.take(&mut chain, io)
    });
    match taken {
        Some(Taken::Packet(packet)) if packet.header().destination.cid == HOST_CID => {
            host_receives(host, &mut drivers[guest], &packet);
        }
        Some(Taken::Packet(mut packet)) => {
            let to = (packet.header().destination.cid - FIRST) as usize;
            assert!(to < GUESTS && to != guest, "a packet goes where no connection leads");
            let [from, other] = drivers.get_disjoint_mut([guest, to]).expect("two guests");
            let (before, mut received) = (packet.passed(), None);
            let world = &mut other.world;
            let source = Between { from: &from.world.memory, to: &world.memory };
            other.endpoint.work(&world.memory, &mut world.outputs, |vsock, io| {
                received = Some(vsock.receive(&mut packet, (&chain, &source), io)?);
                Ok(())
            });
            assert!((before..=packet.header().bytes).contains(&packet.passed()));
            if is_reset {
                from.write(20, AccessSize::Byte, 0);
            }
            let header = *packet.header();
            match received {
                Some(Received::All) => from.with(Vsock::done),
                Some(Received::Part | Received::Full) => from.with(|vsock, io| {
                    vsock.hold(&packet, io);
                    Ok(())
                }),
                Some(Received::Sender(fault)) => from.with(|_, _| Err::<(), Fault>(fault)),
                Some(Received::Refused) => from.with(|vsock, io| vsock.refuse(&header, io)),
                None => {
                    assert_ne!(other.status() & 64, 0, "at fault, and needs no reset");
                    from.with(|vsock, io| vsock.refuse(&header, io))
                }
            };
        }
        Some(Taken::Refused(header)) => {
            if let Some(other) = drivers.get_mut(header.destination.cid.wrapping_sub(FIRST) as usize) {
                other.with(|vsock, io| vsock.reset_end(header.destination.port, header.source, io));
            }
            drivers[guest].with(|vsock, io| vsock.refuse(&header, io));
        }
        Some(Taken::Dropped) => drop(drivers[guest].with(Vsock::done)),
        Some(Taken::Nothing | Taken::Blocked) | None => {}
    }
    if drivers[guest].endpoint.virtio_device().take_was_reset() {
        let cid = FIRST + guest as u32;
        if cid == SERVER.cid {
            host.note_gone();
        }
        for (number, other) in drivers.iter_mut().enumerate() {
            if number != guest {
                other.with(|vsock, io| vsock.reset_all_of(cid, io));
            }
        }
    }
    drivers[guest].with(|vsock, io| vsock.end_sending(true, io));
}
