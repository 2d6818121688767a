// SPDX-License-Identifier: MIT OR Apache-2.0
//! The balloon's rules (section 5.5), and what a driver may do wrong.

use alloc::sync::Arc;
use std::vec::Vec;

use ::virtio::Fault;
use demand::SPARES;
use handover::state::DeviceKind;
use spin::Mutex;

use super::config::{DEFLATE, INFLATE, REPORTS, REPORTS_OF_OLD, STATISTICS};
use super::*;
use crate::addr::AccessSize;
use crate::devices::outputs::Request;
use crate::testing::VirtioDriver;

const BLOCK: u64 = demand::BLOCK_BYTES;
const VERSION_1: u64 = 1 << 32;
const ALL: u64 = VERSION_1 | 1 << 1 | 1 << 2 | 1 << 5;

type Driver = VirtioDriver<Balloon<Memory>>;

/// The memory of a guest, which notes what is hidden.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Noted>>);

#[derive(Default)]
struct Noted {
    hidden: Vec<(u64, u64)>,
    is_releasing: bool,
    is_updating: bool,
    used: [Option<u32>; SPARES],
}

impl Frees for Memory {
    fn hide(&mut self, gpa: u64, bytes: u64) -> bool {
        let mut noted = self.0.lock();
        if !noted.is_updating {
            noted.hidden.push((gpa, bytes));
            noted.is_releasing = true;
        }
        !noted.is_updating
    }

    fn is_releasing(&mut self) -> bool {
        self.0.lock().is_releasing
    }

    fn spares_used(&self) -> [Option<u32>; SPARES] {
        self.0.lock().used
    }

    fn use_spares(&mut self, used: [Option<u32>; SPARES]) {
        self.0.lock().used = used;
    }
}

fn started() -> (Driver, Memory) {
    let memory = Memory::default();
    let mut driver = Driver::new(Balloon::new(memory.clone()));
    driver.start(ALL);
    (driver, memory)
}

/// Lets the device work; returns whether it wants to go on.
fn work(driver: &mut Driver) -> bool {
    driver.with(|balloon, io| balloon.work(io)).expect("the driver has done nothing wrong")
}

fn hidden(memory: &Memory) -> Vec<(u64, u64)> {
    core::mem::take(&mut memory.0.lock().hidden)
}

