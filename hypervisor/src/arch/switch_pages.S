// SPDX-License-Identifier: MIT OR Apache-2.0
// The switch page's code: copied to a page that outlives the image, so nothing in it refers to anything outside. It is
// mapped at one address in the old image's tables, in the page's own and in the new image's first ones.
//
// An NMI or a machine check may come between any two instructions here: no mask holds them back. So whatever IDT is
// loaded, the stacks that its gates name are in the loaded TSS and mapped, and selector 8 is 64-bit code in the loaded
// GDT.

.section .rodata
.balign 16
.global switch_start
.global switch_end
.global switch_park
.global switch_leave
.global switch_nmi
.global switch_resume
.global switch_stubs
.global switch_trial_nmi
.global switch_trial_check
.code64
switch_start:

// A CPU waits here for the next image. RDI = its mailbox, and {stride} bytes on the end of its stack; RSI = the page's
// own page tables; RDX = GDTR and, 16 bytes on, IDTR. They are loaded first, while the old image's tables show them:
// from LIDT on an NMI is switch_nmi's, on whatever tables.
switch_park:
    cli
    lea rsp, [rdi + {stride}]
    lgdt [rdx]
    lidt [rdx + 16]
    // CR4: PAE alone. Without PGE nothing stays translated that the old image called global.
    mov eax, 0x20
    mov cr4, rax
    mov cr3, rsi
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

// The mailbox is read here and nowhere else: the CPU that releases one writes first and sends the NMI then, so no
// wake-up is lost, and none is left over for the new image. IRETQ leaves the handler on every way, so that the next NMI
// is taken. An NMI that interrupts anything but switch_park finds no mailbox in RDI, and is passed over.
switch_nmi:
    push rax
    push rcx
    mov rax, [rsp + 2 * 8]
    lea rcx, [rip + switch_park]
    cmp rax, rcx
    jb 3f
    lea rcx, [rip + switch_nmi]
    cmp rax, rcx
    jae 3f
    mov eax, {released}
    mov ecx, {taken}
    lock cmpxchg [rdi + {state}], ecx
    jne 3f
    mov rax, [rdi + {target}]
    mov [rsp + 2 * 8], rax
    mov rax, [rdi + {root}]
    mov rdi, [rdi + {argument}]
    mov cr3, rax                // shows this page at the same place, and the new image
3:  pop rcx
    pop rax
    iretq

// The CPU that hands over goes to the new image. RDI = the record, RSI = page tables that show this page and the new
// image, RDX as above, RCX = where to go on, R8 = a stack in the page.
switch_leave:
    cli
    mov rsp, r8
    lgdt [rdx]
    lidt [rdx + 16]
    mov eax, 0x20
    mov cr4, rax
    mov cr3, rsi
    xor esi, esi                // not on trial: there is no way back
    jmp rcx

// A fault point, in the test image: the CPU waits here until an NMI comes, or for a time. RBX = the CPU's page. Changes
// RAX, RCX, RDX.
.macro fault_point number
    .if {has_faults}
    cmp dword ptr [rbx + {wait_step}], \number
    jne 9f
    wait_here rbx
9:
    .endif
.endm

.macro wait_here page, less=0
    inc qword ptr [\page + {waits} - \less]
    rdtsc
    shl rdx, 32
    or rax, rdx
    mov rcx, rax
    add rcx, [\page + {wait_ticks} - \less]
8:  pause
    cmp qword ptr [\page + {hits} - \less], 0
    jne 6f
    rdtsc
    shl rdx, 32
    or rax, rdx
    cmp rax, rcx
    jb 8b
6:
.endm

