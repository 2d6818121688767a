// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layout of the switch pages: the use of each page.

use ::update::trial::TAKEOVER_PAGE;
use units::PAGE_BYTES;

/// A mailbox and the stack that ends where the next begins.
pub(super) const STRIDE: u64 = 256;
pub(super) const CODE_PAGE: u64 = 0;
pub(super) const DESCRIPTOR_PAGE: u64 = 1;
pub(super) const TRIAL_IDT_PAGE: u64 = 2;
pub(super) const FIRST_MAILBOX_PAGE: u64 = TAKEOVER_PAGE + 1;
/// The most page tables that both trees take, while less than 2 MiB are shown: 4 and 11.
pub(super) const TABLE_PAGES: u64 = 16;

/// Offset of the byte in a page's GDT that states whether the TSS is loaded.
pub(super) const TSS_TYPE_OFFSET: u64 = 24 + 5;

/// Returns the size of all pages but the page tables.
pub(super) fn shown_bytes(mailboxes: u64) -> u64 {
    (first_trial_page(mailboxes) + mailboxes) * PAGE_BYTES
}

/// Behind the mailboxes.
pub(super) fn first_trial_page(mailboxes: u64) -> u64 {
    FIRST_MAILBOX_PAGE + (mailboxes * STRIDE).div_ceil(PAGE_BYTES)
}
