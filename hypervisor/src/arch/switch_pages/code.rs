// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code of the switch pages, and its copy to the switch pages' first page.

use core::arch::global_asm;
use core::mem::offset_of;

use ::update::takeover::{COMMITTED, Takeover};
use ::update::trial::{Context, FirstFrame, TAKEOVER_PAGE, TrialPage, WORK_STACK};
use bringup::ParkSlot;
use bringup::park::word;
use units::{PAGE_BYTES, PhysAddr};

use super::layout::{CODE_PAGE, STRIDE, TSS_TYPE_OFFSET};
use crate::arch::address::{DIRECT_MAP, SWITCH_PAGES};

global_asm!(
    include_str!("../registers.S"),
    include_str!("../switch_pages.S"),
    stride = const STRIDE,
    state = const ParkSlot::STATE_OFFSET,
    target = const ParkSlot::TARGET_OFFSET,
    root = const ParkSlot::ROOT_OFFSET,
    argument = const ParkSlot::ARGUMENT_OFFSET,
    parked = const word::PARKED,
    released = const word::RELEASED,
    taken = const word::TAKEN,
    old = const offset_of!(TrialPage, old),
    new = const offset_of!(TrialPage, new),
    rsp = const offset_of!(Context, rsp),
    cr3 = const offset_of!(Context, root),
    cr4 = const offset_of!(Context, cr4),
    gs_base = const offset_of!(Context, gs_base),
    gdtr = const offset_of!(TrialPage, gdtr),
    idtr = const offset_of!(TrialPage, idtr),
    old_gdtr = const offset_of!(TrialPage, old_gdtr),
    old_idtr = const offset_of!(TrialPage, old_idtr),
    tss_type = const TSS_TYPE_OFFSET,
    cause = const offset_of!(TrialPage, cause),
    first = const offset_of!(TrialPage, first),
    far = const offset_of!(TrialPage, first) + offset_of!(FirstFrame, far),
    work_stack = const WORK_STACK,
    pending = const offset_of!(TrialPage, pending),
    old_task = const offset_of!(TrialPage, old_task),
    wait_step = const offset_of!(TrialPage, wait_step),
    wait_ticks = const offset_of!(TrialPage, wait_ticks),
    waits = const offset_of!(TrialPage, waits),
    hits = const offset_of!(TrialPage, hits),
    has_faults = const cfg!(feature = "faults") as u32,
    scratch = const offset_of!(TrialPage, scratch),
    verdict = const TAKEOVER_PAGE as usize * PAGE_BYTES as usize + Takeover::VERDICT_OFFSET,
    committed = const COMMITTED,
    gs_base_msr = const crate::arch::percpu::MSR_GS_BASE,
    not_global = const !(1_i64 << 7),
);

unsafe extern "C" {
    pub(super) static switch_start: u8;
    pub(super) static switch_end: u8;
    pub(super) static switch_park: u8;
    pub(super) static switch_leave: u8;
    pub(super) static switch_nmi: u8;
    pub(super) static switch_resume: u8;
    pub(super) static switch_stubs: u8;
    pub(super) static switch_trial_nmi: u8;
    pub(super) static switch_trial_check: u8;
}

/// Returns where the copy of a label's code is seen.
pub(super) fn code_at(label: *const u8) -> u64 {
    SWITCH_PAGES + CODE_PAGE * PAGE_BYTES + (label as u64 - (&raw const switch_start) as u64)
}

/// Copies the code to the switch pages at `start`.
///
/// # Safety
/// The switch pages' first page is the caller's own, and nothing runs there yet.
pub(super) unsafe fn write(start: PhysAddr) {
    let code = (&raw const switch_start) as usize;
    let bytes = ((&raw const switch_end) as usize - code).min(PAGE_BYTES as usize);
    let into = (DIRECT_MAP + start.0 + CODE_PAGE * PAGE_BYTES) as *mut u8;
    // SAFETY: the caller's promise.
    unsafe { core::ptr::copy_nonoverlapping(code as *const u8, into, bytes) };
}
