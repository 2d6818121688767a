// SPDX-License-Identifier: MIT OR Apache-2.0
//! The switch pages: pages that outlive an image, over which every CPU goes to the next one.
//!
//! | page | content |
//! |---|---|
//! | 0 | code ([`switch_pages.S`](switch_pages.S)): parks, wakes, leaves; takes a CPU to an image on trial and back |
//! | 1 | GDT, IDT, and the values of GDTR and IDTR |
//! | 2 | the IDT of CPUs that an image on trial has ([`trial`]) |
//! | 3 | the words by which all switch over or stay ([`update::takeover::Takeover`]) |
//! | 4… | mailboxes ([`bringup::ParkSlot`]) with a small stack each, 16 to a page; number 0 is the leaving CPU's |
//! | then | a page for each CPU between two images ([`update::trial::TrialPage`]) |
//! | then | page tables: the switch pages' own, under which CPUs wait, and the new image's first |
//!
//! It is mapped at [`address::SWITCH_PAGES`] wherever it is mapped. A parked CPU halts with interrupts off, on tables
//! that show nothing but the switch pages; the one non-maskable interrupt that follows the write of its mailbox takes
//! it to the new image.

mod code;
mod descriptors;
#[cfg(feature = "faults")]
pub mod faults;
mod layout;
mod pages;
mod tables;
pub mod trial;

use core::arch::asm;

use bringup::ParkSlot;
use bringup::park::SLOT_BYTES;
use frames::FrameRange;
use paging::{Flags, MapError, Tables};
use units::{PAGE_BYTES, PageSize, PhysAddr, PhysRange};

use super::address::{BOOT_MAPPED_BYTES, DIRECT_MAP, IMAGE, SWITCH_PAGES};
use super::memory::{self, FRAMES};
use super::{apic, cpu, timer};

use code::{code_at, switch_leave, switch_park};
use descriptors::descriptors;
use layout::{FIRST_MAILBOX_PAGE, STRIDE, TABLE_PAGES, shown_bytes};
use tables::{TablePool, show};

pub use tables::show_inherited;

/// Below the new image's slot in its address space, as in the ELF file.
const LINKED_AT: u64 = handover::image::LINKED_AT;

/// No memory for the switch pages, or for its tables.
#[derive(Clone, Copy, Debug)]
pub struct OutOfMemory;

impl From<MapError> for OutOfMemory {
    fn from(_: MapError) -> Self {
        Self
    }
}

/// The switch pages, ready to be switched to.
pub struct SwitchPages {
    /// All of it; taken when it is given back.
    frames: Option<FrameRange>,
    start: PhysAddr,
    mailboxes: u64,
    /// The switch pages' own tables.
    own_root: PhysAddr,
    /// The new image's first tables.
    next_root: PhysAddr,
}

impl SwitchPages {
    /// Switch pages for so many CPUs to the image in `slot`. No CPU is on them yet, and no table of this image shows
    /// them.
    pub fn build(cpus: usize, slot: PhysRange) -> Result<Self, OutOfMemory> {
        let mailboxes = cpus.max(1) as u64;
        let shown = shown_bytes(mailboxes);
        let bytes = shown + TABLE_PAGES * PAGE_BYTES;
        let frames = FRAMES.lock().allocate_below(bytes, PageSize::Kib4, PhysAddr(BOOT_MAPPED_BYTES));
        let mut frames = frames.map_err(|_| OutOfMemory)?;
        let start = frames.start();
        memory::bytes_of(&mut frames).fill(0);
        let mut switch_pages =
            Self { frames: Some(frames), start, mailboxes, own_root: PhysAddr(0), next_root: PhysAddr(0) };
        // SAFETY: both pages are these switch pages' own, and no CPU is on them yet.
        unsafe {
            code::write(start);
            descriptors::write(start);
        }
        switch_pages.write_trial_gates();
        let mut pool = TablePool { next: start.0 + shown, end: start.0 + bytes };
        let mut own = Tables::new(&mut pool, PageSize::Kib4)?;
        show(start, shown, &mut own, &mut pool)?;
        let mut next = Tables::new(&mut pool, memory::largest_page())?;
        show(start, shown, &mut next, &mut pool)?;
        let data = Flags::WRITABLE | Flags::NO_EXECUTE;
        next.map(&mut pool, DIRECT_MAP, PhysAddr(0), BOOT_MAPPED_BYTES, data)?;
        next.map(&mut pool, IMAGE + LINKED_AT, slot.start(), slot.bytes(), Flags::WRITABLE)?;
        (switch_pages.own_root, switch_pages.next_root) = (own.root(), next.root());
        Ok(switch_pages)
    }

