// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames of a network that a client captures.

use core::sync::atomic::{AtomicBool, Ordering};

use spin::Mutex;
use switch::{Capture, Captured, Forward, Seen};
use vm::devices::net::{Chain, Fault, Frame};

use super::port::{Port, Topology};
use crate::arch::guest_memory::GuestRam;

/// Where the frames of a network can be captured.
#[derive(Default)]
pub struct Tap {
    /// Read for each frame: the lock is taken only while frames are captured.
    is_on: AtomicBool,
    capture: Mutex<Option<Capture>>,
}

impl Tap {
    /// Frames are captured from here on.
    pub fn begin(&self, capture: Capture) {
        *self.capture.lock() = Some(capture);
        self.is_on.store(true, Ordering::Release);
    }

    /// No more frames are captured; those that were can still be taken.
    pub fn pause(&self) {
        self.is_on.store(false, Ordering::Release);
    }

    /// The capture is over.
    pub fn end(&self) {
        self.pause();
        let over = self.capture.lock().take();
        // Its memory is given back without the lock.
        drop(over);
    }

    /// Returns the oldest frame, if no more than so many bytes of it were kept.
    pub fn take(&self, most: usize) -> Option<Captured> {
        let mut capture = self.capture.lock();
        let capture = capture.as_mut()?;
        capture.oldest_bytes().filter(|bytes| *bytes <= most).and_then(|_| capture.take())
    }

    /// Returns the numbers of frames so far, and of those that were lost.
    pub fn counts(&self) -> (u64, u64) {
        self.capture.lock().as_ref().map_or((0, 0), |capture| (capture.seen(), capture.lost()))
    }

    /// Returns whether frames are captured.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }
}

/// Captures a frame, if it is wanted.
///
/// # Errors
/// The sender's driver has done what it must not.
#[cold]
pub fn keep(
    lan: &Topology,
    (from, memory): (&Port, &GuestRam),
    (frame, chain): (&Frame, &Chain),
    forward: Forward,
    time_ns: u64,
) -> Result<(), Fault> {
    let mut capture = lan.tap.capture.lock();
    let Some(capture) = capture.as_mut() else { return Ok(()) };
    let goes_to =
        |guest| lan.network.egress(forward).any(|to| lan.port(to.port).is_some_and(|port| port.guest == guest));
    if capture.guest.is_some_and(|guest| from.guest != guest && !goes_to(guest)) {
        return Ok(());
    }
    let seen = Seen { time_ns, sender: from.guest, bytes: frame.bytes() as u32 };
    capture.keep(seen, |content| frame.read_first(chain, memory, content))
}
