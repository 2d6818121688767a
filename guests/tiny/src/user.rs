// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions at privilege level 3 (AMD APM vol. 2, sections 4.8 and 8.9), for the first CPU.
//!
//! Whatever ends them is an exception, which comes to level 0 on the task state segment's stack and ends the attempt
//! under way.

use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicU64, Ordering};

use crate::attempt::{Exception, INVALID_OPCODE, attempt};
use crate::boot::{tiny_page_directories, tiny_page_pointers, tiny_page_root};

const DATA: u16 = 0x10;
const TASK: u16 = 0x28;
const STACK_BYTES: usize = 4096;
/// A page table's entry: level 3 may use what is below.
const USER: u64 = 1 << 2;
/// Pages of 2 MiB that the program lies in.
const PAGES: usize = 8;
/// Of the level 0 stack's pointer in the task state segment, in words of 32 bits.
const STACK_POINTER_AT: usize = 1;
/// Likewise, of the first pointer in its interrupt stack table.
const INTERRUPT_STACK_AT: usize = 9;

global_asm!(
    r#"
    .text
    // tiny_user_rdpmc(counter, stack): never comes back but by an exception; #UD when it has read the counter.
    .global tiny_user_rdpmc
tiny_user_rdpmc:
    mov ecx, edi
    lea rax, [rip + 7f]
    push 0x18 | 3               // SS
    push rsi                    // RSP
    push 0x2                    // RFLAGS: interrupts off
    push 0x20 | 3               // CS
    push rax                    // RIP
    iretq
7:  rdpmc
    mov dword ptr [rip + {value}], eax
    mov dword ptr [rip + {value} + 4], edx
    ud2
    "#,
    value = sym VALUE,
);

unsafe extern "C" {
    fn tiny_user_rdpmc(counter: u32, stack: u64) -> !;
}

/// Value that was read.
static VALUE: AtomicU64 = AtomicU64::new(0);

#[repr(C, align(16))]
struct Stack([u8; STACK_BYTES]);
static mut USER_STACK: Stack = Stack([0; STACK_BYTES]);
static mut KERNEL_STACK: Stack = Stack([0; STACK_BYTES]);
static mut INTERRUPT_STACK: Stack = Stack([0; STACK_BYTES]);
/// The task state segment (AMD APM vol. 2, section 12.2.5): of interest is the stack for exceptions at level 3.
static mut TASK_STATE: [u32; 26] = [0; 26];
/// None, code and data of level 0 as at boot, data and code of level 3, the task state segment's two words.
static mut DESCRIPTORS: [u64; 7] =
    [0, 0x00af_9b00_0000_ffff, 0x00cf_9300_0000_ffff, 0x00cf_f300_0000_ffff, 0x00af_fb00_0000_ffff, 0, 0];

/// Level 3 may touch the program from now on, and exceptions there have a stack.
pub fn allow() {
    let limit = (size_of::<[u32; 26]>() - 1) as u64;
    let (task, stack) = (&raw const TASK_STATE as u64, top(&raw const KERNEL_STACK));
    let low = limit | (task & 0xff_ffff) << 16 | 0x89 << 40 | (task >> 24 & 0xff) << 56;
    // SAFETY: one CPU, interrupts off: no other code reads these tables, and no reference to them exists. The
    // descriptors that are loaded already stay as they are. Nothing more of the first pages can break than the program
    // itself may.
    unsafe {
        let task_state = (&raw mut TASK_STATE).cast::<u32>();
        task_state.add(STACK_POINTER_AT).write(stack as u32);
        task_state.add(STACK_POINTER_AT + 1).write((stack >> 32) as u32);
        task_state.add(INTERRUPT_STACK_AT).write(interrupt_stack_top() as u32);
        task_state.add(INTERRUPT_STACK_AT + 1).write((interrupt_stack_top() >> 32) as u32);
        let descriptors = (&raw mut DESCRIPTORS).cast::<u64>();
        descriptors.add(5).write(low);
        descriptors.add(6).write(task >> 32);
        let root = (&raw mut tiny_page_root).cast::<u64>();
        let pointers = (&raw mut tiny_page_pointers).cast::<u64>();
        root.write(root.read() | USER);
        pointers.write(pointers.read() | USER);
        let pages = (&raw mut tiny_page_directories).cast::<u64>();
        (0..PAGES).for_each(|page| pages.add(page).write(pages.add(page).read() | USER));
    }
    load_tables();
}

/// Returns where the stack begins that a vector has after [`crate::interrupts::use_interrupt_stack`].
pub fn interrupt_stack_top() -> u64 {
    top(&raw const INTERRUPT_STACK)
}

fn load_tables() {
    let mut pointer = [0_u8; 10];
    pointer[..2].copy_from_slice(&((size_of::<[u64; 7]>() - 1) as u16).to_le_bytes());
    pointer[2..].copy_from_slice(&(&raw const DESCRIPTORS as u64).to_le_bytes());
    // SAFETY: the table has the descriptors in use at their places; the root of the page tables is the one in force,
    // with entries that allow more than before.
    unsafe {
        asm!(
            "lgdt [{pointer}]",
            "ltr {task:x}",
            "mov {root}, cr3",
            "mov cr3, {root}",
            pointer = in(reg) pointer.as_ptr(),
            task = in(reg) TASK,
            root = out(reg) _,
            options(nostack, preserves_flags)
        );
    }
}

/// RDPMC at level 3, after [`allow`]: the counter's value, or the exception that came instead.
pub fn read_counter(counter: u32) -> Result<u64, Exception> {
    // SAFETY: no other code uses the stack; the attempt takes the way back from the exception.
    let ended = attempt(|| unsafe { tiny_user_rdpmc(counter, top(&raw const USER_STACK)) });
    // SAFETY: level 0's data segment; an exception from level 3 leaves none in SS.
    unsafe { asm!("mov ss, {:x}", in(reg) DATA, options(nostack, preserves_flags)) };
    match ended {
        Err(exception) if exception.vector == INVALID_OPCODE => Ok(VALUE.load(Ordering::Relaxed)),
        Err(exception) => Err(exception),
        Ok(never) => never,
    }
}

fn top(stack: *const Stack) -> u64 {
    stack.wrapping_add(1) as u64
}
