// SPDX-License-Identifier: MIT OR Apache-2.0
// One stub of 16 bytes per vector that is used: every trap reaches Rust with the same frame (TrapFrame in trap.rs).

.section .text
.align 16
.global trap_stubs
trap_stubs:
.macro stubs first, count
.set vector, \first
.rept \count
    .align 16
    // #DF, #TS, #NP, #SS, #GP, #PF, #AC, #CP, #VC and #SX push an error code themselves.
    .if !(vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21 || vector == 29 || vector == 30)
    push 0
    .endif
    push vector
    jmp trap_common
    .set vector, vector + 1
.endr
.endm
stubs 0, {low}
stubs {high}, 256 - {high}
.purgem stubs

trap_common:
    push rax
    push rcx
    push rdx
    push rbx
    push rbp
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    push r12
    push r13
    push r14
    push r15
    cld
    mov rdi, rsp
    call {dispatch}
    pop r15
    pop r14
    pop r13
    pop r12
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rbp
    pop rbx
    pop rdx
    pop rcx
    pop rax
    add rsp, 16
    iretq
