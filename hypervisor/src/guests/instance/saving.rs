// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vCPUs of a paused run, saved for a client, each by the CPU that holds it.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use spin::Mutex;
use units::PAGE_BYTES;

/// Bytes of a vCPU's block behind its first page: the XSAVE area.
pub const VCPU_TAIL_BYTES: usize = PAGE_BYTES as usize;

/// A vCPU's block, or the reason why there is none; with the number of the wish for which it was saved.
type Saved = (u32, Result<Vec<u8>, String>);

/// The wish of a client, and the vCPUs that have been saved for it.
pub struct Saving {
    /// The number of the client's wish: odd while there is one.
    wish: AtomicU32,
    /// Each vCPU.
    vcpus: Vec<Mutex<Option<Saved>>>,
    /// The state of the whole run.
    pub whole: Mutex<Option<Arc<[u8]>>>,
}

impl Saving {
    /// Nothing is wanted.
    pub fn new(vcpus: u32) -> Self {
        let vcpus = (0..vcpus).map(|_| Mutex::new(None)).collect();
        Self { wish: AtomicU32::new(0), vcpus, whole: Mutex::new(None) }
    }

    /// The number of the wish for which a vCPU is to be saved; `None` if there is none, or it was.
    pub fn wish_for(&self, vcpu: usize) -> Option<u32> {
        let wish = self.wish.load(Ordering::Acquire);
        let is_there = |vcpu: &Mutex<Option<_>>| vcpu.lock().as_ref().is_some_and(|(number, _)| *number == wish);
        (!wish.is_multiple_of(2) && self.vcpus.get(vcpu).is_some_and(|vcpu| !is_there(vcpu))).then_some(wish)
    }

    /// A vCPU has been saved for this wish.
    pub fn put(&self, vcpu: usize, wish: u32, saved: Result<Vec<u8>, String>) {
        if let Some(slot) = self.vcpus.get(vcpu) {
            *slot.lock() = Some((wish, saved));
        }
    }

    /// A vCPU goes on: it is not what was saved any more.
    pub fn discard(&self, vcpu: usize) {
        if let Some(slot) = self.vcpus.get(vcpu) {
            *slot.lock() = None;
        }
    }

    /// The state is wanted from here on. Returns whether it was not before.
    pub fn begin(&self) -> bool {
        let wish = self.wish.load(Ordering::Acquire);
        wish.is_multiple_of(2)
            && self.wish.compare_exchange(wish, wish + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The state is not wanted any more. Returns whether it was.
    pub fn end(&self) -> bool {
        let wish = self.wish.load(Ordering::Acquire);
        let was_wanted = !wish.is_multiple_of(2);
        if was_wanted {
            self.wish.store(wish.wrapping_add(1), Ordering::Release);
            *self.whole.lock() = None;
        }
        was_wanted
    }

    /// The vCPUs one behind the other; `None` while some are not saved.
    pub fn vcpus(&self) -> Option<Result<Vec<u8>, String>> {
        let wish = self.wish.load(Ordering::Acquire);
        let mut all = Vec::new();
        for vcpu in &self.vcpus {
            match vcpu.lock().as_ref().filter(|(number, _)| *number == wish)? {
                (_, Ok(bytes)) => all.extend_from_slice(bytes),
                (_, Err(reason)) => return Some(Err(reason.clone())),
            }
        }
        Some(Ok(all))
    }
}