    /// Makes this image's tables show it. The last thing that can fail.
    pub fn enter_host_tables(&self) -> Result<(), OutOfMemory> {
        let shown = memory::with_host_tables(|tables, frames| show(self.start, self.shown_bytes(), tables, frames));
        shown.ok_or(OutOfMemory)??;
        Ok(())
    }

    /// Returns where it lies.
    pub fn range(&self) -> PhysRange {
        self.frames.as_ref().map(FrameRange::range).unwrap_or_default()
    }

    /// The new image's first tables.
    pub fn next_root(&self) -> u64 {
        self.next_root.0
    }

    /// Physical address of a CPU's mailbox.
    pub fn mailbox_address(&self, index: u32) -> u64 {
        self.start.0 + FIRST_MAILBOX_PAGE * PAGE_BYTES + u64::from(index) * STRIDE
    }

    /// A CPU's mailbox.
    pub fn mailbox(&self, index: u32) -> Option<&ParkSlot> {
        // SAFETY: the address is a mailbox of the switch pages: aligned, in the direct map, all of it atomic words.
        (u64::from(index) < self.mailboxes).then(|| unsafe { &*mailbox_pointer(self.mailbox_address(index)) })
    }

    /// The calling CPU waits for the next image, for ever as far as this one is concerned.
    pub fn park(&self, index: u32) -> ! {
        timer::clear_alarm();
        apic::mask_timer();
        let mailbox = SWITCH_PAGES + FIRST_MAILBOX_PAGE * PAGE_BYTES + u64::from(index) * STRIDE;
        // SAFETY: this image's tables show the switch pages; the code there uses nothing else, and never comes back.
        unsafe {
            asm!("jmp {code}", code = in(reg) code_at(&raw const switch_park), in("rdi") mailbox,
                in("rsi") self.own_root.0, in("rdx") descriptors(), options(noreturn))
        }
    }

    /// The calling CPU goes to the new image at `entry`, which finds the record there.
    pub fn leave(&self, entry: u64, record: PhysAddr) -> ! {
        timer::clear_alarm();
        apic::mask_timer();
        let stack = SWITCH_PAGES + FIRST_MAILBOX_PAGE * PAGE_BYTES + STRIDE;
        // SAFETY: as in `park`; the tables show the new image, and this is its entry.
        unsafe {
            asm!("jmp {code}", code = in(reg) code_at(&raw const switch_leave), in("rdi") record.0,
                in("rsi") self.next_root.0, in("rdx") descriptors(), in("rcx") entry, in("r8") stack, options(noreturn))
        }
    }

    fn shown_bytes(&self) -> u64 {
        shown_bytes(self.mailboxes)
    }
}

impl Drop for SwitchPages {
    fn drop(&mut self) {
        hide(self.shown_bytes());
        self.frames.take().into_iter().for_each(memory::release);
    }
}

/// The mailbox of a CPU that the previous image parked, at a physical address in memory that is kept for
/// `switch_pages`.
pub fn inherited_mailbox(physical: u64, switch_pages: PhysRange) -> Option<&'static ParkSlot> {
    let range = PhysRange::from_start(PhysAddr(physical), SLOT_BYTES as u64)?;
    let is_slot = switch_pages.contains_range(range) && physical.is_multiple_of(SLOT_BYTES as u64);
    // SAFETY: the memory is kept until every CPU has left it or was reset, and the requester lives no longer; it
    // is in the direct map, aligned, and any bytes are a slot, since all of it is atomic words.
    is_slot.then(|| unsafe { &*mailbox_pointer(physical) })
}

/// The host's tables show this many bytes of switch pages no more, if they did.
pub fn hide(bytes: u64) {
    let hidden = memory::with_host_tables(|tables, frames| tables.unmap(frames, SWITCH_PAGES, bytes));
    if hidden.is_some_and(|hidden| hidden.is_ok()) {
        memory::flush_translations();
    }
}

fn mailbox_pointer(physical: u64) -> *const ParkSlot {
    (DIRECT_MAP + physical) as *const ParkSlot
}

/// The calling CPU's registers that a guest may have left with other values than a CPU has after reset, and
/// that an image expects so.
pub fn reset_guest_registers() {
    const OSXSAVE: u32 = 1 << 27;
    if cpu::cpuid(1, 0).ecx & OSXSAVE != 0 {
        // SAFETY: CR4.OSXSAVE is set; x87 alone is always supported.
        unsafe { cpu::write_xcr0(1) };
    }
}
