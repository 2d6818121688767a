// SPDX-License-Identifier: MIT OR Apache-2.0
//! A chain of descriptors as the lists of memory that it names.

pub(crate) mod walk;

use arrayvec::ArrayVec;

use crate::fault::Fault;
use crate::limits::CHAIN_SEGMENTS;
use crate::memory::Memory;

/// A piece of the driver's memory. That it does not wrap around has been checked, that it is memory has not: each
/// access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first address.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u32,
}

/// One request of a driver: what the device reads, and then what it writes. It is a copy that the driver cannot change;
/// the memory that it names the driver can. It is 4 KiB: callers keep one and pass it to [`take`](crate::Queue::take).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    head: u16,
    segments: ArrayVec<Segment, CHAIN_SEGMENTS>,
    /// The segments before this one are readable, the others writable.
    readable: usize,
    readable_bytes: u32,
    writable_bytes: u32,
}

impl Chain {
    /// A chain without segments.
    pub const fn new() -> Self {
        Self { head: 0, segments: ArrayVec::new_const(), readable: 0, readable_bytes: 0, writable_bytes: 0 }
    }

    /// The number of its first descriptor, by which it is [completed](crate::Queue::complete).
    pub fn head(&self) -> u16 {
        self.head
    }

    /// The segments that the device reads.
    pub fn readable(&self) -> &[Segment] {
        &self.segments[..self.readable]
    }

    /// The segments that the device writes.
    pub fn writable(&self) -> &[Segment] {
        &self.segments[self.readable..]
    }

    /// Bytes that the device can read.
    pub fn readable_bytes(&self) -> u32 {
        self.readable_bytes
    }

    /// Bytes that the device can write.
    pub fn writable_bytes(&self) -> u32 {
        self.writable_bytes
    }

    /// Reads from byte `at` of the readable segments on; returns the bytes that there were.
    ///
    /// # Errors
    /// [`Fault::Outside`] if a segment is not memory.
    pub fn read<M: Memory + ?Sized>(&self, memory: &M, at: u32, into: &mut [u8]) -> Result<usize, Fault> {
        let mut done = 0;
        for (address, bytes) in pieces(self.readable(), at, into.len()) {
            memory.read(address, &mut into[done..done + bytes])?;
            done += bytes;
        }
        Ok(done)
    }

    /// Writes from byte `at` of the writable segments on; returns the bytes that there was room for.
    ///
    /// # Errors
    /// [`Fault::Outside`] if a segment is not memory.
    pub fn write<M: Memory + ?Sized>(&self, memory: &M, at: u32, from: &[u8]) -> Result<usize, Fault> {
        let mut done = 0;
        for (address, bytes) in pieces(self.writable(), at, from.len()) {
            memory.write(address, &from[done..done + bytes])?;
            done += bytes;
        }
        Ok(done)
    }
}

/// The places of up to `most` bytes from byte `at` of some segments on.
fn pieces(segments: &[Segment], at: u32, most: usize) -> impl Iterator<Item = (u64, usize)> {
    let (mut skip, mut left) = (u64::from(at), most);
    segments.iter().filter_map(move |segment| {
        let within = skip.min(segment.bytes.into());
        skip -= within;
        let bytes = (u64::from(segment.bytes) - within).min(left as u64) as usize;
        left -= bytes;
        (bytes > 0).then_some((segment.address + within, bytes))
    })
}
