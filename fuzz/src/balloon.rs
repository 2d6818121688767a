// SPDX-License-Identifier: MIT OR Apache-2.0
//! The balloon: a driver that reports, inflates and deflates whatever it wants, while its guest touches memory and
//! the host is replaced. No frame is lost, or has two owners.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use demand::{BLOCK_BYTES, Blocks, Claim, Layout, SPARES, Source};
use vm::devices::balloon::{Balloon, Frees};
use vm::testing::VirtioDriver;

use crate::input::Input;
use crate::virtio::{VERSION_1, step};

const LAYOUT: Layout = Layout { low_end: 4 * BLOCK_BYTES, high_start: 8 * BLOCK_BYTES };
const BLOCKS: u64 = 12;
const FRAMES: u64 = 10;
const FEATURES: u64 = VERSION_1 | 1 << 1 | 1 << 2 | 1 << 5;

/// The host's frames that are free.
#[derive(Clone, Debug)]
struct Host(Arc<Mutex<BTreeSet<u64>>>);

impl Host {
    fn free(&self) -> BTreeSet<u64> {
        self.0.lock().expect("there is one thread").clone()
    }
}

impl Source for Host {
    fn take(&self, _: Claim) -> Option<u64> {
        self.0.lock().expect("there is one thread").pop_first()
    }

    fn release(&self, physical: u64) {
        assert!(self.0.lock().expect("there is one thread").insert(physical), "a frame is released twice");
    }

    fn may_be_parted(&self) -> bool {
        true
    }

    fn change_assured(&self, _: u64, _: bool) {}
}

/// The guest's memory.
#[derive(Clone, Debug)]
struct Memory {
    host: Host,
    blocks: Arc<Blocks<Host>>,
    changes: Arc<Mutex<u64>>,
}

impl Memory {
    fn new(host: Host, blocks: Blocks<Host>) -> Self {
        Self { host, blocks: Arc::new(blocks), changes: Arc::default() }
    }

    /// Each vCPU flushes its TLB.
    fn flush(&self) {
        self.blocks.release_hidden(*self.changes.lock().expect("there is one thread"));
    }

    /// The next image's view of it.
    fn handed_over(&self) -> Self {
        let packed = self.blocks.hold();
        let (frames, spares) = (packed.frames.iter().copied(), packed.spares.iter().copied());
        let kept: BTreeSet<u64> = frames.clone().chain(spares.clone()).collect();
        let free = (1..=FRAMES).map(|number| number * BLOCK_BYTES).filter(|frame| !kept.contains(frame)).collect();
        let host = Host(Arc::new(Mutex::new(free)));
        Self::new(host.clone(), Blocks::adopt(host, LAYOUT, frames, spares, 0))
    }

    fn check(&self) {
        let frames: Vec<u64> = self.blocks.frames().filter(|frame| *frame != 0).collect();
        let own: BTreeSet<u64> = frames.iter().copied().collect();
        assert_eq!(own.len(), frames.len(), "a frame is two blocks");
        let free = self.host.free();
        assert!(own.is_disjoint(&free), "a block's frame is free");
        assert_eq!(own.len() + free.len(), FRAMES as usize, "a frame is lost");
    }
}

impl Frees for Memory {
    fn hide(&mut self, gpa: u64, bytes: u64) -> bool {
        self.blocks.hide(gpa, bytes, |gpa| {
            assert!(gpa.is_multiple_of(BLOCK_BYTES) && LAYOUT.number(gpa, BLOCKS as usize).is_some());
            let mut changes = self.changes.lock().expect("there is one thread");
            *changes += 1;
            *changes
        })
    }

    fn is_releasing(&mut self) -> bool {
        self.blocks.has_hidden()
    }

    fn spares_used(&self) -> [Option<u32>; SPARES] {
        self.blocks.spares_used()
    }

    fn use_spares(&mut self, used: [Option<u32>; SPARES]) {
        self.blocks.use_spares(used);
    }
}

/// A driver of the balloon.
pub fn virtio_balloon(data: &[u8]) {
    let mut input = Input(data);
    let host = Host(Arc::new(Mutex::new((1..=FRAMES).map(|number| number * BLOCK_BYTES).collect())));
    let mut memory = Memory::new(host.clone(), Blocks::new(host, LAYOUT, BLOCKS * BLOCK_BYTES, 0));
    let mut driver = VirtioDriver::new(Balloon::new(memory.clone()));
    driver.start(FEATURES);
    while !input.is_empty() {
        match input.u8() % 8 {
            0 | 1 => _ = memory.blocks.touch(u64::from(input.u8() % 16) * BLOCK_BYTES, |_, _| true),
            2 => memory.flush(),
            3 => report(&mut driver, &mut input),
            4 => memory = replace(&mut driver, &memory, &mut input),
            5 | 6 => _ = driver.with(|balloon, io| balloon.work(io)),
            _ => step(&mut driver, &mut input),
        }
        driver.interrupts();
        driver.world.outputs.take_request();
        memory.check();
    }
    driver.start(FEATURES);
    let head = driver.add(REPORTS, b"", 8).expect("there is room");
    (0..3).for_each(|_| {
        memory.flush();
        driver.with(|balloon, io| balloon.work(io));
    });
    assert_eq!(driver.collect(REPORTS).map(|(found, _)| found), Some(head), "it works after a reset");
}

/// The queue of reports.
const REPORTS: u16 = 4;

/// The driver lists pages, or reports a block: its descriptor's address is written over.
fn report(driver: &mut VirtioDriver<Balloon<Memory>>, input: &mut Input<'_>) {
    let queue = u16::from(input.u8() % 5);
    let first = u32::from(input.u8() % 16) << 9;
    let pages: Vec<u8> = (first..first + 512).flat_map(u32::to_le_bytes).collect();
    driver.add(queue, if queue < 2 { &pages } else { b"" }, if queue < 2 { 0 } else { 64 });
    if queue > 2 {
        let at = 0x1_0000 * u64::from(queue) + 16 * u64::from(input.u8() % 8);
        let address = u64::from(input.u8() % 16) * BLOCK_BYTES;
        driver.set_memory(at, &[&address.to_le_bytes()[..], &(4_u32 << 20).to_le_bytes()].concat());
    }
}

/// The next image goes on, if its state is good; or the update fails.
fn replace(driver: &mut VirtioDriver<Balloon<Memory>>, memory: &Memory, input: &mut Input<'_>) -> Memory {
    let next = memory.handed_over();
    _ = memory.blocks.touch(u64::from(input.u8() % 16) * BLOCK_BYTES, |_, _| true);
    if input.bool() {
        memory.blocks.settle();
        return memory.clone();
    }
    driver.hand_over(Balloon::new(next.clone())).expect("its own state is good");
    next.blocks.settle();
    next
}
