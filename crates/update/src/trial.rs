// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's page between two images, while the new one is on trial: the old image can regain the CPU at any time,
//! for any action of the new one.
//!
//! ```text
//! old image ──resume──▶ new image's registers ─ ─ any interrupt, exception or NMI, or the new image's own word ─ ─▶ old image
//! ```
//!
//! The page holds both images' registers, and a GDT, a TSS and stacks for traps that belong to neither. The switch
//! page's code exchanges the registers (`hypervisor/src/arch/switch_pages.S`); under its IDT every trap leads back to
//! the old image, with the reason in the page. The new image speaks by [`SPEAK_VECTOR`], with its message in RDI
//! and RSI.
//!
//! The page's TSS is loaded while either IDT is: for a few instructions the old image's, and the new one's once that
//! has taken over. So it names stacks for the gates of all three ([`TrialPage::set_interrupt_stack`]):
//!
//! | slot | for the gate of | stack |
//! |---|---|---|
//! | [`NMI_SLOT`] (1) | the page's NMI | in the page; images of old name it for all three, and a new image's TSS has one there, too |
//! | 2, 3 | an image's own NMI and machine check | that image's |
//! | [`CHECK_SLOT`] (4) | the page's machine check | in the page |
//! | [`TRAP_SLOT`] (6) | all else of the page's | ends where [`TrialPage::first`] does |
//!
//! Two images, perhaps of different versions, read the same bytes: the layout is fixed up to the reason, and
//! [`VERSION`] counts up when it changes. What is behind it is the old image's own.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Counts up when the layout or the meaning of a word changes. Since 2 an NMI may come for as long as an image has
/// taken over and has not silenced the watchdog (`bringup::watchdog`), and is passed over then.
pub const VERSION: u32 = 2;
/// The page of the switch pages in which [`crate::takeover::Takeover`] is.
pub const TAKEOVER_PAGE: u64 = 3;
/// A page for each CPU.
pub const PAGE_BYTES: usize = 4096;
/// The software interrupt by which a new image speaks to the old one. No device and no image uses it otherwise.
pub const SPEAK_VECTOR: u8 = 0x20;
/// The most bytes of a new image's reason to give up.
pub const REASON_BYTES: usize = 256;

/// Words by which a new image speaks to the old one, in RDI.
pub mod word {
    /// It has prepared everything.
    pub const PREPARED: u64 = 1;
    /// It gives up; the reason is in the page.
    pub const GIVES_UP: u64 = 2;
    /// It has seen that all go back.
    pub const GOES_BACK: u64 = 3;
}

/// The slot of the page's TSS for an NMI under the page's IDT. It is one that the TSS of release 0.1.0 has, too: a new
/// image may have loaded its own TSS before its own IDT.
pub const NMI_SLOT: usize = 1;
/// Likewise for a machine check.
pub const CHECK_SLOT: usize = 4;
/// Likewise for everything else.
pub const TRAP_SLOT: usize = 6;
/// Fault points on the way to the new image and back, counted from 1 (`hypervisor/src/arch/switch_pages.S`).
pub const FAULT_POINTS: usize = 13;

/// Steps of a CPU from one image to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// It has left its guests.
    Left = 0,
    /// It has saved them.
    Saved = 1,
    /// All have: it goes.
    Gone = 2,
    /// It is in the new image.
    Arrived = 3,
    /// It has restored its guests.
    Restored = 4,
    /// All have.
    Committed = 5,
    /// It is about to enter a guest, or to wait for one.
    Entered = 6,
}

/// Room for as many stamps, and for a number behind them.
pub const STAMPS: usize = 8;
/// Index of the ticks for which the new image had this CPU to prepare itself.
pub const BUSY_TICKS: usize = 7;

/// One image's share of a CPU while the other has it.
#[derive(Debug)]
#[repr(C)]
pub struct Context {
    /// Top of its stack, under which its registers lie.
    pub rsp: AtomicU64,
    /// CR3.
    pub root: AtomicU64,
    /// CR4.
    pub cr4: AtomicU64,
    /// GS base.
    pub gs_base: AtomicU64,
}

/// The reason why the CPU came back to the old image.
#[derive(Debug)]
#[repr(C)]
pub struct Cause {
    /// The interrupt's or exception's vector.
    pub vector: AtomicU64,
    /// Its error code; 0 where there is none.
    pub error_code: AtomicU64,
    /// The new image's RIP.
    pub rip: AtomicU64,
    /// CR2.
    pub fault_address: AtomicU64,
    /// RDI: with [`SPEAK_VECTOR`], of [`word`].
    pub word: AtomicU64,
    /// RSI: with [`SPEAK_VECTOR`], what belongs to the word.
    pub argument: AtomicU64,
}

/// The registers of a new image: its first ones, and those with which it left the CPU last.
#[derive(Debug)]
#[repr(C)]
pub struct FirstFrame {
    /// R15, R14, …, R8.
    pub high: [AtomicU64; 8],
    /// RDI.
    pub rdi: AtomicU64,
    /// RSI, RBP, RBX, RDX, RCX, RAX, and two words that are passed over.
    pub others: [AtomicU64; 8],
    /// RIP, CS, RFLAGS, RSP, SS.
    pub far: [AtomicU64; 5],
}

