// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that have passed a network, until a client fetches them. The CPU that forwards a frame keeps it:
//! nothing is allocated then.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// The most bytes of a frame that are kept: two of the largest untagged Ethernet frames.
pub const MAX_SNAP_BYTES: usize = 3028;
/// Bytes of all kept frames, with their heads. A frame that comes while there is no room is lost.
pub const CAPTURE_BYTES: usize = 256 << 10;
const HEAD_BYTES: usize = 18;

/// A frame, without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When it was forwarded, in nanoseconds.
    pub time_ns: u64,
    /// The guest that has sent it.
    pub sender: u32,
    /// Its length as it was sent.
    pub bytes: u32,
}

/// A frame that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Its sender, time and length.
    pub seen: Seen,
    /// Its first bytes.
    pub content: Vec<u8>,
}

/// The frames of one network, or those of one guest on it.
#[derive(Debug)]
pub struct Capture {
    /// The guest that is listened to; `None`: all of them.
    pub guest: Option<u32>,
    kept: VecDeque<u8>,
    content: Vec<u8>,
    seen: u64,
    lost: u64,
}

impl Capture {
    /// A capture of the first `snap_bytes` bytes of frames, at most [`MAX_SNAP_BYTES`]. `None` without memory for it.
    pub fn new(guest: Option<u32>, snap_bytes: usize) -> Option<Self> {
        let mut kept = VecDeque::new();
        kept.try_reserve_exact(CAPTURE_BYTES).ok()?;
        let content = vec![0; snap_bytes.min(MAX_SNAP_BYTES)];
        Some(Self { guest, kept, content, seen: 0, lost: 0 })
    }

    /// Keeps a frame, whose first bytes `read` provides.
    ///
    /// # Errors
    /// That of `read`.
    pub fn keep<E>(&mut self, frame: Seen, read: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<(), E> {
        self.seen += 1;
        let bytes = self.content.len().min(frame.bytes as usize);
        if self.kept.len() + HEAD_BYTES + bytes > CAPTURE_BYTES {
            self.lost += 1;
            return Ok(());
        }
        let content = &mut self.content[..bytes];
        read(content)?;
        self.kept.extend(frame.time_ns.to_le_bytes());
        self.kept.extend(frame.sender.to_le_bytes());
        self.kept.extend(frame.bytes.to_le_bytes());
        self.kept.extend((bytes as u16).to_le_bytes());
        self.kept.extend(&*content);
        Ok(())
    }

    /// Bytes of the oldest frame that are kept.
    pub fn oldest_bytes(&self) -> Option<usize> {
        let at = |place: usize| self.kept.get(place).copied();
        Some(u16::from_le_bytes([at(HEAD_BYTES - 2)?, at(HEAD_BYTES - 1)?]).into())
    }

    /// Takes the oldest frame out.
    pub fn take(&mut self) -> Option<Captured> {
        let (time_ns, sender) = (u64::from_le_bytes(self.next()?), u32::from_le_bytes(self.next()?));
        let (bytes, kept) = (u32::from_le_bytes(self.next()?), u16::from_le_bytes(self.next()?));
        let content = self.kept.drain(..usize::from(kept).min(self.kept.len())).collect();
        Some(Captured { seen: Seen { time_ns, sender, bytes }, content })
    }

    fn next<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        for byte in &mut bytes {
            *byte = self.kept.pop_front()?;
        }
        Some(bytes)
    }

    /// Frames so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Frames so far for which there was no room.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}
