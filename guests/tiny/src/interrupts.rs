// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exceptions and interrupts.
//!
//! Interrupts (vectors 32 and up, and NMI) are counted and acknowledged. An exception ends the attempt it happened in
//! ([`attempt`]); outside an attempt it is reported, and ends the guest.
//!
//! Every vector's stub is one CALL, 16 bytes from the next: the address it pushes identifies the vector.

use crate::attempt::{self, Exception};
use crate::cpu::outb;
use crate::end::{Verdict, end};
use crate::smp::{self, MOST};
use crate::{apic, print};
use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::mem::size_of;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The vector whose handler is as short as can be, for timing (x2APIC mode only).
pub const TIMED_VECTOR: u8 = 0xf0;
const NON_MASKABLE: usize = 2;
const FIRST_INTERRUPT: usize = 32;
/// Exceptions that push an error code (AMD APM vol. 2, section 8.2): #DF, #TS, #NP, #SS, #GP, #PF, #AC, #CP, #VC, #SX.
const WITH_ERROR_CODE: u32 = 1 << 8 | 0x1f << 10 | 1 << 17 | 1 << 21 | 3 << 29;

global_asm!(
    r#"
    .text
    .global tiny_vectors, tiny_timed_vector
    .balign 16
tiny_vectors:
    .rept 256
    call tiny_vector_common
    .balign 16
    .endr

tiny_vector_common:
    push rax
    push rcx
    push rdx
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    push rbx
    mov rdi, [rsp + 80]         // behind the CALL of the vector's stub
    lea rsi, [rsp + 88]         // what the CPU pushed
    mov rbx, rsp
    and rsp, -16
    cld
    call tiny_interrupt
    mov rsp, rbx
    pop rbx
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    pop rax
    add rsp, 8
    iretq

    // The timed handler: acknowledges, notes that it ran, returns.
    .balign 16
tiny_timed_vector:
    push rax
    push rcx
    push rdx
    mov ecx, 0x80b              // x2APIC end of interrupt
    xor eax, eax
    xor edx, edx
    wrmsr
    mov dword ptr [rip + {timed}], 1
    pop rdx
    pop rcx
    pop rax
    iretq
    "#,
    timed = sym TIMED_RAN,
);

unsafe extern "C" {
    static tiny_vectors: u8;
    static tiny_timed_vector: u8;
}

/// 1 once the timed handler ran.
pub static TIMED_RAN: AtomicU32 = AtomicU32::new(0);
/// By CPU and vector.
static COUNTS: [[AtomicU32; 256]; MOST] = [const { [const { AtomicU32::new(0) }; 256] }; MOST];
/// By vector: the address of a `fn(u64)`, or 0.
static HOOKS: [AtomicUsize; 256] = [const { AtomicUsize::new(0) }; 256];

#[repr(C, align(16))]
struct Table(UnsafeCell<[[u64; 2]; 256]>);
// SAFETY: written by the first CPU alone, before interrupts are on and before the others start.
unsafe impl Sync for Table {}
static TABLE: Table = Table(UnsafeCell::new([[0; 2]; 256]));

/// Loads the interrupt descriptor table, and masks the two 8259s of a machine that has them: their vectors after reset
/// are those of exceptions.
pub fn install() {
    [0x21, 0xa1].into_iter().for_each(|mask| outb(mask, 0xff));
    let stubs = &raw const tiny_vectors as u64;
    let table = TABLE.0.get();
    for vector in 0..256 {
        // SAFETY: one CPU, interrupts off: no other code reads the table; the index is below its length.
        unsafe { (*table)[vector] = gate(stubs + 16 * vector as u64) };
    }
    load_table();
}

/// Loads the interrupt descriptor table on the calling CPU.
pub fn load_table() {
    load(TABLE.0.get() as u64, (size_of::<Table>() - 1) as u16);
}

/// Calls a function with the address that was interrupted whenever this vector comes, on whatever CPU. An
/// exception without an error code is over with that.
pub fn hook(vector: u8, function: fn(u64)) {
    HOOKS[vector as usize].store(function as usize, Ordering::Release);
}

/// Gives [`TIMED_VECTOR`] its short handler, which knows x2APIC mode only.
pub fn install_timed() {
    // SAFETY: one CPU, and called with interrupts off: no other code reads the table.
    unsafe { (*TABLE.0.get())[TIMED_VECTOR as usize] = gate(&raw const tiny_timed_vector as u64) };
}

