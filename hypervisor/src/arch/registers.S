// SPDX-License-Identifier: MIT OR Apache-2.0
// Macros for the stubs of exceptions and interrupts: for trap.S and switch_pages.S, each of which is assembled behind
// this file and removes the macros at its end.

// Saves the general purpose registers in the order of TrapFrame (trap.rs) and the trial pages (update::trial): R15 has
// the lowest address.
.macro push_registers
    .irp register, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
    push \register
    .endr
.endm

// Restores them.
.macro pop_registers
    .irp register, r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax
    pop \register
    .endr
.endm

// Pushes a zero for an exception without an error code. #DF, #TS, #NP, #SS, #GP, #PF, #AC, #CP, #VC and #SX push their
// own.
.macro push_missing_error_code number
    .if !(\number == 8 || (\number >= 10 && \number <= 14) || \number == 17 || \number == 21)
    .if !(\number == 29 || \number == 30)
    push 0
    .endif
    .endif
.endm
