// SPDX-License-Identifier: MIT OR Apache-2.0
// The world switch. In: RDI = the guest's general purpose registers and, behind these, the ticks of its time; RSI and
// RDX = physical addresses of the guest's and the host's control block. Interrupts are masked by IF; the global flag is
// closed from CLGI to STGI, so nothing is taken on the way in or out: an interrupt that waits makes VMRUN leave at
// once. An NMI that waits is taken at NAME_end, where RBP and RDI are the caller's again: a profile's samples need
// both.
//
// There is one for each `mitigations::switch::Variant`, in the order of their numbers (`svm_switches`): what an exit
// does is chosen when a vCPU is loaded. Between VMRUN and the end of what follows an exit there is no branch that a
// guest could have trained.
//   exit 0  nothing
//        1  VERW before VMRUN; after it every general purpose register is cleared
//        2  and the return stack buffer is filled: 32 calls, which nothing returns from
//        3  and a division before VMRUN, so that the divider keeps no quotient; and an IBPB
//   exchanges   SPEC_CTRL is written before the entry and after the exit
// svm_switch_counting adds the time that passes in the guest to its ticks. Of what lies between the two readings of the
// counter the host's own instructions are taken off again.

.set GUEST_TICKS, 16 * 8
.set GUEST_SPEC_CTRL, 19 * 8
.set HOST_SPEC_CTRL, 20 * 8
.set HOST_TICKS, 12             // shl, or, sub, three mov, vmrun; four mov, rdtsc
.set MSR_SPEC_CTRL, 0x48
.set MSR_PRED_CMD, 0x49
.set RETURN_STACK_ENTRIES, 32

.macro world_switch name, exit, exchanges, is_counting
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
    .if \exit >= 3
    xor edx, edx
    mov eax, 1
    mov ecx, eax
    div ecx
    .endif
    .if \exchanges
    mov ecx, MSR_SPEC_CTRL
    mov eax, [rdi + GUEST_SPEC_CTRL]
    xor edx, edx
    wrmsr
    .endif
    mov rax, rsi
    vmload rax
    mov rcx, [rdi + 1 * 8]
    .ifeq \is_counting
    mov rdx, [rdi + 2 * 8]
    .endif
    mov rbx, [rdi + 3 * 8]
    mov rbp, [rdi + 5 * 8]
    mov rsi, [rdi + 6 * 8]
    load_upper_registers rdi
    .if \is_counting
    rdtsc
    shl rdx, 32
    or rax, rdx
    sub [rdi + GUEST_TICKS], rax
    mov rax, [rsp + 16]
    mov rdx, [rdi + 2 * 8]
    .endif
    mov rdi, [rdi + 7 * 8]
    .if \exit >= 1
    verw word ptr [rip + svm_switch_selector]
    .endif
    vmrun rax
    .if \is_counting
    mov rax, [rsp + 8]
    mov [rax + 2 * 8], rdx
    mov [rax + 1 * 8], rcx
    mov rcx, rax
    rdtsc
    shl rdx, 32
    .if \exit >= 1
    lea rax, [rax + rdx - HOST_TICKS - 1]
    .else
    lea rax, [rax + rdx - HOST_TICKS]
    .endif
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
    save_upper_registers rax
    .if \exit >= 1
    xor ebx, ebx
    xor ecx, ecx
    xor edx, edx
    xor esi, esi
    xor edi, edi
    xor ebp, ebp
    xor r8d, r8d
    xor r9d, r9d
    xor r10d, r10d
    xor r11d, r11d
    xor r12d, r12d
    xor r13d, r13d
    xor r14d, r14d
    xor r15d, r15d
    .endif
    .if \exchanges
    mov eax, [rax + HOST_SPEC_CTRL]
    mov ecx, MSR_SPEC_CTRL
    xor edx, edx
    wrmsr
    .endif
    .if \exit >= 3
    mov ecx, MSR_PRED_CMD
    mov eax, 1
    xor edx, edx
    wrmsr
    .endif
    .if \exit >= 2
    .rept RETURN_STACK_ENTRIES
    call 2f
    int3                        // where speculation ends that returns here
2:
    .endr
    add rsp, RETURN_STACK_ENTRIES * 8
    lfence
    .endif
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

.macro world_switches exit, exchanges, plain, counting
world_switch \plain, \exit, \exchanges, 0
world_switch \counting, \exit, \exchanges, 1
.pushsection .rodata.svm_switches, "a"
    .quad \plain, \counting
.popsection
.pushsection .rodata.svm_switch_ends, "a"
    .quad \plain\()_end, \counting\()_end
.popsection
.endm

.section .rodata.svm_switches, "a"
.balign 8
.global svm_switches
svm_switches:
.section .rodata.svm_switch_ends, "a"
.balign 8
.global svm_switch_ends
svm_switch_ends:
.section .rodata.svm_switch_selector, "a"
.balign 2
svm_switch_selector:
    .short 0x10                 // of a writable data segment (descriptor.rs): with another VERW clears nothing

.section .text
world_switches 0, 0, svm_switch, svm_switch_counting
world_switches 0, 1, svm_switch_exchanging, svm_switch_exchanging_counting
world_switches 1, 0, svm_switch_cleared, svm_switch_cleared_counting
world_switches 1, 1, svm_switch_cleared_exchanging, svm_switch_cleared_exchanging_counting
world_switches 2, 0, svm_switch_stuffed, svm_switch_stuffed_counting
world_switches 2, 1, svm_switch_stuffed_exchanging, svm_switch_stuffed_exchanging_counting
world_switches 3, 0, svm_switch_barrier, svm_switch_barrier_counting
world_switches 3, 1, svm_switch_barrier_exchanging, svm_switch_barrier_exchanging_counting
.purgem world_switches
.purgem world_switch
.purgem load_upper_registers
.purgem save_upper_registers
