// SPDX-License-Identifier: MIT OR Apache-2.0
//! The switch pages: pages that outlive an image, over which every CPU goes to the next one.
//!
//! | page | what |
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
//! that show nothing but the switch pages; the one non-maskable interrupt that comes with its mail takes it to the new
//! image.

pub mod trial;

use core::arch::{asm, global_asm};
use core::mem::offset_of;

use ::update::takeover::{COMMITTED, Takeover};
use ::update::trial::{Context, FirstFrame, TAKEOVER_PAGE, TrialPage, WORK_STACK};
use bringup::ParkSlot;
use bringup::park::{SLOT_BYTES, word};
use frames::FrameRange;
use paging::{Flags, Host, MapError, TableMemory, Tables};
use units::{PAGE_BYTES, PageSize, PhysAddr, PhysRange};

use super::address::{BOOT_MAPPED_BYTES, DIRECT_MAP, IMAGE, SWITCH_PAGES};
use super::memory::{self, FRAMES};
use super::{apic, cpu, timer};

/// A mailbox and the stack that ends where the next begins.
const STRIDE: u64 = 256;
const CODE_PAGE: u64 = 0;
const DESCRIPTOR_PAGE: u64 = 1;
const TRIAL_IDT_PAGE: u64 = 2;
const FIRST_MAILBOX_PAGE: u64 = TAKEOVER_PAGE + 1;
/// The most page tables that both trees take, while less than 2 MiB are shown: 4 and 11.
const TABLE_PAGES: u64 = 16;
/// Below the new image's slot in its address space, as in the ELF file.
const LINKED_AT: u64 = handover::image::LINKED_AT;

const GDT: [u64; 3] = [0, 0x00af_9b00_0000_ffff, 0x00cf_9300_0000_ffff];
const GDTR_OFFSET: u64 = 32;
const IDTR_OFFSET: u64 = GDTR_OFFSET + 16;
const IDT_OFFSET: u64 = 64;
const NMI_VECTOR: u64 = 2;

global_asm!(
    include_str!("registers.S"),
    include_str!("switch_pages.S"),
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
    tss_type = const trial::TSS_TYPE_OFFSET,
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
    scratch = const offset_of!(TrialPage, scratch),
    verdict = const TAKEOVER_PAGE as usize * PAGE_BYTES as usize + Takeover::VERDICT_OFFSET,
    committed = const COMMITTED,
    gs_base_msr = const super::percpu::MSR_GS_BASE,
    not_global = const !(1_i64 << 7),
);

unsafe extern "C" {
    static switch_start: u8;
    static switch_end: u8;
    static switch_park: u8;
    static switch_leave: u8;
    static switch_nmi: u8;
    static switch_resume: u8;
    static switch_stubs: u8;
    static switch_trial_nmi: u8;
    static switch_trial_check: u8;
}

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
    /// Switch pages for so many CPUs to the image in `slot`. Nobody is on it yet, and no table of this image shows
    /// it.
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
        switch_pages.write_code();
        switch_pages.write_descriptors();
        switch_pages.write_trial_gates();
        let mut pool = TablePool { next: start.0 + shown, end: start.0 + bytes };
        let mut own = Tables::new(&mut pool, PageSize::Kib4)?;
        switch_pages.show_in(&mut own, &mut pool)?;
        let mut next = Tables::new(&mut pool, memory::largest_page())?;
        switch_pages.show_in(&mut next, &mut pool)?;
        let data = Flags::WRITABLE | Flags::NO_EXECUTE;
        next.map(&mut pool, DIRECT_MAP, PhysAddr(0), BOOT_MAPPED_BYTES, data)?;
        next.map(&mut pool, IMAGE + LINKED_AT, slot.start(), slot.bytes(), Flags::WRITABLE)?;
        (switch_pages.own_root, switch_pages.next_root) = (own.root(), next.root());
        Ok(switch_pages)
    }

    /// Makes this image's tables show it. The last thing that can fail.
    pub fn enter_host_tables(&self) -> Result<(), OutOfMemory> {
        memory::with_host_tables(|tables, frames| self.show_in(tables, frames)).ok_or(OutOfMemory)?
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
        // SAFETY: as in `park`; the tables show the new image, whose entry this is.
        unsafe {
            asm!("jmp {code}", code = in(reg) code_at(&raw const switch_leave), in("rdi") record.0,
                in("rsi") self.next_root.0, in("rdx") descriptors(), in("rcx") entry, in("r8") stack, options(noreturn))
        }
    }

    fn shown_bytes(&self) -> u64 {
        shown_bytes(self.mailboxes)
    }

    fn show_in(&self, tables: &mut Tables<Host>, memory: &mut impl TableMemory) -> Result<(), OutOfMemory> {
        let code = CODE_PAGE * PAGE_BYTES;
        let data = DESCRIPTOR_PAGE * PAGE_BYTES;
        tables.map(memory, SWITCH_PAGES + code, PhysAddr(self.start.0 + code), PAGE_BYTES, Flags::empty())?;
        let flags = Flags::WRITABLE | Flags::NO_EXECUTE;
        tables.map(memory, SWITCH_PAGES + data, PhysAddr(self.start.0 + data), self.shown_bytes() - data, flags)?;
        Ok(())
    }

    fn write_code(&mut self) {
        let start = (&raw const switch_start) as usize;
        let bytes = ((&raw const switch_end) as usize - start).min(PAGE_BYTES as usize);
        let into = (DIRECT_MAP + self.start.0 + CODE_PAGE * PAGE_BYTES) as *mut u8;
        // SAFETY: the page is these switch pages' own, and nobody is on it yet.
        unsafe { core::ptr::copy_nonoverlapping(start as *const u8, into, bytes) };
    }

    /// GDT, one gate for the non-maskable interrupt, and what the registers are loaded with.
    fn write_descriptors(&mut self) {
        const PRESENT_INTERRUPT_GATE: u64 = 0x8e00 << 32;
        const CODE_SELECTOR: u64 = 8 << 16;
        let page = DIRECT_MAP + self.start.0 + DESCRIPTOR_PAGE * PAGE_BYTES;
        let handler = code_at(&raw const switch_nmi);
        let gate = (handler & 0xffff) | CODE_SELECTOR | PRESENT_INTERRUPT_GATE | (handler & 0xffff_0000) << 32;
        let nmi = IDT_OFFSET + NMI_VECTOR * 16;
        let idt_limit = (NMI_VECTOR + 1) * 16 - 1;
        let register = |limit: u64, base: u64| [(limit | base << 16), base >> 48];
        let [gdtr, gdtr_end] = register(size_of_val(&GDT) as u64 - 1, descriptors() - GDTR_OFFSET);
        let [idtr, idtr_end] = register(idt_limit, descriptors() - GDTR_OFFSET + IDT_OFFSET);
        let words = [
            (0, GDT[0]),
            (8, GDT[1]),
            (16, GDT[2]),
            (GDTR_OFFSET, gdtr),
            (GDTR_OFFSET + 8, gdtr_end),
            (IDTR_OFFSET, idtr),
            (IDTR_OFFSET + 8, idtr_end),
            (nmi, gate),
            (nmi + 8, handler >> 32),
        ];
        for (offset, word) in words {
            // SAFETY: the page is these switch pages' own, nobody is on it yet, and the offsets are in it, aligned.
            unsafe { ((page + offset) as *mut u64).write(word) };
        }
    }
}

