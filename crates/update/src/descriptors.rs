// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptors that a CPU between two images has loaded from its page: GDT, TSS, and the registers (GDTR, IDTR) by
//! which it finds them.
//!
//! NMIs and machine checks cannot be masked. So the loaded TSS always has the stacks that the gates of the loaded IDT
//! name. While the page's TSS is loaded, the page ensures that for both IDTs (`tests/way_back` tries each instruction).

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU8, AtomicU64};

use crate::trial::{
    CHECK_SLOT, CHECK_STACK, Cause, Context, FirstFrame, NMI_SLOT, NMI_STACK, REASON_BYTES, TRAP_SLOT, TRAP_STACK,
    TrialPage,
};

/// The slot of a TSS that an image's own gate for an NMI names; slots count from 1.
pub const OWN_NMI_SLOT: usize = 2;
/// Likewise for a machine check.
pub const OWN_CHECK_SLOT: usize = 3;
const TSS_LIMIT: u64 = 103;
/// A 64-bit TSS that is present and not busy (AMD APM vol. 2, section 4.8.3).
const TSS_TYPE: u64 = 0x89;
const IDT_BYTES: u64 = 256 * 16;

/// Addresses at which the CPU sees its page and the IDT that belongs to it, and the first entries of the page's GDT.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    /// The page.
    pub page: u64,
    /// The IDT.
    pub idt: u64,
    /// Null, code and data.
    pub gdt: [u64; 3],
}

/// The tops of the stacks on which an image takes an NMI and a machine check under its own IDT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnStacks {
    /// NMI.
    pub nmi: u64,
    /// Machine check.
    pub machine_check: u64,
}

impl TrialPage {
    /// Returns a page of zeros, as the memory for one is set aside.
    #[must_use]
    pub const fn zeroed() -> Self {
        const fn words<const N: usize>() -> [AtomicU64; N] {
            [const { AtomicU64::new(0) }; N]
        }
        const fn word() -> AtomicU64 {
            AtomicU64::new(0)
        }
        const fn context() -> Context {
            Context { rsp: word(), root: word(), cr4: word(), gs_base: word() }
        }
        Self {
            gdt: words(),
            tss: words(),
            gdtr: words(),
            idtr: words(),
            old_gdtr: words(),
            old_idtr: words(),
            old: context(),
            new: context(),
            cause: Cause {
                vector: word(),
                error_code: word(),
                rip: word(),
                fault_address: word(),
                word: word(),
                argument: word(),
            },
            first: FirstFrame { high: words(), rdi: word(), others: words(), far: words() },
            stamps: words(),
            reason_bytes: word(),
            reason: [const { AtomicU8::new(0) }; REASON_BYTES],
            pending: word(),
            old_task: word(),
            wait_step: word(),
            wait_ticks: word(),
            waits: word(),
            hits: word(),
            scratch: words(),
            stacks: words(),
        }
    }

    /// Readies the page for a CPU that a new image will have: its traps lead back. `own`: the old image's stacks, which
    /// its gates name for as long as its IDT is loaded beside the page's TSS.
    pub fn prepare(&self, placement: &Placement, own: Option<OwnStacks>) {
        self.write_descriptors(placement);
        own.into_iter().for_each(|own| self.name_own_stacks(own));
        let words = [&self.reason_bytes, &self.pending, &self.wait_step, &self.waits, &self.hits];
        words.into_iter().chain(&self.stamps).for_each(|word| word.store(0, Relaxed));
    }

    /// Names an image's own stacks: for as long as its IDT is loaded beside the page's TSS.
    pub fn name_own_stacks(&self, own: OwnStacks) {
        self.set_interrupt_stack(OWN_NMI_SLOT, own.nmi);
        self.set_interrupt_stack(OWN_CHECK_SLOT, own.machine_check);
    }

    fn write_descriptors(&self, placement: &Placement) {
        let at = placement.page;
        let tss = at + core::mem::offset_of!(Self, tss) as u64;
        let [null, code, data] = placement.gdt;
        let low = TSS_LIMIT | (tss & 0xff_ffff) << 16 | TSS_TYPE << 40 | (tss >> 24 & 0xff) << 56;
        let gdt = [null, code, data, low, tss >> 32];
        self.gdt.iter().zip(gdt).for_each(|(word, value)| word.store(value, Relaxed));
        self.tss.iter().for_each(|word| word.store(0, Relaxed));
        for (slot, end) in [(NMI_SLOT, NMI_STACK), (CHECK_SLOT, CHECK_STACK), (TRAP_SLOT, TRAP_STACK)] {
            self.set_interrupt_stack(slot, at + end as u64);
        }
        // The I/O map's offset is at 102.
        self.tss[12].store((TSS_LIMIT + 1) << 48, Relaxed);
        let registers = [(&self.gdtr, at, size_of_val(&self.gdt) as u64), (&self.idtr, placement.idt, IDT_BYTES)];
        for (register, base, bytes) in registers {
            register[0].store((bytes - 1) | base << 16, Relaxed);
            register[1].store(base >> 48, Relaxed);
        }
    }
}
