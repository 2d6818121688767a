// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures of devices on purpose (`selftest=dma`, `selftest=never-ready`), in the test image only.

use boot::self_tests::SelfTest;
use units::{PAGE_BYTES, PageSize};

use crate::arch::edu::Edu;
use crate::arch::memory::{FRAMES, OwnedFrames};
use crate::kernel::faults::is_asked_for;

const BYTES: u64 = 64;
const PATTERN: u8 = 0x5a;

/// Programs a device to write to a frame of the host's; the log has the frame's content afterwards.
pub fn let_a_device_write() {
    if !is_asked_for(SelfTest::Dma) {
        return;
    }
    let Some(edu) = Edu::find() else { return log::error!("self-test dma: there is no edu device on bus 0") };
    let Ok(frames) = FRAMES.lock().allocate(PAGE_BYTES, PageSize::Kib4) else { return };
    let mut frames = OwnedFrames::new(frames);
    frames.bytes_mut().fill(PATTERN);
    if !edu.write_zeros(frames.range().start().0, BYTES) {
        return log::error!("self-test dma: the device has not finished");
    }
    let is_whole = frames.bytes().iter().all(|byte| *byte == PATTERN);
    log::info!("self-test dma: memory is {}", if is_whole { "as it was" } else { "overwritten" });
}

/// Returns whether functions do not come back from a reset.
pub fn are_never_ready() -> bool {
    is_asked_for(SelfTest::NeverReady)
}
