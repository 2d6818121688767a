// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that each CPU needs for itself to run guests: where VMRUN saves the host, and a control block for the
//! host's FS, GS, TR and system call registers, which VMRUN leaves alone.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::cpu_local::cpu_local;
use crate::arch::memory::permanent_frames;
use crate::arch::unavailable::Unavailable;

cpu_local! {
    /// The control block for the CPU's own FS, GS, TR and system call registers; 0 while it has none.
    static HOST_VMCB: AtomicU64 = AtomicU64::new(0);
}
cpu_local! {
    /// The area for the rest of the CPU's state; 0 while it has none. A CPU that comes back finds both.
    static HOST_SAVE: AtomicU64 = AtomicU64::new(0);
}

/// A CPU's save area and its own control block, made when it first needs them.
pub fn of(index: u32) -> Result<(u64, u64), Unavailable> {
    let areas = HOST_SAVE.of(index).zip(HOST_VMCB.of(index));
    let (save_area, host_vmcb) = areas.ok_or(Unavailable::OutOfMemory)?;
    Ok((own_frame(save_area)?, own_frame(host_vmcb)?))
}

/// The calling CPU's own control block.
#[inline]
pub fn own_vmcb() -> u64 {
    HOST_VMCB.mine().load(Ordering::Relaxed)
}

/// Returns the address of a CPU's frame, kept in `at`. The frame is allocated when the CPU first needs it.
fn own_frame(at: &AtomicU64) -> Result<u64, Unavailable> {
    let known = at.load(Ordering::Relaxed);
    if known != 0 {
        return Ok(known);
    }
    let frame = permanent_frames(4096).ok_or(Unavailable::OutOfMemory)?;
    at.store(frame.0, Ordering::Relaxed);
    Ok(frame.0)
}
