// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that an image on trial has: the old image lends them, and whatever happens there brings them back.

use core::arch::asm;
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use ::update::takeover::Takeover;
use ::update::trial::{
    CHECK_SLOT, CHECK_STACK, FIRST_STACK, NMI_SLOT, NMI_STACK, PAGE_BYTES, SPEAK_VECTOR, TAKEOVER_PAGE, TRAP_SLOT,
    TRAP_STACK, TrialPage,
};
use units::PhysRange;

use super::{
    GDT, SWITCH_PAGES, SwitchPages, TRIAL_IDT_PAGE, code_at, first_trial_page, switch_resume, switch_stubs,
    switch_trial_check, switch_trial_nmi,
};
use crate::arch::address::DIRECT_MAP;
use crate::arch::descriptor::{self, InterruptStack};
use crate::arch::trap::TrapFrame;
use crate::arch::{cpu, memory, trap};

/// Of the byte in a page's GDT that states whether the TSS is loaded.
pub const TSS_TYPE_OFFSET: u64 = 24 + 5;
const CODE_SELECTOR: u64 = 8;
const DATA_SELECTOR: u64 = 16;
const TSS_LIMIT: u64 = 103;
const INTERRUPTS_OPEN: u64 = 1 << 9;
/// More than any switch pages have.
const MAXIMUM_BYTES: u64 = 2 << 20;
/// RFLAGS bit 1, which is always set.
const ALWAYS: u64 = 1 << 1;

/// The event that brought a CPU back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// An interrupt, an NMI or a machine check, which is the old image's to handle.
    Interrupt(u8),
    /// The new image states something ([`update::trial::word`]), with an argument.
    Word(u64, u64),
    /// The new image did something that raised an exception.
    Exception(Exception),
}

/// An exception of an image on trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// Its vector.
    pub vector: u8,
    /// Its error code; 0 where there is none.
    pub error_code: u64,
    /// Where.
    pub rip: u64,
    /// CR2.
    pub fault_address: u64,
}

impl SwitchPages {
    /// The calling CPU's page, or another one's.
    pub fn trial_page(&self, index: u32) -> Option<&TrialPage> {
        let at = (DIRECT_MAP + self.trial_page_address(index)) as *const TrialPage;
        // SAFETY: the address is a page of the switch pages, in the direct map, all of it atomic words.
        (u64::from(index) < self.mailboxes).then(|| unsafe { &*at })
    }

    /// Physical address of a CPU's page.
    pub fn trial_page_address(&self, index: u32) -> u64 {
        self.start.0 + trial_page_offset(self.mailboxes, index)
    }

    /// The words by which all switch over or stay.
    pub fn takeover(&self) -> &Takeover {
        // SAFETY: the page is these switch pages' own, in the direct map; all of it is atomic words.
        unsafe { &*((DIRECT_MAP + self.start.0 + TAKEOVER_PAGE * PAGE_BYTES as u64) as *const Takeover) }
    }

    /// Readies the page of the CPU `index`: where its traps lead while a new image has it.
    pub fn prepare_page(&self, index: u32) {
        if let Some(page) = self.trial_page(index) {
            write_descriptors(page, SWITCH_PAGES + trial_page_offset(self.mailboxes, index));
            name_own_stacks(page, index);
            page.reason_bytes.store(0, Relaxed);
            [&page.pending, &page.wait_step, &page.waits, &page.hits].iter().for_each(|word| word.store(0, Relaxed));
            page.stamps.iter().for_each(|stamp| stamp.store(0, Relaxed));
        }
    }

    /// The new image is to begin on the CPU `index` at `entry`, on its first tables, interrupts open, with the
    /// record.
    pub fn begin_trial(&self, index: u32, entry: u64, record: u64) {
        let Some(page) = self.trial_page(index) else { return };
        let at = SWITCH_PAGES + trial_page_offset(self.mailboxes, index);
        let stack = at + FIRST_STACK as u64;
        let far = [entry, CODE_SELECTOR, ALWAYS | INTERRUPTS_OPEN, stack, DATA_SELECTOR];
        write_first(page, at, [record, at], far, self.next_root.0);
    }