fn pages(numbers: impl IntoIterator<Item = u32>) -> Vec<u8> {
    numbers.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[test]
fn s5_5_6_7_a_report_comes_back_once_its_memory_is_released() {
    for queue in [REPORTS, REPORTS_OF_OLD] {
        let (mut driver, memory) = started();
        let heads = [0; 3].map(|_| driver.add(queue, b"", 0x1000).expect("there is room"));
        for head in heads {
            assert!(!work(&mut driver), "it is called when the memory is released");
            assert!(!work(&mut driver));
            assert_eq!((driver.collect(queue), hidden(&memory).len()), (None, 1));
            memory.0.lock().is_releasing = false;
            work(&mut driver);
            assert_eq!(driver.collect(queue).map(|(found, bytes)| (found, bytes.len())), Some((head, 0)));
        }
    }
}

#[test]
fn s5_5_6_pages_in_the_balloon_are_freed_by_whole_blocks() {
    let (mut driver, memory) = started();
    for numbers in [512..768, 768..1023, 4000..4001] {
        driver.add(INFLATE, &pages(numbers), 0).expect("there is room");
        work(&mut driver);
        assert!(driver.collect(INFLATE).is_some() && hidden(&memory).is_empty());
    }
    driver.add(INFLATE, &pages([1023]), 0).expect("there is room");
    assert!(!work(&mut driver));
    assert_eq!((driver.collect(INFLATE), hidden(&memory)), (None, std::vec![(BLOCK, BLOCK)]));
    memory.0.lock().is_releasing = false;
    work(&mut driver);
    assert!(driver.collect(INFLATE).is_some() && hidden(&memory).is_empty());
}

#[test]
fn s5_5_6_a_page_that_is_used_again_keeps_its_block() {
    let (mut driver, memory) = started();
    driver.add(INFLATE, &pages(1024..1535), 0).expect("there is room");
    work(&mut driver);
    driver.add(DEFLATE, &pages([1100]), 0).expect("there is room");
    work(&mut driver);
    driver.add(INFLATE, &pages([1535]), 0).expect("there is room");
    work(&mut driver);
    assert_eq!(hidden(&memory), []);
}

#[test]
fn while_an_update_is_under_way_nothing_is_taken() {
    let (mut driver, memory) = started();
    memory.0.lock().is_updating = true;
    driver.add(REPORTS, b"", 0x1000).expect("there is room");
    assert!(work(&mut driver), "it is called again");
    assert_eq!((driver.collect(REPORTS), hidden(&memory)), (None, std::vec![]));
    memory.0.lock().is_updating = false;
    work(&mut driver);
    assert_eq!(hidden(&memory).len(), 1);
}

#[test]
fn the_next_image_begins_the_release_again() {
    let (mut driver, memory) = started();
    driver.add(REPORTS, b"", 0x1000).expect("there is room");
    work(&mut driver);
    memory.0.lock().used[3] = Some(77);
    let next = Memory::default();
    driver.hand_over(Balloon::new(next.clone())).expect("it is good");
    assert_eq!(next.0.lock().used, memory.0.lock().used);
    assert!(!work(&mut driver));
    assert_eq!(hidden(&next), hidden(&memory));
    next.0.lock().is_releasing = false;
    work(&mut driver);
    assert!(driver.collect(REPORTS).is_some());
}

#[test]
fn s5_5_6_1_the_driver_is_asked_for_pages_and_states_how_many_there_are() {
    let (mut driver, _) = started();
    driver.with(|balloon, io| {
        balloon.ask(3 * BLOCK + 1, io);
        Ok(())
    });
    assert_eq!(driver.interrupts(), [5], "the configuration's vector");
    assert_eq!(driver.read(Driver::DEVICE, AccessSize::Dword), 3 * 512);
    driver.write(Driver::DEVICE + 4, AccessSize::Dword, 512);
    assert_eq!(driver.with(|balloon, _| Ok(balloon.bytes())), Some(BLOCK));
    driver.write(Driver::DEVICE, AccessSize::Dword, 1);
    driver.write(Driver::DEVICE + 5, AccessSize::Byte, 1);
    assert_eq!(driver.read(Driver::DEVICE, AccessSize::Dword), 3 * 512, "that is the host's");
    assert_eq!(driver.with(|balloon, _| Ok(balloon.bytes())), Some(BLOCK));
}

#[test]
fn s5_5_6_3_statistics_stay_until_newer_ones_are_wanted() {
    let (mut driver, _) = started();
    let stated: Vec<u8> = [(5_u16, 100_u64), (6, 50), (99, 1)]
        .iter()
        .flat_map(|(tag, value)| [&tag.to_le_bytes()[..], &value.to_le_bytes()].concat())
        .collect();
    let head = driver.add(STATISTICS, &stated, 0).expect("there is room");
    work(&mut driver);
    let found = driver.with(|balloon, _| Ok(balloon.statistics())).expect("it works");
    let expected = Statistics { total_bytes: Some(100), available_bytes: Some(50), ..Statistics::default() };
    assert_eq!((found, driver.collect(STATISTICS)), (expected, None));
    driver.with(|balloon, io| {
        balloon.ask_for_statistics();
        balloon.work(io)
    });
    assert_eq!(driver.collect(STATISTICS).map(|(found, _)| found), Some(head));
}

#[test]
fn lists_that_are_none_are_faults() {
    for (queue, list, writable) in
        [(INFLATE, &b"odd"[..], 0), (DEFLATE, b"odd", 0), (INFLATE, &[0; 4], 64), (DEFLATE, b"", 64)]
    {
        let (mut driver, memory) = started();
        driver.add(queue, list, writable).expect("there is room");
        assert_eq!(driver.with(|balloon, io| balloon.work(io)), None);
        assert_eq!((driver.status() & 64, hidden(&memory)), (64, std::vec![]));
        let fault = driver.world.outputs.take_request();
        let kind = DeviceKind::VirtioBalloon as u32;
        assert!(matches!(fault, Some(Request::DriverFault(own, Fault::Request(_))) if own == kind), "{fault:?}");
    }
}

#[test]
fn pages_beyond_all_memory_are_named_to_the_host() {
    let (mut driver, memory) = started();
    driver.add(INFLATE, &pages((u32::MAX - 511)..=u32::MAX), 0).expect("there is room");
    work(&mut driver);
    assert_eq!(hidden(&memory), [((u64::from(u32::MAX) + 1) / 512 * BLOCK - BLOCK, BLOCK)], "which refuses it");
}

#[test]
fn a_state_that_is_cut_off_is_refused() {
    let (mut driver, memory) = started();
    let state = driver.saved();
    for bytes in 0..state.len() {
        assert!(driver.hand_over_from(Balloon::new(memory.clone()), &state[..bytes]).is_err(), "{bytes} bytes");
    }
}
