// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of a driver, by sections of the specification (1.3), to a server in memory.

mod limits;
mod properties;
mod requests;
mod servers;
mod sockets;

use std::string::String;
use std::vec::Vec;

use ::virtio::feature as queue_feature;
use nbd::testing::{ALL_FLAGS, Server};

use super::requests::{DISCARD, FLUSH, GET_ID, IN, OUT, WRITE_ZEROES};
use super::*;
use crate::addr::AccessSize;
use crate::testing::VirtioDriver;

const SECOND_NS: u64 = 1_000_000_000;
const DISK_BYTES: usize = 1 << 20;

fn config() -> BlkConfig {
    BlkConfig {
        export: String::from("disk"),
        is_read_only: false,
        is_write_back: false,
        timeout_ns: 10 * SECOND_NS,
        serial: String::from("web-root"),
        limits: Limits::default(),
    }
}

/// A driver, its disk, and the server.
struct World {
    driver: VirtioDriver<Blk>,
    server: Server,
    config: BlkConfig,
    now_ns: u64,
    next_ns: Option<u64>,
}

impl World {
    fn new(config: BlkConfig) -> Self {
        let server = Server::new(DISK_BYTES, ALL_FLAGS);
        Self { driver: VirtioDriver::new(Blk::new(config.clone())), server, config, now_ns: SECOND_NS, next_ns: None }
    }

    fn up(config: BlkConfig) -> Self {
        let mut world = Self::new(config);
        world.work();
        let features = world.driver.offered() & !queue_feature::RING_RESET;
        world.driver.start(features);
        world
    }

    fn work(&mut self) {
        let Self { driver, server, now_ns, next_ns, .. } = self;
        let world = &mut driver.world;
        driver.endpoint.work(&world.memory, &mut world.outputs, |blk, io| {
            *next_ns = blk.work(*now_ns, server, io)?;
            Ok(())
        });
    }

    /// Works until nothing moves; the server answers.
    fn run_until_idle(&mut self) {
        for _ in 0..100 {
            self.work();
            if self.server.received.is_empty() && self.next_ns != Some(self.now_ns) {
                break;
            }
            self.server.execute_all();
        }
    }

    fn ask(&mut self, kind: u32, sector: u64, data: &[u8], room: u32) -> u16 {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(sector.to_le_bytes());
        bytes.extend(data);
        let head = self.driver.add(0, &bytes, room + 1).expect("there is room");
        self.driver.notify(0);
        head
    }

    /// The answers that the driver sees: chain, status, and data before it.
    fn answers(&mut self) -> Vec<(u16, u8, Vec<u8>)> {
        let mut answers = Vec::new();
        while let Some((head, mut bytes)) = self.driver.collect(0) {
            answers.push((head, bytes.pop().unwrap_or(0xff), bytes));
        }
        answers
    }

    /// The status of the only request.
    fn status(&mut self) -> Option<u8> {
        self.run_until_idle();
        self.answers().first().map(|(_, status, _)| *status)
    }

    fn sectors(&mut self) -> u64 {
        self.driver.read(VirtioDriver::<Blk>::DEVICE, AccessSize::Qword)
    }

    fn hand_over(&mut self) {
        let device = Blk::new(self.config.clone());
        self.driver.hand_over(device).expect("its own state");
    }
}