// A new image on trial gets this CPU; the call returns when the CPU comes back, with the vector of the event that ended
// its stay. RDI = the CPU's page (update::trial).
//
//                          GDT   TR    IDT   tables  GS
//   until LGDT             old   old   old   old     old     an NMI is the old image's, on the old TSS's stacks
//   until LIDT             page  page  old   old     old     likewise: the page's TSS names the same stacks
//   until IRETQ            page  page  page  either  either  an NMI leads back: the registers are still in the page
switch_resume:
    push rbx
    push rbp
    push r12
    push r13
    push r14
    push r15
    mov rbx, rdi                // the page, for as long as this code has the CPU
    mov [rbx + {old} + {rsp}], rsp
    mov rax, cr3
    mov [rbx + {old} + {cr3}], rax
    mov rax, cr4
    mov [rbx + {old} + {cr4}], rax
    mov ecx, {gs_base_msr}
    rdmsr
    mov [rbx + {old} + {gs_base}], eax
    mov [rbx + {old} + {gs_base} + 4], edx
    str eax
    mov [rbx + {old_task}], rax
    sgdt [rbx + {old_gdtr}]
    sidt [rbx + {old_idtr}]
    fault_point 1
    lgdt [rbx + {gdtr}]
    fault_point 2
    mov byte ptr [rbx + {tss_type}], 0x89 // not busy: loading it marks it
    mov eax, 24
    ltr ax
    fault_point 3
    lidt [rbx + {idtr}]         // it is seen at one place in both images' tables
switch_there:
    fault_point 4
    mov rax, cr4
    and rax, {not_global}       // without PGE nothing stays translated that one image calls global
    mov cr4, rax
    mov rax, [rbx + {new} + {cr3}]
    mov cr3, rax
    mov rax, [rbx + {new} + {cr4}]
    mov cr4, rax
    fault_point 5
    mov ecx, {gs_base_msr}
    mov eax, [rbx + {new} + {gs_base}]
    mov edx, [rbx + {new} + {gs_base} + 4]
    wrmsr
    fault_point 6
    lea rsp, [rbx + {first}]
    pop_registers
    add rsp, 16
    .if {has_faults}
    cmp dword ptr [rsp + {wait_step} - {far}], 7
    jne 7f
    mov [rsp + {scratch} - {far}], rax
    mov [rsp + {scratch} + 8 - {far}], rcx
    mov [rsp + {scratch} + 16 - {far}], rdx
    wait_here rsp, {far}
    mov rax, [rsp + {scratch} - {far}]
    mov rcx, [rsp + {scratch} + 8 - {far}]
    mov rdx, [rsp + {scratch} + 16 - {far}]
7:
    .endif
    iretq

// Every trap while the new image has the CPU, but for NMI and machine check. Its gates name a stack that ends where the
// new image's registers are kept in the page: so they are pushed right there, and RSP gives the page's address.
switch_trap:
    push_registers
    cld                         // whatever it was at, the old image's code expects this
    lea rbx, [rsp - {first}]
    lea rsp, [rbx + {work_stack}] // what is below the registers is the cause's
    mov rax, [rbx + {first} + 15 * 8] // the stub's return address
    lea rcx, [rip + switch_stubs]
    sub rax, rcx
    shr eax, 3
    mov [rbx + {cause}], rax
    mov rcx, [rbx + {first} + 16 * 8]
    mov [rbx + {cause} + 8], rcx
    mov rcx, [rbx + {first} + 17 * 8]
    mov [rbx + {cause} + 16], rcx
    mov rcx, cr2
    mov [rbx + {cause} + 24], rcx
    mov [rbx + {cause} + 32], rdi
    mov [rbx + {cause} + 40], rsi

// RBX = the page, which has the new image's general purpose registers and the cause.
switch_save:
    lea rax, [rbx + {first}]
    mov [rbx + {new} + {rsp}], rax
    mov rax, cr3
    mov [rbx + {new} + {cr3}], rax
    mov rax, cr4
    mov [rbx + {new} + {cr4}], rax
    mov ecx, {gs_base_msr}
    rdmsr
    mov [rbx + {new} + {gs_base}], eax
    mov [rbx + {new} + {gs_base} + 4], edx

