// SPDX-License-Identifier: MIT OR Apache-2.0
//! A processor's page between two images, while the new one is on trial: the old image can take the processor back at any
//! time, whatever the new one does with it.
//!
//! ```text
//! old image ──resume──▶ new image's registers ─ ─ any interrupt, exception or NMI, or the new image's own word ─ ─▶ old image
//! ```
//!
//! The page holds both images' registers, and a GDT, a TSS and a stack for traps that belong to neither. The crossing's code
//! exchanges the registers (`hypervisor/src/arch/crossing.S`); under its IDT every trap leads back to the old image, with the
//! reason in the page. The new image speaks by [`SPEAK_VECTOR`], with what it says in RDI and RSI.
//!
//! Two images, perhaps of different versions, read the same bytes: the layout is fixed, and [`VERSION`] counts up when it
//! changes.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Counts up when the layout or the meaning of a word changes. Since 2 an NMI may come for as long as an image has taken over and has
/// not silenced the [watchdog](crate::watchdog), and is passed over then.
pub const VERSION: u32 = 2;
/// The page of the crossing in which [`crate::takeover::Takeover`] is.
pub const TAKEOVER_PAGE: u64 = 3;
/// A page for each processor.
pub const PAGE_BYTES: usize = 4096;
/// The software interrupt by which a new image speaks to the old one. No device and no image uses it otherwise.
pub const SPEAK_VECTOR: u8 = 0x20;
/// The most bytes of a new image's reason to give up.
pub const REASON_BYTES: usize = 256;

/// What a new image says, in RDI.
pub mod word {
    /// It has prepared everything.
    pub const PREPARED: u64 = 1;
    /// It gives up; the reason is in the page.
    pub const GIVES_UP: u64 = 2;
    /// It has seen that all go back.
    pub const GOES_BACK: u64 = 3;
}

/// Steps of a processor from one image to the other.
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
/// That number: ticks for which the new image had this processor to prepare itself.
pub const BUSY_TICKS: usize = 7;

/// One image's share of a processor while the other has it.
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

/// Why the processor came back.
#[derive(Debug)]
#[repr(C)]
pub struct Cause {
    /// The interrupt's or exception's vector.
    pub vector: AtomicU64,
    /// Its error code; 0 where there is none.
    pub error_code: AtomicU64,
    /// Where the new image was.
    pub rip: AtomicU64,
    /// CR2.
    pub fault_address: AtomicU64,
    /// RDI: with [`SPEAK_VECTOR`], of [`word`].
    pub word: AtomicU64,
    /// RSI: with [`SPEAK_VECTOR`], what belongs to the word.
    pub argument: AtomicU64,
}

/// The first registers of a new image, as the code that resumes it takes them from its stack.
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
    /// The 64-bit TSS, whose first interrupt stack is the end of this page.
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
    /// Why the processor came back.
    pub cause: Cause,
    /// Where the new image begins.
    pub first: FirstFrame,
    /// When the processor got how far, by [`Stamp`].
    pub stamps: [AtomicU64; STAMPS],
    /// Bytes of the reason.
    pub reason_bytes: AtomicU64,
    /// The reason in text.
    pub reason: [AtomicU8; REASON_BYTES],
    /// For traps.
    pub stack: [AtomicU64; STACK_WORDS],
}

const STACK_WORDS: usize = (PAGE_BYTES - 824) / 8;

const _: () = assert!(size_of::<TrialPage>() == PAGE_BYTES && core::mem::offset_of!(TrialPage, stack) == 824);

impl TrialPage {
    /// Notes when the processor got so far.
    pub fn stamp(&self, stamp: Stamp, ticks: u64) {
        self.stamps[stamp as usize].store(ticks, Ordering::Relaxed);
    }

    /// Whether the new image had interrupts masked when the last NMI came: of what the processor pushes, the flags are the third word
    /// from the stack's end (AMD APM vol. 2, section 8.9.3).
    pub fn were_interrupts_masked(&self) -> bool {
        const INTERRUPTS_OPEN: u64 = 1 << 9;
        self.stack[STACK_WORDS - 3].load(Ordering::Relaxed) & INTERRUPTS_OPEN == 0
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
