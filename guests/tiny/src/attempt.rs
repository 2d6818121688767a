// SPDX-License-Identifier: MIT OR Apache-2.0
//! Doing what may raise an exception, and living on.
//!
//! An exception in an attempt lets execution go on behind the attempt, with the stack as it was before, as by
//! `longjmp`.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering};

global_asm!(
    r#"
    .text
    .global tiny_attempt, tiny_recover
    // tiny_attempt(function, argument): calls function(argument); all ones when it came back, else what tiny_recover
    // got.
tiny_attempt:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    push qword ptr [rip + {recovery}]
    mov [rip + {recovery}], rsp
    mov rax, rdi
    mov rdi, rsi
    call rax
    mov rax, -1
5:  pop qword ptr [rip + {recovery}]
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret

    // tiny_recover(value): ends the attempt under way.
tiny_recover:
    mov rax, rdi
    mov rsp, [rip + {recovery}]
    cld
    jmp 5b
    "#,
    recovery = sym RECOVERY,
);

unsafe extern "C" {
    fn tiny_attempt(function: unsafe extern "C" fn(*mut u8), argument: *mut u8) -> u64;
    fn tiny_recover(value: u64) -> !;
}

/// The stack pointer of the attempt under way; 0 without one.
static RECOVERY: AtomicU64 = AtomicU64::new(0);

/// The exception that ended an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// Its vector.
    pub vector: u8,
    /// Its error code, 0 where it has none.
    pub error: u32,
}

/// #UD
pub const INVALID_OPCODE: u8 = 6;
/// #GP
pub const GENERAL_PROTECTION: u8 = 13;
/// #PF
pub const PAGE_FAULT: u8 = 14;

/// Does something that may raise an exception. Values that it owned at that moment are never dropped.
pub fn attempt<T>(action: impl FnOnce() -> T) -> Result<T, Exception> {
    unsafe extern "C" fn call<T, F: FnOnce() -> T>(cell: *mut u8) {
        let cell = cell.cast::<(Option<F>, Option<T>)>();
        // SAFETY: `attempt` passes a pointer to this very type and checks it only afterwards.
        let (action, result) = unsafe { ((*cell).0.take(), &mut (*cell).1) };
        *result = action.map(|action| action());
    }
    fn trampoline<T, F: FnOnce() -> T>(_: &F) -> unsafe extern "C" fn(*mut u8) {
        call::<T, F>
    }
    let function = trampoline::<T, _>(&action);
    let mut cell = (Some(action), None);
    // SAFETY: the function gets the cell it was made for. An exception leaves its frames behind without unwinding:
    // nothing in them needs dropping, as the doc comment demands, and the callee-saved registers are put back by
    // tiny_attempt.
    let ended = unsafe { tiny_attempt(function, (&raw mut cell).cast()) };
    match (ended, cell.1) {
        (u64::MAX, Some(result)) => Ok(result),
        (ended, _) => Err(Exception { vector: ended as u8, error: (ended >> 32) as u32 }),
    }
}

/// Ends the attempt under way with an exception; comes back if there is none.
pub(crate) fn end_any(exception: Exception) {
    if RECOVERY.load(Ordering::Relaxed) != 0 {
        // SAFETY: an attempt is under way, so the stack pointer it saved is that of a frame still there.
        unsafe { tiny_recover(u64::from(exception.vector) | u64::from(exception.error) << 32) };
    }
}