/// The page. All of it is atomic words, so that any bytes are one.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct TrialPage {
    /// Null, code (selector 8), data (16), TSS (24).
    pub gdt: [AtomicU64; 5],
    /// The 64-bit TSS.
    pub tss: [AtomicU64; 13],
    /// For GDTR and IDTR: a limit in the first two bytes, a base in the next eight.
    pub gdtr: [AtomicU64; 2],
    /// See [`Self::gdtr`].
    pub idtr: [AtomicU64; 2],
    /// The old image's GDTR and IDTR.
    pub old_gdtr: [AtomicU64; 2],
    /// See [`Self::old_gdtr`].
    pub old_idtr: [AtomicU64; 2],
    /// The old image.
    pub old: Context,
    /// The new one.
    pub new: Context,
    /// The reason why the CPU came back.
    pub cause: Cause,
    /// The new image's first registers, and later those with which it goes on.
    pub first: FirstFrame,
    /// Times of the CPU's steps in ticks, by [`Stamp`].
    pub stamps: [AtomicU64; STAMPS],
    /// Bytes of the reason.
    pub reason_bytes: AtomicU64,
    /// The reason in text.
    pub reason: [AtomicU8; REASON_BYTES],
    /// NMI and machine check that came on the way back, by their vectors' bits.
    pub pending: AtomicU64,
    /// The old image's TR.
    pub old_task: AtomicU64,
    /// A self-test: the CPU waits at this fault point; 0 at none.
    pub wait_step: AtomicU64,
    /// The longest wait in ticks, if no NMI or machine check interrupts it.
    pub wait_ticks: AtomicU64,
    /// The number of its waits.
    pub waits: AtomicU64,
    /// NMIs and machine checks that interrupted the CPU on its way.
    pub hits: AtomicU64,
    /// For the last fault point, at which all registers are the new image's.
    pub scratch: [AtomicU64; 4],
    /// For the page's gates, from its end: NMI, machine check, the way back, the new image's first instructions.
    pub stacks: [AtomicU64; STACK_WORDS],
}

const STACKS_AT: usize = 904;
const STACK_WORDS: usize = (PAGE_BYTES - STACKS_AT) / 8;
const STACK_BYTES: usize = 768;
/// Offsets of the stacks' ends.
pub const NMI_STACK: usize = PAGE_BYTES;
/// See [`NMI_STACK`].
pub const CHECK_STACK: usize = NMI_STACK - STACK_BYTES;
/// See [`NMI_STACK`].
pub const WORK_STACK: usize = CHECK_STACK - STACK_BYTES;
/// See [`NMI_STACK`].
pub const FIRST_STACK: usize = WORK_STACK - STACK_BYTES;
/// The end of the new image's registers, which traps push.
pub const TRAP_STACK: usize = core::mem::offset_of!(TrialPage, first) + size_of::<FirstFrame>();

const _: () = assert!(size_of::<TrialPage>() == PAGE_BYTES && core::mem::offset_of!(TrialPage, stacks) == STACKS_AT);
const _: () = assert!(STACKS_AT + 8 * STACK_WORDS == PAGE_BYTES, "the stacks fill the page");
// The CPU aligns an interrupt stack to 16 bytes (AMD APM vol. 2, section 8.9.3): these are.
const _: () = assert!(TRAP_STACK.is_multiple_of(16) && STACK_BYTES.is_multiple_of(16));
const _: () = assert!(FIRST_STACK - STACK_BYTES >= STACKS_AT);

impl TrialPage {
    /// Notes when the CPU got so far.
    pub fn stamp(&self, stamp: Stamp, ticks: u64) {
        self.stamps[stamp as usize].store(ticks, Ordering::Relaxed);
    }

    /// Returns whether the new image had interrupts masked when it left the CPU last: of what the CPU pushes, the flags
    /// are the third word (AMD APM vol. 2, section 8.9.3).
    pub fn were_interrupts_masked(&self) -> bool {
        const INTERRUPTS_OPEN: u64 = 1 << 9;
        self.first.far[2].load(Ordering::Relaxed) & INTERRUPTS_OPEN == 0
    }

    /// Writes an interrupt stack's top into the TSS; slots count from 1. The first one's address is at offset 36 (AMD
    /// APM vol. 2, figure 12-8). In two steps: not for a slot that a gate of the loaded IDT names. Nothing if there is
    /// no such slot.
    pub fn set_interrupt_stack(&self, slot: usize, top: u64) {
        const SLOTS: core::ops::RangeInclusive<usize> = 1..=7;
        if !SLOTS.contains(&slot) {
            return;
        }
        let (low, high) = (&self.tss[slot + 3], &self.tss[slot + 4]);
        low.store(low.load(Ordering::Relaxed) & u64::from(u32::MAX) | top << 32, Ordering::Relaxed);
        high.store(high.load(Ordering::Relaxed) & !u64::from(u32::MAX) | top >> 32, Ordering::Relaxed);
    }

    /// Writes down why the new image gives up; what does not fit is cut.
    pub fn set_reason(&self, text: &[u8]) {
        let bytes = text.len().min(REASON_BYTES);
        self.reason.iter().zip(&text[..bytes]).for_each(|(place, byte)| place.store(*byte, Ordering::Relaxed));
        self.reason_bytes.store(bytes as u64, Ordering::Release);
    }

    /// Copies the reason; returns the bytes that it has.
    pub fn reason<'a>(&self, into: &'a mut [u8; REASON_BYTES]) -> &'a [u8] {
        let bytes = (self.reason_bytes.load(Ordering::Acquire) as usize).min(REASON_BYTES);
        into.iter_mut().zip(&self.reason).for_each(|(byte, place)| *byte = place.load(Ordering::Relaxed));
        &into[..bytes]
    }
}

#[cfg(test)]
#[path = "trial_tests.rs"]
mod tests;
