// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each CPU's GDT and TSS (AMD APM vol. 2, sections 4.6 and 12.2).

use core::sync::atomic::{AtomicU64, Ordering};

use spin::Once;
use x86_64::VirtAddr;
use x86_64::instructions::segmentation::{CS, DS, ES, SS, Segment};
use x86_64::instructions::tables::{lgdt, load_tss};
use x86_64::structures::DescriptorTablePointer;
use x86_64::structures::gdt::{Descriptor, SegmentSelector};
use x86_64::structures::tss::TaskStateSegment;

use super::cpu_local::cpu_local;

/// Interrupt stacks by TSS slot; the gate of an exception that must not trust the current stack names one.
#[derive(Clone, Copy)]
#[repr(u16)]
pub enum InterruptStack {
    /// #DF: the stack it came on may be the reason.
    DoubleFault = 0,
    /// NMI.
    Nmi = 1,
    /// #MC.
    MachineCheck = 2,
}

/// The number of interrupt stacks of each CPU.
pub const INTERRUPT_STACKS: usize = 3;

/// Selectors: by the place in the GDT.
const CODE: SegmentSelector = SegmentSelector(8);
const DATA: SegmentSelector = SegmentSelector(0x10);
const TASK: SegmentSelector = SegmentSelector(0x18);
/// 64-bit code and flat data at privilege level 0, present and accessed, so that no load writes to them.
const CODE_DESCRIPTOR: u64 = 0x00af_9b00_0000_ffff;
const DATA_DESCRIPTOR: u64 = 0x00cf_9300_0000_ffff;
/// Of a TSS's descriptor: TR points to it.
const BUSY: u64 = 1 << 41;
const TASK_PLACE: usize = 3;

/// The tables that one CPU's GDTR and TR point into. The CPU itself marks the TSS's descriptor as busy; nothing else
/// changes once they are made, so that an NMI finds its code segment at any time.
struct Tables {
    gdt: [AtomicU64; 5],
    tss: TaskStateSegment,
}

impl Tables {
    /// Fills the GDT. Its descriptor of the TSS has the present address of the TSS.
    fn describe(&'static self) {
        let words = match Descriptor::tss_segment(&self.tss) {
            Descriptor::SystemSegment(low, high) => [0, CODE_DESCRIPTOR, DATA_DESCRIPTOR, low, high],
            Descriptor::UserSegment(_) => unreachable!("a TSS is a system segment"),
        };
        self.gdt.iter().zip(words).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
    }
}

cpu_local! {
    /// The CPU's tables, once it has some; they live for ever.
    static TABLES: Once<Tables> = Once::new();
}

/// Makes the GDT and the TSS of the CPU with this number, unless it has them, with an interrupt stack for each of
/// [`INTERRUPT_STACKS`] from `new_stack`, which returns its top. `false` if there is no such number or no stack. Done
/// by another CPU before this one starts, so that it then waits for no memory.
pub fn prepare(index: u32, mut new_stack: impl FnMut() -> Option<u64>) -> bool {
    let Some(place) = TABLES.of(index) else { return false };
    if place.is_completed() {
        return true;
    }
    let mut stacks = [VirtAddr::zero(); 7];
    for slot in stacks.iter_mut().take(INTERRUPT_STACKS) {
        let Some(top) = new_stack() else { return false };
        *slot = VirtAddr::new(top);
    }
    let mut tss = TaskStateSegment::new();
    tss.interrupt_stack_table = stacks;
    place.call_once(|| Tables { gdt: [const { AtomicU64::new(0) }; 5], tss }).describe();
    true
}

/// The tops of the interrupt stacks of the CPU with this number, by [`InterruptStack`], if they were prepared.
pub fn interrupt_stacks(index: u32) -> Option<[u64; INTERRUPT_STACKS]> {
    let stacks = TABLES.of(index)?.get()?.tss.interrupt_stack_table;
    Some(core::array::from_fn(|slot| stacks[slot].as_u64()))
}

/// Loads the tables of the calling CPU, which has this number, if they were prepared.
pub fn load(index: u32) {
    let Some(tables) = TABLES.of(index).and_then(Once::get) else { return };
    let pointer = DescriptorTablePointer {
        limit: (size_of_val(&tables.gdt) - 1) as u16,
        base: VirtAddr::from_ptr(&raw const tables.gdt),
    };
    // Loading TR wants a TSS that is not busy; this one is if it was loaded before, which changes nothing for a TR that
    // points to it.
    tables.gdt[TASK_PLACE].fetch_and(!BUSY, Ordering::Relaxed);
    // SAFETY: the descriptors are whole since `prepare`, whether GDTR points to them already or not, and live for ever;
    // the code segment is 64-bit like the one that runs now; each CPU has a number and so a TSS of its own.
    unsafe {
        lgdt(&pointer);
        CS::set_reg(CODE);
        SS::set_reg(DATA);
        DS::set_reg(DATA);
        ES::set_reg(DATA);
        load_tss(TASK);
    }
}
