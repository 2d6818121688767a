// SPDX-License-Identifier: MIT OR Apache-2.0
//! Features, queues and configuration (sections 5.5.2 to 5.5.4).

/// The driver offers statistics.
const STATS_VQ: u64 = 1 << 1;
/// The driver may take pages back when it has no memory.
const DEFLATE_ON_OOM: u64 = 1 << 2;
/// The driver reports free memory.
const REPORTING: u64 = 1 << 5;
/// The features that the device offers.
pub(super) const FEATURES: u64 = STATS_VQ | DEFLATE_ON_OOM | REPORTING;

/// The queues. That of reports is number 4; Linux before 6.11 counts only those that are there, and has it as 3, which
/// is the queue of free page hints: they are not offered.
pub(super) const INFLATE: u16 = 0;
pub(super) const DEFLATE: u16 = 1;
pub(super) const STATISTICS: u16 = 2;
pub(super) const REPORTS_OF_OLD: u16 = 3;
pub(super) const REPORTS: u16 = 4;
pub(super) const QUEUE_SIZES: &[u16] = &[128; 5];

/// Bytes of the configuration: the pages that the host wants, and those in the balloon.
pub(super) const BYTES: u32 = 8;
/// Place of the latter.
pub(super) const ACTUAL: u32 = 4;
/// Bytes of a page in all of them.
pub(super) const PAGE_BYTES: u64 = 4096;
