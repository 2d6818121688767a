// SPDX-License-Identifier: MIT OR Apache-2.0
// The world switch. In: RDI = the guest's general purpose registers and, behind these, the ticks of its time; RSI and RDX =
// physical addresses of the guest's and the host's control block. Interrupts are masked by IF; the global flag is closed from
// CLGI to STGI, so nothing is taken on the way in or out: an interrupt that waits makes VMRUN leave at once. An NMI that waits is taken
// at NAME_end, where RBP and RDI are the caller's again: a profile's samples need both.
//
// svm_switch_counting adds the time that passes in the guest to its ticks. Of what lies between the two readings of the
// counter the host's own instructions are taken off again.

.set GUEST_TICKS, 16 * 8
.set HOST_TICKS, 12             // shl, or, sub, three mov, vmrun; four mov, rdtsc

.macro world_switch name, is_counting
.align 64
.global \name
\name:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    .if \is_counting
    push rsi
    .endif
    push rdi
    push rdx
    clgi
    sti                         // with virtual interrupt masking, the host's IF decides over physical interrupts
    mov rax, rsi
    vmload rax
    mov rcx, [rdi + 1 * 8]
    .ifeq \is_counting
    mov rdx, [rdi + 2 * 8]
    .endif
    mov rbx, [rdi + 3 * 8]
    mov rbp, [rdi + 5 * 8]
    mov rsi, [rdi + 6 * 8]
    mov r8, [rdi + 8 * 8]
    mov r9, [rdi + 9 * 8]
    mov r10, [rdi + 10 * 8]
    mov r11, [rdi + 11 * 8]
    mov r12, [rdi + 12 * 8]
    mov r13, [rdi + 13 * 8]
    mov r14, [rdi + 14 * 8]
    mov r15, [rdi + 15 * 8]
    .if \is_counting
    rdtsc
    shl rdx, 32
    or rax, rdx
    sub [rdi + GUEST_TICKS], rax
    mov rax, [rsp + 16]
    mov rdx, [rdi + 2 * 8]
    .endif
    mov rdi, [rdi + 7 * 8]
    vmrun rax
    .if \is_counting
    mov rax, [rsp + 8]
    mov [rax + 2 * 8], rdx
    mov [rax + 1 * 8], rcx
    mov rcx, rax
    rdtsc
    shl rdx, 32
    lea rax, [rax + rdx - HOST_TICKS]
    add [rcx + GUEST_TICKS], rax
    mov rax, [rsp + 16]
    .endif
    vmsave rax
    mov rax, [rsp + 8]          // the guest's RAX is in its control block
    .ifeq \is_counting
    mov [rax + 1 * 8], rcx
    mov [rax + 2 * 8], rdx
    .endif
    mov [rax + 3 * 8], rbx
    mov [rax + 5 * 8], rbp
    mov [rax + 6 * 8], rsi
    mov [rax + 7 * 8], rdi
    mov [rax + 8 * 8], r8
    mov [rax + 9 * 8], r9
    mov [rax + 10 * 8], r10
    mov [rax + 11 * 8], r11
    mov [rax + 12 * 8], r12
    mov [rax + 13 * 8], r13
    mov [rax + 14 * 8], r14
    mov [rax + 15 * 8], r15
    pop rax
    vmload rax                  // FS, GS, TR, LDTR and the system call registers of the host
    cli
    pop rdi
    .if \is_counting
    pop rsi
    .endif
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    stgi
.global \name\()_end
\name\()_end:
    ret
.endm

.section .text
world_switch svm_switch, 0
world_switch svm_switch_counting, 1
.purgem world_switch
