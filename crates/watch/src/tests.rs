// SPDX-License-Identifier: MIT OR Apache-2.0
mod healthy;
mod properties;
mod spinning;

use super::*;

/// Ticks per millisecond.
const MS: u64 = 1000;
const KERNEL: u64 = 0xffff_ffff_8100_0000;

/// Nothing else in the guest runs.
const ALONE: Circumstances = Circumstances {
    has_reported: false,
    others_can_run: false,
    others_halted_for_good: false,
    others_may_be_woken: false,
};
/// The others have halted with interrupts off.
const LAST: Circumstances = Circumstances { others_halted_for_good: true, ..ALONE };
const IN_COMPANY: Circumstances = Circumstances { others_can_run: true, ..ALONE };

/// A CPU that spins in a delay loop, `index` samples after the first.
fn delay_loop(index: u64) -> Sample {
    Sample {
        now: index * SAMPLE_MS * MS,
        rip: KERNEL + 0x40 + index % 3 * 7,
        rsp: 0xffff_c900_0001_3e00,
        cr3: 0x1_2000,
        cpl: 0,
        interrupts_on: true,
        io: 77,
        halts: 5,
        registers: index,
        clock_read_at: Some(KERNEL + 0x52),
    }
}

/// One that polls a word in memory: it reads no clock, and no register changes.
fn polling(index: u64) -> Sample {
    Sample { registers: 9, clock_read_at: None, ..delay_loop(index) }
}

/// The findings for samples in turn.
fn findings(
    watch: &mut Watch,
    samples: impl IntoIterator<Item = Sample>,
    around: Circumstances,
) -> std::vec::Vec<Finding> {
    samples.into_iter().map(|sample| watch.sample(&sample, around)).collect()
}

/// The first finding of a spin, and after how many samples it came.
fn first_spin(samples: impl IntoIterator<Item = Sample>, around: Circumstances) -> Option<(usize, Diagnosis)> {
    let mut watch = Watch::new(MS, 10_000);
    findings(&mut watch, samples, around).into_iter().enumerate().find_map(|(index, finding)| match finding {
        Finding::Spins(diagnosis) => Some((index + 1, diagnosis)),
        _ => None,
    })
}
