// SPDX-License-Identifier: MIT OR Apache-2.0
//! More CPUs than one: waking them by INIT and start-up interrupts, and giving them work (Intel SDM vol. 3,
//! section
//! 9.4; AMD APM vol. 2, section 14.1.5).
//!
//! A CPU's number is its local APIC's identifier; the first one's is 0. The others share the first one's page
//! tables, descriptor tables and handlers, have a stack each, and sleep until [`give`] hands them a function.
//!
//! Attempts (`attempt.rs`) are for the first CPU only: there is one place to go back to.

use core::arch::{asm, global_asm};
use core::hint::spin_loop;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::{apic, cpu, interrupts};

/// CPUs there is room for.
pub const MOST: usize = 16;
/// The page that others start in: below 64 KiB, and unused (a Multiboot loader's structures are elsewhere).
const START_PAGE: u64 = 0x3000;
const STACK_BYTES: usize = 16 * 1024;
/// The interrupt that ends a CPU's sleep.
const WAKE_VECTOR: u8 = 0x30;
/// Longest wait for another CPU, in polls.
pub const PATIENCE: u32 = 50_000_000;

global_asm!(
    r#"
    .text
    .code16
    .global tiny_other_start, tiny_other_start_end
tiny_other_start:
    cli
    cld
    xor ax, ax
    mov ds, ax
    mov eax, 0x20               // CR4.PAE
    mov cr4, eax
    mov eax, offset tiny_page_root
    mov cr3, eax
    mov ecx, 0xc0000080         // EFER
    rdmsr
    or eax, 0x100               // EFER.LME
    wrmsr
    mov ebx, offset tiny_other_gdt
    sub ebx, offset tiny_other_start
    lgdt [ebx + {start_page}]
    mov eax, 0x80010011         // CR0.PG, CR0.WP, CR0.ET, CR0.PE: from real mode to long mode in one step
    mov cr0, eax
    .byte 0x66, 0xea            // far jump
    .long tiny_other_long_mode
    .word 0x08
tiny_other_gdt:
    .word 23
    .long tiny_gdt
tiny_other_start_end:

    .code64
tiny_other_long_mode:
    mov eax, 0x10
    mov ds, eax
    mov es, eax
    mov ss, eax
    mov eax, 1
    cpuid
    shr ebx, 24                 // the APIC's identifier
    and ebx, {most} - 1
    mov edi, ebx
    inc ebx
    imul ebx, ebx, {stack_bytes}
    lea rsp, [rip + {stacks}]
    add rsp, rbx
    call {main}
    ud2
    "#,
    start_page = const START_PAGE,
    most = const MOST,
    stack_bytes = const STACK_BYTES,
    stacks = sym STACKS,
    main = sym main_of_other,
);

unsafe extern "C" {
    static tiny_other_start: u8;
    static tiny_other_start_end: u8;
}

#[repr(C, align(16))]
struct Stacks([[u8; STACK_BYTES]; MOST]);
static mut STACKS: Stacks = Stacks([[0; STACK_BYTES]; MOST]);

/// Work of each CPU: the address of a `fn(usize)`, or 0.
static WORK: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
/// Number of starts of each.
static STARTS: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];

/// The number of the calling CPU, by the stack it is on.
#[inline]
pub fn current() -> usize {
    let pointer: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    let place = pointer.wrapping_sub(&raw const STACKS as usize) / STACK_BYTES;
    if place < MOST { place } else { 0 }
}

/// Returns how often a CPU has started.
pub fn starts(cpu: usize) -> u32 {
    STARTS[cpu].load(Ordering::Acquire)
}

/// Puts the code in place that others start with. Before any start-up interrupt.
pub fn prepare() {
    let (start, end) = (&raw const tiny_other_start, &raw const tiny_other_start_end);
    // SAFETY: the page is unused, all of the first 4 GiB is mapped, and the code is shorter than a page.
    unsafe { ptr::copy_nonoverlapping(start, START_PAGE as *mut u8, end as usize - start as usize) };
}

/// Sends INIT and one start-up interrupt to a CPU.
pub fn wake(cpu: usize) {
    send_init(cpu);
    send_startup(cpu);
}

/// Sends INIT: the CPU waits for a start-up interrupt from then on.
pub fn send_init(cpu: usize) {
    apic::send(cpu as u32, apic::INIT);
}

/// Sends a start-up interrupt, which a CPU heeds that waits for one.
pub fn send_startup(cpu: usize) {
    apic::send(cpu as u32, apic::STARTUP | (START_PAGE >> 12) as u32);
}

/// Starts CPUs 1 to `count` less one, whatever they did before; returns whether all came.
pub fn start(count: usize) -> bool {
    prepare();
    (1..count).all(|cpu| {
        let before = starts(cpu);
        WORK[cpu].store(0, Ordering::Release);
        wake(cpu);
        wait_until(|| starts(cpu) != before)
    })
}

/// Gives a CPU that sleeps something to do; the function gets its number.
pub fn give(cpu: usize, work: fn(usize)) {
    WORK[cpu].store(work as usize, Ordering::Release);
    apic::send(cpu as u32, WAKE_VECTOR.into());
}

/// Returns whether a CPU has done what it was given.
pub fn is_done(cpu: usize) -> bool {
    WORK[cpu].load(Ordering::Acquire) == 0
}

/// Waits for something that other CPUs do; returns whether it came.
pub fn wait_until(is_there: impl Fn() -> bool) -> bool {
    (0..PATIENCE).any(|_| {
        spin_loop();
        is_there()
    })
}

extern "C" fn main_of_other(number: u32) -> ! {
    let number = number as usize;
    interrupts::load_table();
    apic::enable_here();
    STARTS[number].fetch_add(1, Ordering::Release);
    loop {
        // Interrupts are off: a wake-up that comes after this check ends the sleep.
        match WORK[number].load(Ordering::Acquire) {
            0 => cpu::sleep_until_interrupt(),
            work => {
                // SAFETY: only `give` stores anything but 0, and it stores a function of this type.
                let work: fn(usize) = unsafe { core::mem::transmute(work) };
                work(number);
                WORK[number].store(0, Ordering::Release);
            }
        }
    }
}
