// SPDX-License-Identifier: MIT OR Apache-2.0
// The world switch. In: RDI = the guest's general purpose registers and, behind these, the ticks of its time; RSI = 0
// for VMLAUNCH, else VMRESUME. The VMCS is current. Out: EAX = 0 after an exit, 1 if the instruction has failed.
// Interrupts are masked: one that waits ends the guest's time at once.
//
// Both ways come back at vmx_exit: the VMCS names it, and a failed instruction falls through to the same code, with the
// guest's registers loaded. Every general purpose register of the guest's is replaced before the host branches.
// vmx_switch_counting adds the time that passes in the guest to its ticks. Of what lies between the two readings of the
// counter the host's own instructions are taken off again.

.set VMX_GUEST_TICKS, 16 * 8
.set VMX_HOST_RSP, 17 * 8
.set VMX_FIELD_HOST_RSP, 0x6c14
.set VMX_HOST_TICKS, 18         // shl, or, sub, mov, test, three mov, jnz, the entry; two push, three mov, cmp, je, rdtsc

.macro vmx_world_switch name, is_counting
.align 64
.global \name
\name:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    push rdi
    push \is_counting
    cmp rsp, [rdi + VMX_HOST_RSP]
    je 1f
    mov [rdi + VMX_HOST_RSP], rsp
    mov eax, VMX_FIELD_HOST_RSP
    vmwrite rax, rsp
1:
    mov rcx, [rdi + 1 * 8]
    mov rbx, [rdi + 3 * 8]
    mov rbp, [rdi + 5 * 8]
    load_upper_registers rdi
    .if \is_counting
    rdtsc
    shl rdx, 32
    or rax, rdx
    sub [rdi + VMX_GUEST_TICKS], rax
    .endif
    mov rdx, [rdi + 2 * 8]
    test sil, sil               // no MOV changes the flag
    mov rax, [rdi + 0 * 8]
    mov rsi, [rdi + 6 * 8]
    mov rdi, [rdi + 7 * 8]
    jnz 2f
    vmlaunch
    jmp vmx_failed
2:  vmresume
    jmp vmx_failed
.endm

.section .text
vmx_world_switch vmx_switch, 0
vmx_world_switch vmx_switch_counting, 1

// The instruction has failed: the host's registers but RSP are gone.
vmx_failed:
    push 1
    jmp vmx_save

.align 16
.global vmx_exit
vmx_exit:
    push 0
vmx_save:                       // [RSP]: the result, whether time is counted, the first argument, the host's registers
    push rdi
    mov rdi, [rsp + 24]
    mov [rdi + 0 * 8], rax
    mov [rdi + 2 * 8], rdx
    cmp dword ptr [rsp + 16], 0
    je 1f
    rdtsc
    shl rdx, 32
    lea rax, [rax + rdx - VMX_HOST_TICKS]
    add [rdi + VMX_GUEST_TICKS], rax
1:
    mov [rdi + 1 * 8], rcx
    mov [rdi + 3 * 8], rbx
    mov [rdi + 5 * 8], rbp
    mov [rdi + 6 * 8], rsi
    save_upper_registers rdi
    pop qword ptr [rdi + 7 * 8]
    xor ecx, ecx
    xor edx, edx
    xor esi, esi
    xor r8d, r8d
    xor r9d, r9d
    xor r10d, r10d
    xor r11d, r11d
    pop rax
    pop rdi                     // whether time is counted
    pop rdi
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret

// The host's handler for an NMI that an exit has taken, as if it had come here. RDI = the guest's registers.
.global vmx_take_nmi
vmx_take_nmi:
    int 2
.global vmx_nmi_taken
vmx_nmi_taken:
    ret
.purgem vmx_world_switch
.purgem load_upper_registers
.purgem save_upper_registers
