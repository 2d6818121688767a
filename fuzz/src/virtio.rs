// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtio: a queue in memory with any content, and drivers of each device that do anything. Afterwards a device must
//! be restorable from its own state, and work again after a reset.

use std::cell::{Cell, RefCell};

use virtio::{Addresses, Chain, Memory, Options, Outside, Progress, Queue};
use vm::addr::AccessSize;
use vm::devices::virtio::VirtioDevice;
use vm::devices::virtio::console::{Console, Port};
use vm::devices::virtio::rng::{Entropy, Rng};
use vm::testing::VirtioDriver;

use crate::input::Input;

const MEMORY_BYTES: usize = 0x3000;
pub const VERSION_1: u64 = 1 << 32;
/// Accesses of one call at most: descriptors of a chain, rings, a few more.
const ACCESSES: u32 = 2 * 256 + 16;

/// Memory that changes while it is read, by the input.
struct Changing<'a> {
    bytes: RefCell<Vec<u8>>,
    input: RefCell<Input<'a>>,
    accesses: Cell<u32>,
}

impl Changing<'_> {
    fn place(&self, address: u64, bytes: usize) -> Result<usize, Outside> {
        self.accesses.set(self.accesses.get() + 1);
        let end = address.checked_add(bytes as u64).filter(|end| *end <= MEMORY_BYTES as u64);
        end.map(|_| address as usize).ok_or(Outside { address, bytes })
    }
}

impl Memory for Changing<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Outside> {
        let place = self.place(address, into.len())?;
        let mut input = self.input.borrow_mut();
        if input.u8() & 7 == 7 {
            self.bytes.borrow_mut()[place] = input.u8();
        }
        into.copy_from_slice(&self.bytes.borrow()[place..place + into.len()]);
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Outside> {
        let place = self.place(address, from.len())?;
        self.bytes.borrow_mut()[place..place + from.len()].copy_from_slice(from);
        Ok(())
    }
}

/// A queue anywhere in memory, from anywhere in its rings on.
pub fn virtqueue(data: &[u8]) {
    let mut input = Input(data);
    let options = Options { has_indirect: input.bool(), has_event_index: input.bool() };
    let mut address = || if input.bool() { input.number() } else { u64::from(input.u8()) << 6 };
    let addresses = Addresses { descriptors: address(), driver: address(), device: address() };
    let size = if input.bool() { input.u16() } else { 1 << (input.u8() % 9) };
    let taken = input.u16();
    let progress = Progress { taken, used: taken.wrapping_sub(u16::from(input.u8())) };
    let Ok(mut queue) = Queue::resume(addresses, size, options, progress) else { return };
    let mut bytes = vec![0; MEMORY_BYTES];
    while input.bool() {
        let at = usize::from(input.u16()) % (MEMORY_BYTES - 8);
        let count = usize::from(input.u8() & 7) + 1;
        bytes[at..at + count].copy_from_slice(&input.array::<8>()[..count]);
    }
    let memory = Changing { bytes: RefCell::new(bytes), input: RefCell::new(input), accesses: Cell::new(0) };
    drive(&mut queue, &memory, options);
}

fn drive(queue: &mut Queue, memory: &Changing<'_>, options: Options) {
    let mut chain = Chain::new();
    for _ in 0..64 {
        let step = memory.input.borrow_mut().u8();
        memory.accesses.set(0);
        match step % 8 {
            0..=2 => {
                if queue.take(memory, &mut chain) == Ok(true) {
                    let sum = |part: &[virtio::Segment]| part.iter().map(|piece| u64::from(piece.bytes)).sum::<u64>();
                    assert_eq!(sum(chain.readable()), u64::from(chain.readable_bytes()));
                    assert_eq!(sum(chain.writable()), u64::from(chain.writable_bytes()));
                }
            }
            3 => _ = chain.read(memory, step.into(), &mut [0; 64]),
            4 => _ = chain.write(memory, step.into(), &[1; 64]),
            5 => _ = queue.complete(memory, chain.head(), step.into()),
            6 => _ = queue.publish(memory),
            _ => {
                _ = queue.enable_notifications(memory);
                queue.put_back();
                _ = queue.disable_notifications(memory);
            }
        }
        assert!(memory.accesses.get() <= ACCESSES, "{} accesses", memory.accesses.get());
        let progress = queue.progress();
        let again = Queue::resume(queue.addresses(), queue.size(), options, progress).expect("its own state is good");
        assert_eq!(again.progress(), progress);
    }
}

/// Bytes that are all the same.
struct Constant;

impl Entropy for Constant {
    fn fill(&mut self, into: &mut [u8]) {
        into.fill(0x5a);
    }
}

/// A console with constant input.
struct Typist;

impl Port for Typist {
    fn write(&mut self, bytes: &[u8]) {
        assert!(!bytes.is_empty() && bytes.len() <= 256);
    }

    fn read(&mut self, into: &mut [u8]) -> usize {
        into.len().min(3)
    }

    fn set_takes_input(&mut self, _: bool) {}
}

/// A driver of the entropy source.
pub fn virtio_rng(data: &[u8]) {
    device(&mut Input(data), || Rng::new(Constant));
}

/// A driver of the console.
pub fn virtio_console(data: &[u8]) {
    device(&mut Input(data), || Console::new(Typist));
}

fn device<D: VirtioDevice>(input: &mut Input<'_>, make: impl Fn() -> D) {
    let mut driver = VirtioDriver::new(make());
    if input.bool() {
        driver.start(VERSION_1 | u64::from(input.u32() & (3 << 28)));
    }
    while !input.is_empty() {
        step(&mut driver, input);
        driver.interrupts();
        driver.world.outputs.take_request();
    }
    let state = driver.saved();
    assert_eq!(driver.hand_over(make()), Ok(()));
    assert_eq!(driver.saved(), state);
    driver.start(VERSION_1);
    let queue = make().queue_sizes().len() as u16 - 1;
    let readable: &[u8] = if queue == 0 { b"" } else { b"out" };
    let head = driver.add(queue, readable, if queue == 0 { 8 } else { 0 }).expect("there is room");
    driver.notify(queue);
    assert_eq!(driver.collect(queue).map(|(found, _)| found), Some(head), "it works after a reset");
}

pub fn step<D: VirtioDevice>(driver: &mut VirtioDriver<D>, input: &mut Input<'_>) {
    let size = input.choose(&[AccessSize::Byte, AccessSize::Word, AccessSize::Dword, AccessSize::Qword]);
    match input.u8() % 10 {
        0..=2 => {
            let offset = u64::from(if input.bool() { input.u16() & 0x3fff } else { input.u16() & 0x3f });
            driver.write(offset, size, input.number());
            driver.read(offset, size);
        }
        3 => {
            let register = input.u8();
            driver.set_config(register, size, input.number());
            driver.config(register, size);
        }
        4 => driver.set_memory(u64::from(input.u16() & 0xfff8), &input.array::<8>()),
        // Rings and their indices.
        5 => {
            driver.set_memory(0x1000 * u64::from(input.u8() & 0x12) + u64::from(input.u8() & 0x1e), &input.array::<2>())
        }
        6 => {
            let (queue, bytes) = (u16::from(input.u8()) % driver.queues(), input.u8());
            driver.add(queue, &[bytes; 40][..usize::from(bytes % 41)], input.u8().into());
        }
        7 => driver.poll(),
        8 => driver.start(VERSION_1 | u64::from(input.u32() & (3 << 28))),
        _ => driver.notify(u16::from(input.u8() & 3)),
    }
}
