// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device: what its driver finds, and the work of one turn.

use alloc::boxed::Box;
use alloc::string::String;

use ::virtio::{Chain, Fault};
use handover::Full;
use handover::state::DeviceKind;
use nbd::{Client, Config, Figures, News, Stream};

use super::limits::{Buckets, Limits};
use super::queue::{QUEUE_SIZES, REQUESTS};
use super::requests::SERIAL_BYTES;
use super::transfer::Transfer;
use super::{config, requests, state};
use crate::devices::StateError;
use crate::devices::virtio::{Io, VirtioDevice};

/// Chains that one turn takes.
const CHAINS: u32 = 64;

/// The description of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlkConfig {
    /// The name of the server's export.
    pub export: String,
    /// The driver may not change it.
    pub is_read_only: bool,
    /// The driver is offered a volatile cache, which it flushes.
    pub is_write_back: bool,
    /// A request fails after so long without an answer, in nanoseconds.
    pub timeout_ns: u64,
    /// Its serial number: the first 20 bytes count.
    pub serial: String,
    /// The most that the driver may ask for in a second.
    pub limits: Limits,
}

/// The device.
#[derive(Debug)]
pub struct Blk {
    pub(super) client: Client,
    pub(super) serial: [u8; SERIAL_BYTES],
    buckets: Buckets,
    chain: Box<Chain>,
    /// Time of the first turn.
    first_ns: Option<u64>,
    /// A driver does not wait for the server any longer.
    has_waited: bool,
}

impl Blk {
    /// A disk that is not connected.
    pub fn new(config: BlkConfig) -> Self {
        let BlkConfig { export, is_read_only, is_write_back, timeout_ns, serial, limits } = config;
        let mut bytes = [0; SERIAL_BYTES];
        bytes.iter_mut().zip(serial.bytes()).for_each(|(into, byte)| *into = byte);
        let client = Client::new(Config { export, is_read_only, is_write_back, timeout_ns });
        let buckets = Buckets::new(limits);
        Self { client, serial: bytes, buckets, chain: Box::default(), first_ns: None, has_waited: false }
    }

    /// Takes requests, and works on the connection: a bounded time. Returns when it is to be called again, beside when
    /// the driver notifies it and when the stream has bytes, room or an end; `None` if no time is.
    ///
    /// # Errors
    /// The driver's [`Fault`]: its requests are gone.
    pub fn work<S>(&mut self, now_ns: u64, stream: &mut S, io: &mut Io<'_>) -> Result<Option<u64>, Fault>
    where
        S: Stream + ?Sized,
    {
        let first_ns = *self.first_ns.get_or_insert(now_ns);
        let ready_ns = first_ns.saturating_add(self.client.config().timeout_ns);
        self.has_waited |= now_ns >= ready_ns;
        let sectors = self.sectors();
        let worked = self.take_and_turn(now_ns, stream, io);
        let published = io.publish(REQUESTS);
        let next_ns = worked.and_then(|next_ns| published.map(|()| next_ns));
        if next_ns.is_err() {
            self.client.abandon();
        }
        if self.sectors() != sectors {
            io.change_config();
        }
        let waits = (!self.is_ready()).then_some(ready_ns);
        next_ns.map(|next_ns| [next_ns, waits].into_iter().flatten().min())
    }

    fn take_and_turn<S>(&mut self, now_ns: u64, stream: &mut S, io: &mut Io<'_>) -> Result<Option<u64>, Fault>
    where
        S: Stream + ?Sized,
    {
        if !io.is_enabled(REQUESTS) {
            self.client.abandon();
        }
        let again_ns = self.take(now_ns, io)?;
        let mut transfer = Transfer::new(io, &mut self.chain);
        let next_ns = self.client.turn(now_ns, stream, &mut transfer)?;
        Ok([again_ns, next_ns].into_iter().flatten().min())
    }

    /// Takes chains. Returns when there may be more for it: now if there are more than one turn takes, later if more
    /// are not allowed yet; `None` if there are none, and the driver notifies the device of the next one.
    fn take(&mut self, now_ns: u64, io: &mut Io<'_>) -> Result<Option<u64>, Fault> {
        for _ in 0..CHAINS {
            if let Some(at_ns) = self.buckets.wait(now_ns) {
                return Ok(Some(at_ns));
            }
            if io.take(REQUESTS, &mut self.chain)? {
                let bytes = requests::begin(&mut self.client, &self.serial, &self.chain, now_ns, io)?;
                self.buckets.take(bytes);
            } else if !io.enable_notifications(REQUESTS)? {
                return Ok(None);
            }
        }
        Ok(Some(now_ns))
    }

    /// Takes the change of the connection since the last call.
    pub fn take_news(&mut self) -> Option<News> {
        self.client.take_news()
    }

    /// Returns its state and its counts.
    pub fn figures(&self) -> Figures {
        self.client.figures()
    }

    fn sectors(&self) -> [u8; 8] {
        let mut sectors = [0; 8];
        self.read_config(0, &mut sectors);
        sectors
    }
}

impl VirtioDevice for Blk {
    const KIND: DeviceKind = DeviceKind::VirtioBlk;
    const ID: u16 = 2;
    /// Mass storage controller, other.
    const CLASS: u32 = 0x01_80_00;

    fn features(&self) -> u64 {
        let Config { is_read_only, is_write_back, .. } = *self.client.config();
        config::features(is_read_only, is_write_back)
    }

    fn queue_sizes(&self) -> &[u16] {
        QUEUE_SIZES
    }

    fn config_bytes(&self) -> u32 {
        config::BYTES as u32
    }

    fn read_config(&self, at: u32, into: &mut [u8]) {
        let config = config::bytes(self.client.export());
        let there = config.get(at as usize..).unwrap_or_default();
        into.iter_mut().zip(there).for_each(|(into, byte)| *into = *byte);
    }

    fn notify(&mut self, _: u16, io: &mut Io<'_>) -> Result<(), Fault> {
        io.send_soon();
        Ok(())
    }

    fn is_ready(&self) -> bool {
        self.has_waited || self.client.export().is_some()
    }

    fn reset_queue(&mut self, _: u16) {
        self.client.abandon();
    }

    fn reset(&mut self) {
        self.client.abandon();
    }

    fn state_bytes(&self) -> usize {
        state::bytes(&self.client)
    }

    fn save(&self, into: &mut [u8]) -> Result<usize, Full> {
        state::save(&self.client, into)
    }

    fn restore(&mut self, _: u32, from: &[u8]) -> Result<(), StateError> {
        self.client = state::restored(self.client.config(), from)?;
        Ok(())
    }
}