    /// Lends the calling CPU, which has this number, to the new image, where that was when it came back last.
    /// Interrupts are masked before and after; one that brings it back waits for [`trap::deliver`].
    pub fn resume_trial(&self, index: u32) -> Option<Return> {
        let page = self.trial_page(index)?;
        let at = SWITCH_PAGES + trial_page_offset(self.mailboxes, index);
        // Of switch pages that were here before nothing may be translated any more.
        memory::flush_translations();
        let vector: u64;
        // SAFETY: this image's tables show the switch pages; the code keeps the registers that the ABI keeps, and comes
        // back on this stack, these tables and this image's GDT, IDT and TSS whatever the new image does, since every
        // trap leads here.
        unsafe {
            asm!("call {code}", code = in(reg) code_at(&raw const switch_resume), inlateout("rdi") at => _,
                out("rax") vector, clobber_abi("sysv64"));
        }
        memory::flush_translations();
        Some(with_pending(
            page,
            match vector as u8 {
                SPEAK_VECTOR => Return::Word(page.cause.word.load(Relaxed), page.cause.argument.load(Relaxed)),
                vector @ (trap::vector::NMI | trap::vector::MACHINE_CHECK | 32..) => Return::Interrupt(vector),
                vector => Return::Exception(Exception {
                    vector,
                    error_code: page.cause.error_code.load(Relaxed),
                    rip: page.cause.rip.load(Relaxed),
                    fault_address: page.cause.fault_address.load(Relaxed),
                }),
            },
        ))
    }

    /// A self-test: the CPU `index` waits at this fault point on its way, for so many ticks each time.
    pub fn wait_at(&self, index: u32, step: u64, ticks: u64) {
        if let Some(page) = self.trial_page(index) {
            page.wait_ticks.store(ticks, Relaxed);
            page.wait_step.store(step, Relaxed);
        }
    }

    /// Every vector leads to its stub, on stacks of the CPU's page. NMI and machine check may come on the way, too.
    pub(super) fn write_trial_gates(&mut self) {
        const PRESENT_INTERRUPT_GATE: u64 = 0x8e00 << 32;
        let gates = (DIRECT_MAP + self.start.0 + TRIAL_IDT_PAGE * PAGE_BYTES as u64) as *mut [u64; 2];
        for vector in 0..256_usize {
            let (handler, slot) = match vector as u8 {
                trap::vector::NMI => (code_at(&raw const switch_trial_nmi), NMI_SLOT),
                trap::vector::MACHINE_CHECK => (code_at(&raw const switch_trial_check), CHECK_SLOT),
                _ => (code_at(&raw const switch_stubs) + vector as u64 * 8, TRAP_SLOT),
            };
            let low = (handler & 0xffff)
                | CODE_SELECTOR << 16
                | (slot as u64) << 32
                | PRESENT_INTERRUPT_GATE
                | (handler & 0xffff_0000) << 32;
            // SAFETY: the page is these switch pages' own, nobody is on it yet, and has room for 256 gates.
            unsafe { gates.add(vector).write([low, handler >> 32]) };
        }
    }
}

/// Serves what came on the way back, and reports it: an NMI that came beside an interrupt is reported last.
fn with_pending(page: &TrialPage, back: Return) -> Return {
    let pending = page.pending.swap(0, Relaxed);
    let has = |vector: u8| pending & 1 << vector != 0;
    if has(trap::vector::MACHINE_CHECK) {
        trap::deliver(trap::vector::MACHINE_CHECK);
    }
    match back {
        Return::Interrupt(vector) if has(trap::vector::NMI) && vector != trap::vector::NMI => {
            trap::deliver(vector);
            Return::Interrupt(trap::vector::NMI)
        }
        // What the new image states, or did wrong, ends its time anyway.
        other => other,
    }
}

/// In the handler of an NMI: counts one that found the calling CPU on its way between two images, under this image's
/// IDT.
pub fn note_nmi(frame: &TrapFrame) {
    let is_on_its_way = (SWITCH_PAGES..SWITCH_PAGES + PAGE_BYTES as u64).contains(&frame.rip);
    // The code is at the page's begin; there RBX is the CPU's page, but for the first and last instructions.
    if let Some(page) = is_on_its_way.then(|| own_page(frame.rbx)).flatten() {
        page.hits.fetch_add(1, Relaxed);
    }
}

/// The stacks for an image's own gates while a page's TSS is loaded: this image's, of the CPU `index`.
pub fn name_own_stacks(page: &TrialPage, index: u32) {
    let Some(stacks) = descriptor::interrupt_stacks(index) else { return };
    for stack in [InterruptStack::Nmi, InterruptStack::MachineCheck] {
        page.set_interrupt_stack(stack as usize + 1, stacks[stack as usize]);
    }
}

/// The host's tables show this many bytes of switch pages no more, if they did.
pub fn hide(bytes: u64) {
    let hidden = memory::with_host_tables(|tables, frames| tables.unmap(frames, SWITCH_PAGES, bytes));
    if hidden.is_some_and(|hidden| hidden.is_ok()) {
        memory::flush_translations();
    }
}

