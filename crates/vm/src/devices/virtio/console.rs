// SPDX-License-Identifier: MIT OR Apache-2.0
//! The console device (section 5.3) with one port: bytes to and from the guest's console, many with one exit.

use ::virtio::{Chain, Fault};
use handover::state::DeviceKind;

use super::device::VirtioDevice;
use super::io::Io;

/// The queues of port 0.
const RECEIVE: u16 = 0;
const TRANSMIT: u16 = 1;
const QUEUE_SIZES: &[u16] = &[64, 64];
/// Bytes that are copied at a time.
const PIECE_BYTES: usize = 256;
/// Bytes, and chains, of one call: the rest waits for a poll, so that no guest holds a CPU by this. Bytes of a chain
/// beyond that are lost, as are those that the reader of a console does not fetch in time. Linux writes a page at most.
const BYTES: u32 = 16 * 1024;
const CHAINS: u32 = 32;

/// The host's end of a guest's console.
pub trait Port: Send {
    /// The guest has written.
    fn write(&mut self, bytes: &[u8]);
    /// Fills a buffer with input that was typed; returns how many bytes there were.
    fn read(&mut self, into: &mut [u8]) -> usize;
    /// Sets whether this console takes typed input; else COM1 does.
    fn set_takes_input(&mut self, takes_input: bool);
}

/// The device.
#[derive(Debug)]
pub struct Console<P> {
    port: P,
}

impl<P: Port> Console<P> {
    /// A device with this end.
    pub fn new(port: P) -> Self {
        Self { port }
    }

    /// Writes the bytes that the guest transmits.
    fn transmit(&mut self, io: &mut Io<'_>) -> Result<(), Fault> {
        let (mut chain, mut left) = (Chain::new(), BYTES);
        for _ in 0..CHAINS {
            if left == 0 {
                break;
            }
            if io.take(TRANSMIT, &mut chain)? {
                left = left.saturating_sub(self.write(&chain, io)?.max(1));
                io.complete(TRANSMIT, chain.head(), 0)?;
                continue;
            }
            io.publish(TRANSMIT)?;
            if !io.enable_notifications(TRANSMIT)? {
                return Ok(());
            }
        }
        io.publish(TRANSMIT)?;
        io.poll_soon();
        Ok(())
    }

    /// Writes a chain; returns its bytes.
    fn write(&mut self, chain: &Chain, io: &Io<'_>) -> Result<u32, Fault> {
        let mut at = 0;
        while at < chain.readable_bytes().min(BYTES) {
            let mut piece = [0; PIECE_BYTES];
            let read = chain.read(io.memory, at, &mut piece)?;
            self.port.write(&piece[..read]);
            at += read as u32;
        }
        Ok(at)
    }

    /// Hands the guest bytes that were typed, as far as it has room. Bytes that find none stay where they are.
    fn receive(&mut self, io: &mut Io<'_>) -> Result<(), Fault> {
        self.port.set_takes_input(io.is_enabled(RECEIVE));
        let mut chain = Chain::new();
        for _ in 0..CHAINS {
            if !io.take(RECEIVE, &mut chain)? {
                io.publish(RECEIVE)?;
                // With room that comes now the guest is asked to notify, and is seen.
                if !io.enable_notifications(RECEIVE)? {
                    return Ok(());
                }
                continue;
            }
            let mut piece = [0; PIECE_BYTES];
            let room = PIECE_BYTES.min(chain.writable_bytes() as usize);
            let typed = self.port.read(&mut piece[..room]);
            if typed == 0 && room > 0 {
                io.put_back(RECEIVE);
                return io.publish(RECEIVE);
            }
            chain.write(io.memory, 0, &piece[..typed])?;
            io.complete(RECEIVE, chain.head(), typed as u32)?;
        }
        io.publish(RECEIVE)?;
        io.poll_soon();
        Ok(())
    }
}

impl<P: Port> VirtioDevice for Console<P> {
    const KIND: DeviceKind = DeviceKind::VirtioConsole;
    const ID: u16 = 3;
    /// Simple communication controller, other.
    const CLASS: u32 = 0x07_8000;
    const POLLS: bool = true;

    fn queue_sizes(&self) -> &[u16] {
        QUEUE_SIZES
    }

    fn notify(&mut self, queue: u16, io: &mut Io<'_>) -> Result<(), Fault> {
        if queue == TRANSMIT { self.transmit(io) } else { self.receive(io) }
    }

    fn poll(&mut self, io: &mut Io<'_>) -> Result<(), Fault> {
        self.receive(io)?;
        self.transmit(io)
    }

    fn reset(&mut self) {
        self.port.set_takes_input(false);
    }
}
