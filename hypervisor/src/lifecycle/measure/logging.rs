// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cost of a log record (`measure=log`), in ticks. In an emulator that counts instructions, ticks are instructions.

use crate::arch::cpu;
use crate::kernel::timeline::{self, Name};

/// Records that each kind is measured with: odd, so that one is the median.
const MEASURED: usize = 101;

/// Measures records in a full ring, which is what a ring mostly is, by the time stamp counter: in an emulator that
/// counts instructions, those.
pub fn measure() {
    (0..5000).for_each(|number| log::info!("cost: filling {number}"));
    let (name, number, address) = ("linux", 3_u32, 0xffff_8000_1234_5678_u64);
    let long = core::str::from_utf8(&[b'x'; 240]).unwrap_or_default();
    let empty = median(|| {});
    let rows = [
        ("literal", median(|| log::info!("the control channel answers"))),
        ("string", median(|| log::info!("guest {name} has been started"))),
        ("two", median(|| log::info!("guest {name}: CPU {number} is online"))),
        ("hex", median(|| log::info!("address {address:#x} is not mapped"))),
        ("four", median(|| log::info!("guest {name}: {number} of {} CPUs, {address:#x}", 128))),
        ("long", median(|| log::info!("{long}"))),
        ("timeline", median(|| timeline::instant(Name::SelfTests, 0))),
        ("disabled", median(|| log::trace!("guest {name}: CPU {number} is online"))),
    ];
    for (row, ticks) in rows {
        log::info!("log-cost: {row} {}", ticks.saturating_sub(empty));
    }
    log::info!("log-cost: done");
}

/// The median of the ticks that `work` takes.
#[inline(never)]
fn median(work: impl Fn()) -> u64 {
    let mut ticks = [0; MEASURED];
    for slot in &mut ticks {
        let before = cpu::tsc();
        work();
        *slot = cpu::tsc().wrapping_sub(before);
    }
    sort::ascending(&mut ticks);
    ticks[MEASURED / 2]
}
