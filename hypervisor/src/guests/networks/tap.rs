// SPDX-License-Identifier: MIT OR Apache-2.0
//! The place where a network's frames can be captured.

use core::sync::atomic::{AtomicBool, Ordering};

use spin::Mutex;
use switch::{Capture, Captured};

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

    /// Shows the capture to a sender, unless it is over.
    pub fn with<T>(&self, act: impl FnOnce(&mut Capture) -> T) -> Option<T> {
        self.capture.lock().as_mut().map(act)
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