/// The address of a vector's handler.
pub fn handler(vector: u8) -> u64 {
    &raw const tiny_vectors as u64 + 16 * u64::from(vector)
}

/// Gives a vector the first stack of the task state segment's interrupt stack table (AMD APM vol. 2, section 8.9.4),
/// which [`crate::user::allow`] has set up.
pub fn use_interrupt_stack(vector: u8) {
    // SAFETY: one CPU, and called with interrupts off: no other code reads the table.
    unsafe { (*TABLE.0.get())[vector as usize][0] |= 1 << 32 };
}

/// Makes a vector's gate absent, or present again.
pub fn flip_present(vector: u8) {
    // SAFETY: as in `use_interrupt_stack`.
    unsafe { (*TABLE.0.get())[vector as usize][0] ^= 1 << 47 };
}

/// Loads a descriptor table register with an address and a limit.
pub fn load(address: u64, limit: u16) {
    let mut pointer = [0_u8; 10];
    pointer[..2].copy_from_slice(&limit.to_le_bytes());
    pointer[2..].copy_from_slice(&address.to_le_bytes());
    // SAFETY: reads the ten bytes only; what the table does to the guest is the caller's wish.
    unsafe { asm!("lidt [{}]", in(reg) pointer.as_ptr(), options(readonly, nostack, preserves_flags)) };
}

/// An interrupt gate to a handler in the code segment 0x08 (AMD APM vol. 2, section 4.8.4).
fn gate(handler: u64) -> [u64; 2] {
    [handler & 0xffff | 0x08 << 16 | 0x8e00 << 32 | (handler >> 16 & 0xffff) << 48, handler >> 32]
}

/// Returns how often a vector's interrupt came, to whatever CPU.
pub fn count(vector: u8) -> u32 {
    (0..MOST).map(|cpu| count_of(cpu, vector)).sum()
}

/// Returns how often a vector's interrupt came to this CPU.
pub fn count_of(cpu: usize, vector: u8) -> u32 {
    COUNTS[cpu][vector as usize].load(Ordering::Relaxed)
}

/// Called by every stub with the address behind its CALL and what the CPU pushed.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
extern "C" fn tiny_interrupt(behind_call: u64, pushed: *const u64) {
    let vector = (behind_call - &raw const tiny_vectors as u64) as usize / 16;
    let has_error_code = vector < FIRST_INTERRUPT && WITH_ERROR_CODE & 1 << vector != 0;
    // SAFETY: the CPU pushed RIP, CS, RFLAGS, RSP and SS, after an error code where the vector has one.
    let (error, rip) =
        unsafe { if has_error_code { (pushed.read(), pushed.add(1).read()) } else { (0, pushed.read()) } };
    let is_hooked = call_hook(vector, rip) && !has_error_code;
    if is_hooked && vector < FIRST_INTERRUPT && vector != NON_MASKABLE {
        return;
    }
    if vector >= FIRST_INTERRUPT || vector == NON_MASKABLE {
        COUNTS[smp::current()][vector].fetch_add(1, Ordering::Relaxed);
        // A spurious interrupt wants no end, but one does no harm: handlers are never interrupted, so nothing else that
        // it could end is in service.
        if vector != NON_MASKABLE {
            apic::write(apic::Register::EndOfInterrupt, 0);
        }
        return;
    }
    attempt::end_any(Exception { vector: vector as u8, error: error as u32 });
    print!("tiny: exception {vector} at {rip:#x}, error {error:#x}, cr2 {:#x}\n", fault_address());
    end(Verdict::Wrong)
}

fn call_hook(vector: usize, rip: u64) -> bool {
    match HOOKS[vector].load(Ordering::Acquire) {
        0 => false,
        function => {
            // SAFETY: only `hook` stores anything but 0, and it stores a function of this type.
            let function: fn(u64) = unsafe { core::mem::transmute(function) };
            function(rip);
            true
        }
    }
}

fn fault_address() -> u64 {
    let address;
    // SAFETY: reads CR2 only.
    unsafe { asm!("mov {}, cr2", out(reg) address, options(nomem, nostack, preserves_flags)) };
    address
}
