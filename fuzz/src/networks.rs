// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests on a network: drivers that write anything into rings and memory, send any frames, and are reset meanwhile.

use rate::Bucket;
use switch::{Mac, Network, Port, Vlans, announcement};
use vm::addr::{AccessSize, Gpa};
use vm::devices::device::Device as _;
use vm::devices::net::{Chain, Fault, Net, PAIRS_MOST, Taken};
use vm::devices::virtio::Io;
use vm::memory::GuestMemory as _;
use vm::testing::{Between, VirtioDriver};

use crate::input::Input;

const GUESTS: usize = 3;
const MTU: u16 = 1500;
/// The features that every driver accepts: version 1 and the address.
const BASE: u64 = 1 << 32 | 1 << 5;
const RECEIVE: u16 = 0;
const TRANSMIT: u16 = 1;

type Driver = VirtioDriver<Net>;

/// A network of three guests, and what they do.
pub fn networks(data: &[u8]) {
    let mut input = Input(data);
    let port = |number: usize, input: &mut Input<'_>| Port {
        mac: mac(number),
        vlans: if input.bool() { Vlans::Access(input.u8() as u16 % 3) } else { Vlans::Trunk(vec![0, 1, 2]) },
        is_isolated: input.u8() & 3 == 0,
        is_trusted: input.bool(),
    };
    let ports = (0..GUESTS).map(|number| Some(port(number, &mut input))).collect();
    let Ok(network) = Network::new(MTU.into(), ports) else { panic!("a network of three") };
    let mut drivers: Vec<Driver> = (0..GUESTS).map(device).map(Driver::new).collect();
    let offered = drivers[0].offered();
    for driver in &mut drivers {
        driver.start(BASE | input.number() & offered & !(1 << 28 | 1 << 40));
    }
    let mut bucket = Bucket::new(input.number(), input.number(), 0);
    let mut now_ns = 0;
    while !input.is_empty() {
        let guest = usize::from(input.u8()) % GUESTS;
        now_ns += input.number() >> 16;
        if bucket.check(now_ns).is_ok() {
            bucket.take(input.u16().into());
        }
        act(&network, &mut drivers, guest, now_ns, &mut input);
    }
    for (number, driver) in drivers.iter_mut().enumerate() {
        driver.hand_over(device(number)).expect("its own state is good");
    }
}

fn mac(number: usize) -> Mac {
    Mac([2, 0, 0, 0, 0, number as u8])
}

fn device(number: usize) -> Net {
    Net::new(mac(number), MTU, 1 + number as u16)
}

/// A pair of queues of a guest: the first one has one, each other one more.
fn pair(guest: usize, input: &mut Input<'_>) -> u16 {
    u16::from(input.u8()) % (1 + guest as u16)
}

fn act(network: &Network, drivers: &mut [Driver], guest: usize, now_ns: u64, input: &mut Input<'_>) {
    let driver = &mut drivers[guest];
    match input.u8() % 9 {
        0 | 1 => drop(driver.add(RECEIVE + 2 * pair(guest, input), &[], 1 + u32::from(input.u16()) % 4096)),
        2 | 3 => drop(driver.add(TRANSMIT + 2 * pair(guest, input), &frame(guest, input), 0)),
        // Rings, descriptors and buffers, at any time.
        4 => {
            let at = u64::from(input.u16()) << 2;
            let _ = driver.world.memory.write(Gpa(at), &input.number().to_le_bytes());
        }
        5 => {
            with(driver, |net, io| net.receive_own(&announcement(mac(guest)), None, io));
        }
        6 => driver.write(u64::from(input.u16()) & 0x3fff, AccessSize::Dword, input.number()),
        7 => {
            // Notifications of any queue; commands are those of the queue behind the pairs.
            let queue = u16::from(input.u8()) % driver.queues();
            driver.add(queue, &[4, 0, input.u8() & 3, 0], 1);
            driver.notify(queue);
        }
        _ => pass(network, drivers, guest, now_ns, input.bool()),
    }
}

/// A frame with its header: any bytes, but most often from the guest to another.
fn frame(guest: usize, input: &mut Input<'_>) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..12).map(|_| if input.bool() { 0 } else { input.u8() }).collect();
    let to = usize::from(input.u8()) % (GUESTS + 1);
    bytes.extend(if to < GUESTS { mac(to).0 } else { [input.u8() | 1; 6] });
    bytes.extend(if input.u8() & 7 == 0 { [input.u8(); 6] } else { mac(guest).0 });
    bytes.extend(if input.bool() { [0x81, 0, 0, input.u8() & 3] } else { [8, 0, 0, 0] });
    let payload = usize::from(input.u16()) % 3000;
    bytes.extend((0..payload).map(|at| at as u8));
    let kept = if input.u8() & 15 == 0 { usize::from(input.u8()) } else { bytes.len() };
    bytes.truncate(kept);
    bytes
}

/// Takes a frame to all that it is for, as the host does. The guest may be reset in between.
fn pass(network: &Network, drivers: &mut [Driver], guest: usize, now_ns: u64, is_reset: bool) {
    let mut chain = Chain::new();
    let pair =
        with(&mut drivers[guest], |net, _| Ok(net.waiting())).map_or(0, u16::trailing_zeros) as usize % PAIRS_MOST;
    let taken = with(&mut drivers[guest], |net, io| {
        net.begin_sending(pair, io)?;
        net.take(pair, &mut chain, io)
    });
    if let Some(Taken::Frame(frame)) = taken
        && let Ok(forward) = network.forward(guest, frame.ethernet(), frame.is_to_be_segmented(), now_ns)
    {
        for egress in network.egress(forward) {
            assert_ne!(egress.port, guest, "a frame came back to its sender");
            let [from, to] = drivers.get_disjoint_mut([guest, egress.port]).expect("two guests");
            let before = to.saved();
            let source = Between { from: &from.world.memory, to: &to.world.memory };
            let mut received = None;
            let world = &to.world.memory;
            to.endpoint.work(world, &mut to.world.outputs, |net, io| {
                received = Some(net.receive(&frame, egress.tag, (&chain, &source), io)?);
                Ok(())
            });
            match received {
                Some(Ok(received)) => assert!(received.bytes <= frame.bytes() + 4),
                // Dropped: the queues are where they were.
                Some(Err(_)) => assert_eq!(to.saved(), before),
                None => assert_ne!(to.status() & 64, 0, "at fault, and needs no reset"),
            }
        }
    }
    if is_reset {
        drivers[guest].write(20, AccessSize::Byte, 0);
    }
    with(&mut drivers[guest], |net, io| net.end_sending(pair, true, io));
}

fn with<R>(driver: &mut Driver, act: impl FnOnce(&mut Net, &mut Io<'_>) -> Result<R, Fault>) -> Option<R> {
    let mut found = None;
    let world = &mut driver.world;
    driver.endpoint.work(&world.memory, &mut world.outputs, |net, io| {
        found = Some(act(net, io)?);
        Ok(())
    });
    assert!(driver.endpoint.state_bytes() > 0);
    found
}
