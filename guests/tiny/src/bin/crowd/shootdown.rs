// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page is mapped elsewhere, and every CPU notified: none sees the old one any more (AMD APM vol. 2,
//! section 5.5.2).

use core::arch::asm;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tiny::boot::tiny_page_directories;
use tiny::interrupts::{count, hook};
use tiny::{apic, cpu, smp};

use crate::answers::{Wrong, expect};

const ROUNDS: u32 = 300;
const VECTOR: u8 = 0x61;
const SHORTHAND_OTHERS: u32 = 3 << 18;
const LARGE_PAGE: u64 = 2 << 20;
const PRESENT_WRITABLE_LARGE: u64 = 0x83;
/// The address that changes its page, and the two pages: all behind the program, below 16 MiB.
const WINDOW: u64 = 3 * LARGE_PAGE;
const PAGES: [u64; 2] = [4 * LARGE_PAGE, 5 * LARGE_PAGE];

/// The round that all others have been ordered to be in; the last one ends them.
static ROUND: AtomicU32 = AtomicU32::new(0);
static OLD_SEEN: AtomicU32 = AtomicU32::new(0);
static CHECKS: AtomicU32 = AtomicU32::new(0);
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// In round after round the window shows the other page, whose content is the round's number.
pub fn no_cpu_sees_the_old_page(cpus: usize) -> Result<(), Wrong> {
    show(PAGES[0]);
    cpu::write_memory(PAGES[0], 0);
    hook(VECTOR, |_| invalidate());
    (1..cpus).for_each(|at| smp::give(at, check_window));
    for round in 1..=ROUNDS {
        let page = PAGES[round as usize % 2];
        cpu::write_memory(page, round);
        show(page);
        // Every other CPU has invalidated before it is expected to see this round.
        let before = count(VECTOR);
        if cpus > 1 {
            apic::send(0, SHORTHAND_OTHERS | u32::from(VECTOR));
        }
        let notified = smp::wait_until(|| count(VECTOR) - before == cpus as u32 - 1);
        expect("CPUs notified in round", round.into(), notified.into(), 1)?;
        ROUND.store(round, Ordering::Release);
        expect("own check in round", round.into(), cpu::read_memory(WINDOW).into(), round.into())?;
        let checks = CHECKS.load(Ordering::Acquire);
        smp::wait_until(|| cpus == 1 || CHECKS.load(Ordering::Acquire) != checks);
    }
    IS_OVER.store(true, Ordering::Release);
    let ended = smp::wait_until(|| (1..cpus).all(smp::is_done));
    expect("CPUs that ended of", cpus as u64, ended.into(), 1)?;
    show(WINDOW);
    expect("checks an old page of", CHECKS.load(Ordering::Acquire).into(), OLD_SEEN.load(Ordering::Acquire).into(), 0)
}

/// Another CPU's part: whatever it sees is of the round that was reported, or later.
fn check_window(_at: usize) {
    cpu::interrupts_on();
    while !IS_OVER.load(Ordering::Acquire) {
        let round = ROUND.load(Ordering::Acquire);
        if cpu::read_memory(WINDOW) < round {
            OLD_SEEN.fetch_add(1, Ordering::AcqRel);
        }
        CHECKS.fetch_add(1, Ordering::AcqRel);
        spin_loop();
    }
    cpu::interrupts_off();
    invalidate();
}

fn show(page: u64) {
    let entry = (WINDOW / LARGE_PAGE) as usize;
    // SAFETY: the table is only ever accessed through raw pointers, and the window holds nothing of Rust's.
    unsafe {
        (&raw mut tiny_page_directories).cast::<u64>().add(entry).write_volatile(page | PRESENT_WRITABLE_LARGE);
    }
    invalidate();
}

fn invalidate() {
    // SAFETY: flushes a translation.
    unsafe { asm!("invlpg [{}]", in(reg) WINDOW, options(nostack, preserves_flags)) };
}
