// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes that no machine here has: bytes by the crate's own arithmetic and by the ledger itself, reported of a machine
//! that does not exist; times by what was published of a kernel that keeps a record of 64 bytes for each frame.

use anyhow::Result;
use frames::records::{RECORD_BYTES, Shape};
use frames::{Frames, LEDGER_SLOTS, PageSize, PhysAddr, PhysRange};

use super::boot::{Account, GIB};
use super::{BYTES, LARGEST_GIB};
use crate::report::{Figure, Report};

/// 12 TiB: the machine of the published figures for huge frames.
const LARGEST_KNOWN: u64 = 12 << 40;
/// Nodes and CPUs of the machine of the published figures.
const NODES: f64 = 2.0;
/// Published: one CPU writes the records of 512 GB in 1.7 s.
const RECORD_NS: f64 = 1.7e9 / (LARGEST_GIB * GIB / 4096) as f64;
/// Published: all of them, each node's by its own CPUs, in 88 ms. That is what two nodes' memory takes.
const NODE_BYTES_PER_NS: f64 = (LARGEST_GIB * GIB / 4096 * 64) as f64 / 88e6 / NODES;
/// Huge frames of 1 GiB that are set aside on the machine of 12 TiB.
const HUGE_FRAMES: u64 = 12_000;

fn memory(bytes: u64) -> PhysRange {
    PhysRange::from_start(PhysAddr(1 << 20), bytes).unwrap_or_default()
}

/// Bytes of the records of so much memory, and of what is known of their blocks.
pub(super) fn record_bytes(bytes: u64) -> f64 {
    Shape::of(memory(bytes)).bytes() as f64
}

/// Returns what a policy writes in all, where a boot has not been watched to the end.
pub(super) fn total_bytes(policy: &str, size_gib: u64, account: &Account) -> f64 {
    if policy == "deferred" { record_bytes(size_gib * GIB) } else { account.before_guest_bytes }
}

/// Returns what a machine would show that is so many times as large as one that was measured: records are written frame
/// by frame.
pub(super) fn scaled(account: &Account, measured: u64, wanted: u64) -> Account {
    let factor = wanted as f64 / measured as f64;
    Account {
        boot_instructions: account.boot_instructions * factor,
        before_guest_bytes: account.before_guest_bytes * factor,
        total_bytes: account.total_bytes.map(|bytes| bytes * factor),
        is_modelled: true,
    }
}

/// The ledger of a machine of 12 TiB with one guest of 1 TiB: what is written before it starts.
fn ledger_bytes() -> Result<f64> {
    let mut slots = vec![PhysRange::default(); LEDGER_SLOTS];
    let mut frames = Frames::in_slots(&mut slots);
    frames.add_free(memory(LARGEST_KNOWN))?;
    frames.set_aside(PageSize::Gib1, HUGE_FRAMES, 0)?;
    frames.allocate(4 << 20, PageSize::Kib4)?.leak();
    frames.allocate_for_guest(1 << 40, PageSize::Gib1, None)?.range.leak();
    Ok(frames.written_bytes() as f64)
}

/// 12 TiB by every policy.
pub(super) fn compute(report: &mut Report<'_>) -> Result<()> {
    let all = record_bytes(LARGEST_KNOWN);
    let blocks = Shape::of(memory(LARGEST_KNOWN)).blocks as f64;
    let ledger = ledger_bytes()?;
    let heads = HUGE_FRAMES as f64 * RECORD_BYTES as f64;
    let by_one = |bytes: f64| bytes / 64.0 * RECORD_NS / 1e6;
    let by_all = |bytes: f64| bytes / NODE_BYTES_PER_NS / NODES / 1e6;
    let rows = [
        ("eager", all, all, by_one(all)),
        ("deferred", blocks + ledger, all, by_one(blocks + ledger)),
        ("extents", ledger, ledger, by_one(ledger)),
        (
            "12000 x 1 GiB, hvo=off",
            HUGE_FRAMES as f64 * record_bytes(GIB),
            all,
            by_one(HUGE_FRAMES as f64 * record_bytes(GIB)),
        ),
        (
            "12000 x 1 GiB, hvo=on",
            heads + blocks,
            heads + blocks + record_bytes(LARGEST_KNOWN - HUGE_FRAMES * GIB),
            by_one(heads),
        ),
    ];
    for (policy, before, total, before_ms) in rows {
        let variant = format!("modelled 12 TiB, {policy}");
        report.figure(Figure::modelled(variant.as_str(), "bytes_before_guest", BYTES, [before]))?;
        report.figure(Figure::modelled(variant.as_str(), "bytes_total", BYTES, [total]))?;
        report.figure(Figure::modelled(variant.as_str(), "time_before_guest", "ms", [before_ms]))?;
        report.figure(Figure::modelled(variant.as_str(), "time_after_guest", "ms", [by_all(total - before)]))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_machine_takes_the_published_time() {
        let bytes = record_bytes(512 * GIB);
        assert!((bytes / 64.0 * RECORD_NS / 1e9 - 1.7).abs() < 0.01);
        assert!((bytes / NODE_BYTES_PER_NS / NODES / 1e6 - 88.0).abs() < 1.0);
    }

    #[test]
    fn the_ledger_of_12_tib_takes_less_than_a_page_of_64_kib() {
        assert!(ledger_bytes().expect("the machine has room") < 65_536.0);
    }
}
