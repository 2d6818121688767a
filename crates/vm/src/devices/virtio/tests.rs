// SPDX-License-Identifier: MIT OR Apache-2.0
mod console;
mod hostile;
mod rng;
mod states;
mod transport;

use std::vec::Vec;

use ::virtio::{Chain, Fault};
use handover::Full;
use handover::state::DeviceKind;

use super::*;
use crate::addr::AccessSize;
use crate::devices::StateError;
use crate::testing::VirtioDriver;

const VERSION_1: u64 = 1 << 32;
const EVENT_IDX: u64 = 1 << 29;
const RING_RESET: u64 = 1 << 40;

/// A device for tests: in queue 0 it answers what it reads, in queue 1 it writes what the host has when it is polled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Echo {
    config: [u8; 6],
    /// Chains that it takes in one call, until it asks to be polled; 0 for all.
    at_once: u32,
    has: Vec<u8>,
    resets: u32,
    queue_resets: Vec<u16>,
}

impl VirtioDevice for Echo {
    const KIND: DeviceKind = DeviceKind::VirtioRng;
    const ID: u16 = 42;
    const CLASS: u32 = 0xff_0000;
    const POLLS: bool = true;

    fn features(&self) -> u64 {
        1 << 5
    }

    fn queue_sizes(&self) -> &[u16] {
        &[16, 64]
    }

    fn config_bytes(&self) -> u32 {
        6
    }

    fn read_config(&self, at: u32, into: &mut [u8]) {
        into.iter_mut().zip(self.config.iter().skip(at as usize)).for_each(|(into, byte)| *into = *byte);
    }

    fn write_config(&mut self, at: u32, from: &[u8], io: &mut Io<'_>) -> Result<(), Fault> {
        self.config.iter_mut().skip(at as usize).zip(from).for_each(|(byte, from)| *byte = *from);
        io.change_config();
        Ok(())
    }

    fn notify(&mut self, queue: u16, io: &mut Io<'_>) -> Result<(), Fault> {
        let (mut chain, mut taken) = (Chain::new(), 0);
        while queue == 0 && io.take(queue, &mut chain)? {
            let mut bytes = [0; 64];
            let read = chain.read(io.memory, 0, &mut bytes)?;
            if bytes.starts_with(b"wrong") {
                return Err(Fault::Request("this is wrong"));
            }
            let written = chain.write(io.memory, 0, &bytes[..read])?;
            io.complete(queue, chain.head(), written as u32)?;
            taken += 1;
            if taken == self.at_once {
                io.poll_soon();
                break;
            }
        }
        io.publish(queue)?;
        io.enable_notifications(queue).map(drop)
    }

    fn poll(&mut self, io: &mut Io<'_>) -> Result<(), Fault> {
        let mut chain = Chain::new();
        if !self.has.is_empty() && io.take(1, &mut chain)? {
            let written = chain.write(io.memory, 0, &self.has)?;
            self.has.drain(..written);
            io.complete(1, chain.head(), written as u32)?;
            io.publish(1)?;
        }
        self.notify(0, io)
    }

    fn reset_queue(&mut self, queue: u16) {
        self.queue_resets.push(queue);
    }

    fn reset(&mut self) {
        self.resets += 1;
    }

    fn state_bytes(&self) -> usize {
        6
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        into.get_mut(..6).ok_or(Full)?.copy_from_slice(&self.config);
        Ok(6)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        self.config = from.try_into().map_err(|_| StateError { field: "echo", reason: "another length" })?;
        Ok(())
    }
}

type Lab = VirtioDriver<Echo>;

fn lab() -> Lab {
    Lab::new(Echo::default())
}

fn started() -> Lab {
    let mut lab = lab();
    lab.start(VERSION_1);
    lab
}