// The way back. RBX = the page; nothing is on a stack. Until LIDT an NMI or a machine check is noted in the page, and
// this begins again; from LIDT on it is the old image's: the page's TSS names its stacks. Its GS has been there for as
// long as its tables have.
switch_back:
    fault_point 8
    mov ecx, {gs_base_msr}
    mov eax, [rbx + {old} + {gs_base}]
    mov edx, [rbx + {old} + {gs_base} + 4]
    wrmsr
    fault_point 9
    mov rax, cr4
    and rax, {not_global}
    mov cr4, rax
    mov rax, [rbx + {old} + {cr3}]
    mov cr3, rax
    mov rax, [rbx + {old} + {cr4}]
    mov cr4, rax
    fault_point 10
    lgdt [rbx + {old_gdtr}]
    fault_point 11
    lidt [rbx + {old_idtr}]
    fault_point 12
    mov rax, [rbx + {old_task}]
    test eax, eax
    jz 1f
    mov rcx, [rbx + {old_gdtr} + 2]
    mov byte ptr [rcx + rax + 5], 0x89 // not busy: loading it marks it
    ltr ax
1:  fault_point 13
    mov rax, [rbx + {cause}]
    mov rsp, [rbx + {old} + {rsp}]
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbp
    pop rbx
    pop rcx                     // the return address
    mov rdx, rsp
    push 16
    push rdx
    pushfq
    push 8
    push rcx
    iretq                       // not RET: this may end an NMI, and no other one comes before an IRET

// An NMI while the page's IDT is loaded.
switch_trial_nmi:
    push 0
    push 2
    jmp 1f

// A machine check likewise.
switch_trial_check:
    push 0
    push 18
1:  push_registers
    cld
    // Once all have switched over there is no way back, and the new image passes such NMIs over. It may have loaded its
    // own GDT and TSS.
    cmp dword ptr [rip + switch_start + {verdict}], {committed}
    jne 2f
    cmp byte ptr [rsp + 15 * 8], 2
    jne 2f
    jmp switch_pass_over
2:  mov rbx, rsp
    and rbx, -4096              // both stacks are in the CPU's page
    mov rcx, [rsp + 17 * 8]     // the interrupted code's RIP
    lea rax, [rip + switch_start]
    cmp rcx, rax
    jb 5f
    lea rax, [rip + switch_end]
    cmp rcx, rax
    jae 5f
    .if {has_faults}
    inc qword ptr [rbx + {hits}]
    .endif
    lea rax, [rip + switch_trap]
    cmp rcx, rax
    jae 3f
    // On the way there: the page has the new image's registers as they were, and the CPU goes back.
    mov eax, [rsp + 15 * 8]
    mov [rbx + {cause}], rax
    mov [rbx + {cause} + 16], rcx
    jmp switch_back
    // On the way back: noted, and on with it. Without IRET, so that no further NMI comes before the old image can take
    // it.
3:  mov eax, [rsp + 15 * 8]
    bts qword ptr [rbx + {pending}], rax
    lea rax, [rip + switch_back]
    cmp rcx, rax
    jb 4f
    lea rax, [rip + switch_trial_nmi]
    cmp rcx, rax
    jb switch_back
4:  mov rdx, [rsp + 20 * 8]     // the interrupted stack; its next two words are free
    mov rax, [rsp + 19 * 8]
    mov [rdx - 8], rcx
    mov [rdx - 16], rax
    sub rdx, 16
    mov [rsp + 20 * 8], rdx
    pop_registers
    mov rsp, [rsp + 5 * 8]
    popfq
    ret
    // In the new image: its registers go to where all other traps leave them, since this stack is the next NMI's.
5:  mov rsi, rsp
    lea rdi, [rbx + {first}]
    mov ecx, 22
    rep movsq
    mov eax, [rsp + 15 * 8]
    mov [rbx + {cause}], rax
    mov rax, [rsp + 16 * 8]
    mov [rbx + {cause} + 8], rax
    mov rax, [rsp + 17 * 8]
    mov [rbx + {cause} + 16], rax
    jmp switch_save

switch_pass_over:
    pop_registers
    add rsp, 16
    iretq

// One stub of eight bytes per vector, known by its return address.
.balign 8
switch_stubs:
.set switch_vector, 0
.rept 256
    .balign 8
    push_missing_error_code switch_vector
    call switch_trap
    .set switch_vector, switch_vector + 1
.endr

switch_end:
.purgem fault_point
.purgem wait_here
.purgem push_registers
.purgem pop_registers
.purgem push_missing_error_code
