// SPDX-License-Identifier: MIT OR Apache-2.0
// One stub of 16 bytes per vector: every trap reaches Rust with the same frame (TrapFrame in trap.rs).

.section .text
.align 16
.global trap_stubs
trap_stubs:
.set vector, 0
.rept 256
    .align 16
    push_missing_error_code vector
    push vector
    .if vector == {machine_check}
    jmp machine_check_common
    .else
    jmp trap_common
    .endif
    .set vector, vector + 1
.endr

trap_common:
    push_registers
    cld
    mov rdi, rsp
    call {dispatch}
    pop_registers
    add rsp, 16
    iretq

// #MC. While MCG_STATUS.MCIP is set, another #MC is a shutdown (AMD APM vol. 2, section 9.3.1); once it is clear,
// another one starts at the top of this stack again. So the frame moves to the interrupted stack, of which nothing
// below RSP is in use (the image has no red zone), before MCIP is cleared: from then on nothing of this #MC is on its
// interrupt stack. Where the interrupted stack is this one, the frame is in its place already: CPUs align it in the
// same way.
machine_check_common:
    push_registers
    cld
    mov rdi, rsp
    call {dispatch}
    mov rsi, rsp
    mov rdi, [rsp + {frame_rsp}]
    sub rdi, {frame_bytes}
    and rdi, -16
    mov rbx, rdi
    mov ecx, {frame_bytes} / 8
    rep movsq
    mov rsp, rbx
    mov ecx, {mcg_status}
    xor eax, eax
    xor edx, edx
    wrmsr
    pop_registers
    add rsp, 16
    iretq

.purgem push_registers
.purgem pop_registers
.purgem push_missing_error_code
