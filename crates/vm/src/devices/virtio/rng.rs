// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entropy device (section 5.4): one queue, whose chains it fills with random bytes.

use ::virtio::{Chain, Fault};
use handover::state::DeviceKind;

use super::device::VirtioDevice;
use super::io::Io;

/// The queue.
const REQUESTS: u16 = 0;
const QUEUE_SIZES: &[u16] = &[8];
/// Bytes that a chain gets at most: Linux asks for 64. The driver learns how many there are.
const CHAIN_BYTES: usize = 256;
/// Chains of one call. More wait for a poll, so that no guest holds a CPU by this: 4 KiB are some ten microseconds.
const CHAINS: u32 = 16;

/// The host's source of random bytes for one guest.
pub trait Entropy: Send {
    /// Fills a buffer.
    fn fill(&mut self, into: &mut [u8]);
}

/// The device.
#[derive(Debug)]
pub struct Rng<E> {
    entropy: E,
}

impl<E: Entropy> Rng<E> {
    /// A device with this source.
    pub fn new(entropy: E) -> Self {
        Self { entropy }
    }

    fn fill(&mut self, chain: &Chain, io: &mut Io<'_>) -> Result<(), Fault> {
        if chain.readable_bytes() > 0 || chain.writable_bytes() == 0 {
            return Err(Fault::Request("an entropy request is one to read, or has no room"));
        }
        let mut bytes = [0; CHAIN_BYTES];
        let wanted = CHAIN_BYTES.min(chain.writable_bytes() as usize);
        self.entropy.fill(&mut bytes[..wanted]);
        let written = chain.write(io.memory, 0, &bytes[..wanted])?;
        io.complete(REQUESTS, chain.head(), written as u32)
    }
}

impl<E: Entropy> VirtioDevice for Rng<E> {
    const KIND: DeviceKind = DeviceKind::VirtioRng;
    const ID: u16 = 4;
    /// Of no class.
    const CLASS: u32 = 0x00_ff00;
    const POLLS: bool = true;

    fn queue_sizes(&self) -> &[u16] {
        QUEUE_SIZES
    }

    fn notify(&mut self, _: u16, io: &mut Io<'_>) -> Result<(), Fault> {
        let mut chain = Chain::new();
        for _ in 0..CHAINS {
            if io.take(REQUESTS, &mut chain)? {
                self.fill(&chain, io)?;
                continue;
            }
            io.publish(REQUESTS)?;
            if !io.enable_notifications(REQUESTS)? {
                return Ok(());
            }
        }
        io.publish(REQUESTS)?;
        io.poll_soon();
        Ok(())
    }

    fn poll(&mut self, io: &mut Io<'_>) -> Result<(), Fault> {
        self.notify(REQUESTS, io)
    }
}