/// A CPU's page as an image on trial sees it; `None` unless it is one that the switch pages can show.
pub fn own_page(at: u64) -> Option<&'static TrialPage> {
    let is_there = (SWITCH_PAGES..SWITCH_PAGES + MAXIMUM_BYTES).contains(&at) && at.is_multiple_of(PAGE_BYTES as u64);
    // SAFETY: an image is informed of such a page only by the old one, which has put it there in both images' tables
    // until the trial is over; all of it is atomic words.
    is_there.then(|| unsafe { &*(at as *const TrialPage) })
}

/// An image on trial states something to the old one, which goes on; returns when the old one lets it.
pub fn speak(word: u64, argument: u64) {
    // SAFETY: the switch pages' gate for this vector leads to the old image, which keeps every register.
    unsafe { asm!("int {vector}", vector = const SPEAK_VECTOR, in("rdi") word, in("rsi") argument) };
}

/// In an image on trial: the CPU whose page is at the physical address `page` is to begin at `entry`, with its
/// number, on this image's tables, interrupts masked. Returns where its page is seen; `None` if it is not in the
/// switch pages.
pub fn let_begin(
    switch_pages: PhysRange,
    page: u64,
    entry: extern "C" fn(u64) -> !,
    index: u32,
    stack_top: u64,
) -> Option<&'static TrialPage> {
    let at = SWITCH_PAGES + page.checked_sub(switch_pages.start().0)?;
    let page = own_page(at)?;
    // As if the entry had been called.
    let far = [entry as usize as u64, CODE_SELECTOR, ALWAYS, stack_top - 8, DATA_SELECTOR];
    write_first(page, at, [u64::from(index), 0], far, memory::host_root());
    Some(page)
}

/// The words by which all switch over or stay, as an image on trial sees them: an image with a page is one.
pub fn inherited_takeover(_: &'static TrialPage) -> &'static Takeover {
    // SAFETY: an image on trial has the switch pages in its tables, and this page with it; all of it is atomic words.
    unsafe { &*((SWITCH_PAGES + TAKEOVER_PAGE * PAGE_BYTES as u64) as *const Takeover) }
}

/// The new image's first registers: RDI and RSI, and what IRETQ takes.
fn write_first(page: &TrialPage, at: u64, [rdi, rsi]: [u64; 2], far: [u64; 5], root: u64) {
    page.first.rdi.store(rdi, Relaxed);
    page.first.others[0].store(rsi, Relaxed);
    page.first.far.iter().zip(far).for_each(|(word, value)| word.store(value, Relaxed));
    page.new.rsp.store(at + offset_of!(TrialPage, first) as u64, Relaxed);
    page.new.root.store(root, Relaxed);
    page.new.cr4.store(cpu::read_cr4(), Relaxed);
    page.new.gs_base.store(0, Relaxed);
}

fn trial_page_offset(mailboxes: u64, index: u32) -> u64 {
    (first_trial_page(mailboxes) + u64::from(index)) * PAGE_BYTES as u64
}

/// Writes a page's GDT, TSS, and what their registers are loaded with; the page is seen at `at`.
fn write_descriptors(page: &TrialPage, at: u64) {
    let tss = at + offset_of!(TrialPage, tss) as u64;
    let [null, code, data] = GDT;
    let low = TSS_LIMIT | (tss & 0xff_ffff) << 16 | 0x89 << 40 | (tss >> 24 & 0xff) << 56;
    let gdt = [null, code, data, low, tss >> 32];
    page.gdt.iter().zip(gdt).for_each(|(word, value)| word.store(value, Relaxed));
    page.tss.iter().for_each(|word| word.store(0, Relaxed));
    for (slot, end) in [(NMI_SLOT, NMI_STACK), (CHECK_SLOT, CHECK_STACK), (TRAP_SLOT, TRAP_STACK)] {
        page.set_interrupt_stack(slot, at + end as u64);
    }
    // The I/O map's offset is at 102.
    page.tss[12].store((TSS_LIMIT + 1) << 48, Relaxed);
    let idt = SWITCH_PAGES + TRIAL_IDT_PAGE * PAGE_BYTES as u64;
    for (register, base, bytes) in [(&page.gdtr, at, size_of_val(&page.gdt) as u64), (&page.idtr, idt, 256 * 16)] {
        register[0].store((bytes - 1) | base << 16, Relaxed);
        register[1].store(base >> 48, Relaxed);
    }
}