impl Drop for SwitchPages {
    fn drop(&mut self) {
        trial::hide(self.shown_bytes());
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

/// All but the page tables.
fn shown_bytes(mailboxes: u64) -> u64 {
    (first_trial_page(mailboxes) + mailboxes) * PAGE_BYTES
}

/// Behind the mailboxes.
fn first_trial_page(mailboxes: u64) -> u64 {
    FIRST_MAILBOX_PAGE + (mailboxes * STRIDE).div_ceil(PAGE_BYTES)
}

/// Makes this image's tables show the switch pages by which it came: code first, all else data.
pub fn show_inherited(
    tables: &mut Tables<Host>,
    memory: &mut impl TableMemory,
    switch_pages: PhysRange,
) -> Result<(), MapError> {
    let (start, behind) = (switch_pages.start(), PhysAddr(switch_pages.start().0 + PAGE_BYTES));
    tables.map(memory, SWITCH_PAGES, start, PAGE_BYTES, Flags::empty())?;
    let flags = Flags::WRITABLE | Flags::NO_EXECUTE;
    tables.map(memory, SWITCH_PAGES + PAGE_BYTES, behind, switch_pages.bytes() - PAGE_BYTES, flags)
}

fn mailbox_pointer(physical: u64) -> *const ParkSlot {
    (DIRECT_MAP + physical) as *const ParkSlot
}

/// Returns where the copy of a label's code is seen.
fn code_at(label: *const u8) -> u64 {
    SWITCH_PAGES + CODE_PAGE * PAGE_BYTES + (label as u64 - (&raw const switch_start) as u64)
}

/// Returns where the registers' values are seen.
fn descriptors() -> u64 {
    SWITCH_PAGES + DESCRIPTOR_PAGE * PAGE_BYTES + GDTR_OFFSET
}

/// Page tables from a stretch of zeroed frames, one after the other.
struct TablePool {
    next: u64,
    end: u64,
}

impl TableMemory for TablePool {
    fn allocate(&mut self) -> Option<PhysAddr> {
        let table = self.next;
        self.next = table.checked_add(PAGE_BYTES).filter(|next| *next <= self.end)?;
        Some(PhysAddr(table))
    }

    fn read(&self, table: PhysAddr, index: usize) -> u64 {
        memory::TableFrames::anywhere().read(table, index)
    }

    fn write(&mut self, table: PhysAddr, index: usize, value: u64) {
        memory::TableFrames::anywhere().write(table, index, value);
    }

    fn free(&mut self, _: PhysAddr) {}
}

/// The calling CPU's registers that a guest may have left with other values than a CPU has after reset, and
/// that an image expects so.
pub fn forget_guests() {
    const OSXSAVE: u32 = 1 << 27;
    if cpu::cpuid(1, 0).ecx & OSXSAVE != 0 {
        // SAFETY: CR4.OSXSAVE is set; x87 alone is always supported.
        unsafe { cpu::write_xcr0(1) };
    }
}
