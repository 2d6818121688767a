// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPUs that an image on trial has: the old image lends them, and every event there returns them.

use core::arch::asm;
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use ::update::descriptors::{OWN_CHECK_SLOT, OWN_NMI_SLOT, OwnStacks, Placement};
use ::update::takeover::Takeover;
use ::update::trial::{
    CHECK_SLOT, FIRST_STACK, NMI_SLOT, PAGE_BYTES, SPEAK_VECTOR, TAKEOVER_PAGE, TRAP_SLOT, TrialPage,
};
use units::PhysRange;

use super::SwitchPages;
use super::code::{code_at, switch_resume, switch_stubs, switch_trial_check, switch_trial_nmi};
use super::descriptors::GDT;
use super::layout::{TRIAL_IDT_PAGE, first_trial_page};
pub use super::pages::own_page;
use crate::arch::address::{DIRECT_MAP, SWITCH_PAGES};
use crate::arch::descriptor::{self, InterruptStack};
use crate::arch::{cpu, memory, trap};

const CODE_SELECTOR: u64 = 8;
const DATA_SELECTOR: u64 = 16;
const INTERRUPTS_OPEN: u64 = 1 << 9;
/// RFLAGS bit 1, which is always set.
const ALWAYS: u64 = 1 << 1;
// The slots that this image's gates name.
const _: () = assert!(InterruptStack::Nmi as usize + 1 == OWN_NMI_SLOT);
const _: () = assert!(InterruptStack::MachineCheck as usize + 1 == OWN_CHECK_SLOT);

/// The event that returned a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// An interrupt, an NMI or a machine check, which is the old image's to handle.
    Interrupt(u8),
    /// A word of the new image ([`update::trial::word`]), with an argument.
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
    /// Its RIP.
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
            let at = SWITCH_PAGES + trial_page_offset(self.mailboxes, index);
            let idt = SWITCH_PAGES + TRIAL_IDT_PAGE * PAGE_BYTES as u64;
            page.prepare(&Placement { page: at, idt, gdt: GDT }, own_stacks(index));
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
    /// Interrupts are masked before and after; one that returns the CPU waits for [`trap::deliver`].
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
            // SAFETY: the page is these switch pages' own, no CPU is on it yet, and it has room for 256 gates.
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
        // The new image's word, or its fault, ends its time anyway.
        other => other,
    }
}

/// Names this image's stacks of the CPU `index` for its own gates while a page's TSS is loaded.
pub fn name_own_stacks(page: &TrialPage, index: u32) {
    own_stacks(index).into_iter().for_each(|own| page.name_own_stacks(own));
}

fn own_stacks(index: u32) -> Option<OwnStacks> {
    let stacks = descriptor::interrupt_stacks(index)?;
    let top = |stack: InterruptStack| stacks[stack as usize];
    Some(OwnStacks { nmi: top(InterruptStack::Nmi), machine_check: top(InterruptStack::MachineCheck) })
}

/// Sends a word from an image on trial to the old one, which goes on; returns when the old one lets it.
pub fn speak(word: u64, argument: u64) {
    // SAFETY: the switch pages' gate for this vector leads to the old image, which keeps every register.
    unsafe { asm!("int {vector}", vector = const SPEAK_VECTOR, in("rdi") word, in("rsi") argument) };
}

/// In an image on trial: lets the CPU with its page at the physical address `page` begin at `entry`, with its number,
/// on this image's tables, interrupts masked. Returns where its page is seen; `None` if it is not in the switch pages.
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
