// SPDX-License-Identifier: MIT OR Apache-2.0
//! A control block in a frame of its own. The CPU gets the frame's physical address.

use core::ops::{Deref, DerefMut};

use frames::FrameRange;
use svm::Vmcb;
use units::{PAGE_BYTES, PageSize};

use crate::arch::address::DIRECT_MAP;
use crate::arch::memory::{FRAMES, release};

/// Owns one frame with a control block in it.
pub struct VmcbPage {
    frame: Option<FrameRange>,
    physical: u64,
}

impl VmcbPage {
    /// A zeroed block; `None` if memory has run out.
    pub fn allocate() -> Option<Self> {
        let frame = FRAMES.lock().allocate(PAGE_BYTES, PageSize::Kib4).ok()?;
        let physical = frame.start().0;
        // SAFETY: the frame was just allocated: no other code uses it, and the direct map shows it.
        unsafe { core::ptr::write_bytes((DIRECT_MAP + physical) as *mut u8, 0, PAGE_BYTES as usize) };
        Some(Self { frame: Some(frame), physical })
    }

    /// For VMRUN.
    #[inline]
    pub fn physical(&self) -> u64 {
        self.physical
    }
}

impl Deref for VmcbPage {
    type Target = Vmcb;

    #[inline]
    fn deref(&self) -> &Vmcb {
        // SAFETY: the frame is ours, mapped, aligned, and any bytes are a valid block. The CPU writes it only
        // inside the world switch, while no reference is alive.
        unsafe { &*((DIRECT_MAP + self.physical) as *const Vmcb) }
    }
}

impl DerefMut for VmcbPage {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vmcb {
        // SAFETY: as in `deref`; `self` is borrowed exclusively.
        unsafe { &mut *((DIRECT_MAP + self.physical) as *mut Vmcb) }
    }
}

impl Drop for VmcbPage {
    fn drop(&mut self) {
        if let Some(frame) = self.frame.take() {
            release(frame);
        }
    }
}
