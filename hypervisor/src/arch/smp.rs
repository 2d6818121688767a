// SPDX-License-Identifier: MIT OR Apache-2.0
//! Waking the other CPUs. `bringup` decides which CPU is woken when, and how long each waits; here are the interrupts,
//! the page in which CPUs start, and their stacks.

mod machine;
mod parked;

use core::arch::global_asm;
use core::fmt;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};

use units::{PAGE_BYTES, PageSize, PhysAddr};

pub use self::machine::{Machine, is_virtual, tsc_adjust};
pub use self::parked::{Adoption, adopt, is_adopting};
use super::address::DIRECT_MAP;
use super::cpu_local::{FIRST_AREA, HEAD, Head, OTHERS};
use super::memory::{self, FRAMES};
use super::{apic, boot, cpu, stack, timer, trap};

global_asm!(
    include_str!("smp.S"),
    root = sym ROOT,
    areas = sym FIRST_AREA,
    count = sym OTHERS,
    apic_id = const offset_of!(Head, apic_id),
    stack_top = const offset_of!(Head, stack_top),
    entry = sym ap_entry
);

unsafe extern "C" {
    static ap_trampoline_start: u8;
    static ap_trampoline_end: u8;
    static ap_trampoline_gdt_base: u8;
    static ap_trampoline_root: u8;
    static ap_trampoline_jump: u8;
}

/// Page tables of CPUs that start.
static ROOT: AtomicU64 = AtomicU64::new(0);
/// The function that a started CPU goes on with.
static ENTRY: spin::Once<fn() -> !> = spin::Once::new();

/// No memory for stacks, or none below 1 MiB for CPUs' first steps.
#[derive(Clone, Copy, Debug)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no memory for their stacks, or none below 1 MiB for their first steps: give the machine more")
    }
}

/// Prepares the start of the CPUs with these identifiers, before the first is woken: the start-up code in a page below
/// 1 MiB. Returns the page's number. They will go on with `entry`. Each also needs [`give_stack`].
pub fn prepare(ids: &[u32], entry: fn() -> !) -> Result<u8, OutOfMemory> {
    ENTRY.call_once(|| entry);
    ROOT.store(memory::host_root(), Ordering::Release);
    for ((_, head), id) in HEAD.all().zip(ids) {
        head.apic_id.store(*id, Ordering::Release);
    }
    let frames = FRAMES.lock().allocate_below(PAGE_BYTES, PageSize::Kib4, PhysAddr(0x10_0000));
    let page = frames.map_err(|_| OutOfMemory)?.leak().start();
    write_trampoline(page);
    Ok((page.0 / PAGE_BYTES) as u8)
}

/// Gives the CPU `index` its stack, unless it has one: it may start. The stack stays the CPU's: one that comes after it
/// was given up harms no other, one that leaves and comes back finds it.
pub fn give_stack(index: u32) -> Result<(), OutOfMemory> {
    let place = &HEAD.of(index).ok_or(OutOfMemory)?.stack_top;
    if place.load(Ordering::Acquire) == 0 {
        place.store(stack::new_stack().map_err(|_| OutOfMemory)?, Ordering::Release);
    }
    Ok(())
}

/// The top of the stack that the CPU with this number was given; 0 if it has none.
pub fn stack_of(index: u32) -> u64 {
    HEAD.of(index).map_or(0, |head| head.stack_top.load(Ordering::Acquire))
}

/// Copies the start-up code to its page, and writes into it where it lies and where the boot page tables are.
fn write_trampoline(page: PhysAddr) {
    let start = (&raw const ap_trampoline_start) as usize;
    let bytes = (&raw const ap_trampoline_end) as usize - start;
    let into = (DIRECT_MAP + page.0) as *mut u8;
    let words = [
        ((&raw const ap_trampoline_gdt_base) as usize, page.0 as u32),
        ((&raw const ap_trampoline_jump) as usize, page.0 as u32),
        ((&raw const ap_trampoline_root) as usize, boot::root() as u32),
    ];
    // SAFETY: the frame was just allocated, the code is shorter than a page, and the three words are in it.
    unsafe {
        core::ptr::copy_nonoverlapping(start as *const u8, into, bytes.min(PAGE_BYTES as usize));
        for (label, addend) in words {
            let word = into.add(label - start).cast::<u32>();
            word.write_unaligned(word.read_unaligned().wrapping_add(addend));
        }
    }
}

extern "C" fn ap_entry() -> ! {
    trap::load();
    memory::protect_this_cpu();
    apic::enable();
    match ENTRY.get() {
        Some(entry) => entry(),
        None => cpu::halt_forever(),
    }
}

/// Sends INIT to all others before anything is prepared for them, so that whatever delay it needs passes meanwhile;
/// returns when that was. They run nothing of ours yet, and whatever they ran, this ends it.
pub fn reset_others() -> Option<u64> {
    apic::broadcast_init_at_boot().then(cpu::tsc)
}

/// The calling CPU's clock, as `bringup` and reports count it.
pub fn ticks_to_us(ticks: u64) -> u64 {
    timer::ticks_to_ns(ticks) / 1000
}
