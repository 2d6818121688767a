// SPDX-License-Identifier: MIT OR Apache-2.0
//! A frame's way from the sender's segments to the receiver's buffers, byte after byte.

use ::virtio::{Chain, Fault, Outside};
use arrayvec::ArrayVec;

use super::offload::{BUFFERS_AT, BYTES};
use crate::devices::virtio::{Io, Place, Source, Unreachable};

/// The most buffers that a frame is received in: those of Linux have 1,536 bytes.
pub(super) const BUFFERS: usize = 64;

/// The most pieces in which a frame is written. A driver whose buffers are crumbs does not get to spend the sender's
/// time: a sender's chain has 256 segments at most, and Linux's buffers have one to nineteen.
const PIECES: u32 = 640;

/// Why a frame could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stuck {
    /// There are too few buffers.
    Full,
    /// The sender's memory ends.
    Sender(Outside),
    /// The receiver's driver has violated the specification.
    Receiver(Fault),
}

impl From<Fault> for Stuck {
    fn from(fault: Fault) -> Self {
        Self::Receiver(fault)
    }
}

impl From<Outside> for Stuck {
    fn from(outside: Outside) -> Self {
        Self::Receiver(outside.into())
    }
}

/// The receiver's buffers, as they are filled.
pub(super) struct Sink<'a, 'i> {
    io: &'a mut Io<'i>,
    /// The queue with the buffers.
    queue: u16,
    /// The buffer that is being filled.
    chain: &'a mut Chain,
    /// Whether a frame may have more than one.
    is_mergeable: bool,
    /// Buffers that are full: the first descriptor and the bytes of each.
    full: ArrayVec<(u16, u32), BUFFERS>,
    has_buffer: bool,
    segment: usize,
    /// Bytes written to this segment, and to this buffer.
    passed: u32,
    written: u32,
    /// Pieces so far.
    pieces: u32,
    /// Where the two bytes of the number of buffers are.
    count_at: [u64; 2],
}

impl<'a, 'i> Sink<'a, 'i> {
    pub fn new((io, queue): (&'a mut Io<'i>, u16), chain: &'a mut Chain, is_mergeable: bool) -> Self {
        let (full, count_at) = (ArrayVec::new(), [0; 2]);
        let (segment, passed, written, pieces) = (0, 0, 0, 0);
        Self { io, queue, chain, is_mergeable, full, has_buffer: false, segment, passed, written, pieces, count_at }
    }

    /// Writes the header that comes before the frame.
    pub fn write_header(&mut self, header: &[u8; BYTES]) -> Result<(), Stuck> {
        let (address, most) = self.place(BYTES)?;
        if most == BYTES {
            ::virtio::Memory::write(self.io.memory, address, header)?;
            self.advance(BYTES);
            self.count_at = [BUFFERS_AT, BUFFERS_AT + 1].map(|at| address + at as u64);
            return Ok(());
        }
        self.write(&header[..BUFFERS_AT])?;
        for (index, byte) in header[BUFFERS_AT..].iter().enumerate() {
            self.count_at[index] = self.place(1)?.0;
            self.write(&[*byte])?;
        }
        Ok(())
    }

    /// Writes bytes of the host's.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Stuck> {
        let mut left = bytes;
        while !left.is_empty() {
            let (address, most) = self.place(left.len())?;
            let (now, behind) = left.split_at(most);
            ::virtio::Memory::write(self.io.memory, address, now)?;
            self.advance(most);
            left = behind;
        }
        Ok(())
    }

    /// Copies bytes of the sender's.
    pub fn copy(&mut self, reader: &mut Place<'_>, bytes: usize, source: &dyn Source) -> Result<(), Stuck> {
        let mut left = bytes;
        while left > 0 {
            let (to, most) = self.place(left)?;
            // The chain has as many bytes as its frame.
            let Some((from, most)) = reader.piece(most) else { return Ok(()) };
            source.copy(from, to, most).map_err(|unreachable| match unreachable {
                Unreachable::Sender(outside) => Stuck::Sender(outside),
                Unreachable::Receiver(outside) => Stuck::Receiver(outside.into()),
            })?;
            reader.advance(most);
            self.advance(most);
            left -= most;
        }
        Ok(())
    }

    /// Has buffers filled: the driver gets them, or they stay where they are.
    pub fn fill<T>(mut self, write: impl FnOnce(&mut Self) -> Result<T, Stuck>) -> Result<T, Stuck> {
        match write(&mut self) {
            Ok(written) => self.finish().map(|()| written),
            Err(stuck) => {
                self.give_up();
                Err(stuck)
            }
        }
    }

    /// Gives the buffers to the driver, and interrupts it if it wants that.
    fn finish(mut self) -> Result<(), Stuck> {
        self.full.push((self.chain.head(), self.written));
        let count = self.full.len() as u16;
        if count > 1 {
            for (address, byte) in self.count_at.into_iter().zip(count.to_le_bytes()) {
                ::virtio::Memory::write(self.io.memory, address, &[byte])?;
            }
        }
        for (head, written) in &self.full {
            self.io.complete(self.queue, *head, *written)?;
        }
        self.io.publish(self.queue)?;
        Ok(())
    }

    /// Leaves the buffers for another frame.
    fn give_up(self) {
        let taken = self.full.len() + usize::from(self.has_buffer);
        (0..taken).for_each(|_| self.io.put_back(self.queue));
    }

    /// Where the next bytes go in one piece, `most` at most; not more than there is room for in this buffer.
    fn place(&mut self, most: usize) -> Result<(u64, usize), Stuck> {
        self.pieces += 1;
        if self.pieces > PIECES {
            return Err(Stuck::Full);
        }
        loop {
            match self.chain.writable().get(self.segment).filter(|_| self.has_buffer) {
                Some(segment) if self.passed < segment.bytes => {
                    let left = (segment.bytes - self.passed) as usize;
                    return Ok((segment.address + u64::from(self.passed), most.min(left)));
                }
                Some(_) => (self.segment, self.passed) = (self.segment + 1, 0),
                None => self.take()?,
            }
        }
    }

    fn advance(&mut self, bytes: usize) {
        self.passed += bytes as u32;
        self.written += bytes as u32;
    }

    /// Takes another buffer. Room is left for the last one.
    fn take(&mut self) -> Result<(), Stuck> {
        if self.has_buffer {
            if !self.is_mergeable || self.full.len() + 1 == BUFFERS {
                return Err(Stuck::Full);
            }
            self.full.push((self.chain.head(), self.written));
            self.has_buffer = false;
        }
        if !self.io.take(self.queue, self.chain)? {
            return Err(Stuck::Full);
        }
        (self.has_buffer, self.segment, self.passed, self.written) = (true, 0, 0, 0);
        match self.chain.writable_bytes() {
            0 => Err(Fault::Request("a buffer for frames that the device cannot write").into()),
            _ => Ok(()),
        }
    }
}
