// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each processor's GDT and TSS (AMD APM vol. 2, sections 4.6 and 12.2).

use alloc::boxed::Box;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use x86_64::VirtAddr;
use x86_64::instructions::segmentation::{CS, DS, ES, SS, Segment};
use x86_64::instructions::tables::load_tss;
use x86_64::structures::gdt::{Descriptor, GlobalDescriptorTable, SegmentSelector};
use x86_64::structures::tss::TaskStateSegment;

use super::percpu::MAX_PROCESSORS;

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

/// How many interrupt stacks each processor has.
pub const INTERRUPT_STACKS: usize = 3;

/// What one processor's GDTR and TR point into.
struct Tables {
    gdt: GlobalDescriptorTable<8>,
    code: SegmentSelector,
    data: SegmentSelector,
    task: SegmentSelector,
    tss: TaskStateSegment,
    /// The TSS's descriptor is marked as busy, which it must not be when it is loaded.
    is_busy: bool,
}

impl Tables {
    fn new(tss: TaskStateSegment) -> Self {
        let [code, data, task] = [SegmentSelector::NULL; 3];
        Self { gdt: GlobalDescriptorTable::empty(), code, data, task, tss, is_busy: false }
    }

    /// Writes the descriptors, once the TSS is where it stays.
    fn describe(&mut self) {
        self.gdt = GlobalDescriptorTable::empty();
        self.code = self.gdt.append(Descriptor::kernel_code_segment());
        self.data = self.gdt.append(Descriptor::kernel_data_segment());
        // SAFETY: of what these functions are for: the TSS is beside its descriptor, and lives as long.
        self.task = self.gdt.append(unsafe { Descriptor::tss_segment_unchecked(&raw const self.tss) });
        self.is_busy = false;
    }
}

/// Each processor's tables, once it has some; they live for ever.
static TABLES: [AtomicPtr<Tables>; MAX_PROCESSORS] = [const { AtomicPtr::new(ptr::null_mut()) }; MAX_PROCESSORS];

/// Makes the GDT and the TSS of the processor with this number, unless it has them, with an interrupt stack for each of
/// [`INTERRUPT_STACKS`] from `new_stack`, which returns its top. `false` if there is no such number or no stack. Done by
/// another processor before this one starts, so that it then waits for no memory.
pub fn prepare(index: u32, mut new_stack: impl FnMut() -> Option<u64>) -> bool {
    let Some(place) = TABLES.get(index as usize) else { return false };
    if !place.load(Ordering::Acquire).is_null() {
        return true;
    }
    let mut stacks = [VirtAddr::zero(); 7];
    for slot in stacks.iter_mut().take(INTERRUPT_STACKS) {
        let Some(top) = new_stack() else { return false };
        *slot = VirtAddr::new(top);
    }
    let mut tss = TaskStateSegment::new();
    tss.interrupt_stack_table = stacks;
    let tables = Box::leak(Box::new(Tables::new(tss)));
    tables.describe();
    place.store(tables, Ordering::Release);
    true
}

/// Loads the tables of the calling processor, which has this number, if they were prepared.
pub fn load(index: u32) {
    let Some(tables) = TABLES.get(index as usize).map(|place| place.load(Ordering::Acquire)) else { return };
    if tables.is_null() {
        return;
    }
    // SAFETY: made by `prepare`, never freed; from there on only the calling processor uses this place, and none of its
    // registers points into the tables now: it has just been reset, or has just had them made.
    let tables: &'static mut Tables = unsafe { &mut *tables };
    if tables.is_busy {
        tables.describe();
    }
    tables.is_busy = true;
    tables.gdt.load();
    // SAFETY: the selectors were made for these descriptors, which live for ever; the code segment is 64-bit like the
    // one that runs now, the TSS is used by no other processor.
    unsafe {
        CS::set_reg(tables.code);
        SS::set_reg(tables.data);
        DS::set_reg(tables.data);
        ES::set_reg(tables.data);
        load_tss(tables.task);
    }
}
