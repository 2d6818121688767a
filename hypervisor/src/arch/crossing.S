// SPDX-License-Identifier: MIT OR Apache-2.0
// The crossing's code: copied to a page that outlives the image, so nothing in it refers to anything outside. It is mapped at
// one address in the old image's tables, in the crossing's own and in the new image's first ones.

.section .rodata
.balign 16
.global crossing_start
.global crossing_end
.global crossing_park
.global crossing_leave
.global crossing_nmi
.global crossing_resume
.global crossing_stubs
.code64
crossing_start:

// A processor waits here for the next image. RDI = its mailbox, the end of whose stack is {stride} bytes on; RSI = the
// crossing's own page tables; RDX = GDTR and, 16 bytes on, IDTR.
crossing_park:
    cli
    lea rsp, [rdi + {stride}]
    mov eax, 0x20               // CR4: PAE alone. Without PGE nothing stays translated that the old image called global.
    mov cr4, rax
    mov cr3, rsi
    lgdt [rdx]
    lidt [rdx + 16]
    push 8
    lea rax, [rip + 1f]
    push rax
    retfq
1:  mov eax, 16
    mov ss, eax
    xor eax, eax
    mov ds, eax
    mov es, eax
    mov fs, eax
    mov gs, eax
    mov eax, {parked}           // nothing of the old image is used from here on
    xchg [rdi + {state}], eax
2:  hlt                         // only a non-maskable interrupt ends this
    jmp 2b

// The mailbox is looked at here and nowhere else: whoever lets a processor go writes first and interrupts then, so no wake-up
// is lost, and none is left over for the new image. IRETQ leaves the handler on both ways, so that the next one is taken.
crossing_nmi:
    mov eax, {released}
    mov ecx, {taken}
    lock cmpxchg [rdi + {state}], ecx
    jne 3f
    mov rax, [rdi + {target}]
    mov [rsp], rax
    mov rax, [rdi + {root}]
    mov rdi, [rdi + {argument}]
    mov cr3, rax                // shows the crossing at the same place, and the new image
3:  iretq

// The processor that hands over goes to the new image. RDI = the record, RSI = page tables that show the crossing and the new
// image, RDX as above, RCX = where to go on, R8 = a stack in the crossing.
crossing_leave:
    cli
    mov rsp, r8
    mov eax, 0x20
    mov cr4, rax
    mov cr3, rsi
    lgdt [rdx]
    lidt [rdx + 16]
    xor esi, esi                // not on trial: there is no way back
    jmp rcx

// A new image on trial gets this processor; the call returns when the processor comes back, with the vector of what brought it.
// RDI = the processor's page (bringup::trial).
crossing_resume:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    mov [rdi + {old} + {rsp}], rsp
    mov rax, cr3
    mov [rdi + {old} + {cr3}], rax
    mov rax, cr4
    mov [rdi + {old} + {cr4}], rax
    mov ecx, {gs_base_msr}
    rdmsr
    mov [rdi + {old} + {gs_base}], eax
    mov [rdi + {old} + {gs_base} + 4], edx
    sgdt [rdi + {old_gdtr}]
    sidt [rdi + {old_idtr}]
    lgdt [rdi + {gdtr}]
    lidt [rdi + {idtr}]         // it is seen at one place in both images' tables
    mov byte ptr [rdi + {tss_type}], 0x89 // not busy: loading it marks it
    mov eax, 24
    ltr ax
    mov rax, cr4
    and rax, {not_global}       // without PGE nothing stays translated that one image calls global
    mov cr4, rax
    mov rax, [rdi + {new} + {cr3}]
    mov cr3, rax
    mov rax, [rdi + {new} + {cr4}]
    mov cr4, rax
    mov eax, [rdi + {new} + {gs_base}]
    mov edx, [rdi + {new} + {gs_base} + 4]
    wrmsr
    mov rsp, [rdi + {new} + {rsp}]
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

// Every trap while the new image has the processor: its registers go on the stack that it came on, and the old image's call of
// crossing_resume returns.
crossing_trap:
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
    cld                         // whatever it was at, the old image's code expects this
    sub rsp, 16
    sgdt [rsp]
    mov rbx, [rsp + 2]          // the page begins with the GDT
    add rsp, 16
    mov rax, [rsp + 15 * 8]     // the stub's return address
    lea rcx, [rip + crossing_stubs]
    sub rax, rcx
    shr eax, 3
    mov [rbx + {cause}], rax
    mov rcx, [rsp + 16 * 8]
    mov [rbx + {cause} + 8], rcx
    mov rcx, [rsp + 17 * 8]
    mov [rbx + {cause} + 16], rcx
    mov rcx, cr2
    mov [rbx + {cause} + 24], rcx
    mov [rbx + {cause} + 32], rdi
    mov [rbx + {cause} + 40], rsi
    mov [rbx + {new} + {rsp}], rsp
    mov rcx, cr3
    mov [rbx + {new} + {cr3}], rcx
    mov rcx, cr4
    mov [rbx + {new} + {cr4}], rcx
    mov ecx, {gs_base_msr}
    rdmsr
    mov [rbx + {new} + {gs_base}], eax
    mov [rbx + {new} + {gs_base} + 4], edx
    mov rax, cr4
    and rax, {not_global}
    mov cr4, rax
    mov rax, [rbx + {old} + {cr3}]
    mov cr3, rax
    mov rax, [rbx + {old} + {cr4}]
    mov cr4, rax
    lgdt [rbx + {old_gdtr}]
    lidt [rbx + {old_idtr}]
    mov eax, [rbx + {old} + {gs_base}]
    mov edx, [rbx + {old} + {gs_base} + 4]
    wrmsr
    mov rax, [rbx + {cause}]
    mov rsp, [rbx + {old} + {rsp}]
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    ret

// One stub of eight bytes per vector, known by its return address.
.balign 8
crossing_stubs:
.set crossing_vector, 0
.rept 256
    .balign 8
    // #DF, #TS, #NP, #SS, #GP, #PF, #AC, #CP, #VC and #SX push an error code themselves.
    .if !(crossing_vector == 8 || (crossing_vector >= 10 && crossing_vector <= 14) || crossing_vector == 17 || crossing_vector == 21 || crossing_vector == 29 || crossing_vector == 30)
    push 0
    .endif
    call crossing_trap
    .set crossing_vector, crossing_vector + 1
.endr

crossing_end:
