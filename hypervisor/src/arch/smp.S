// SPDX-License-Identifier: MIT OR Apache-2.0
// How another CPU gets from its start-up interrupt (16-bit real mode, in a page below 1 MiB) to Rust. The page
// holds a copy of what lies between the two labels, into which smp.rs writes what depends on where page and image lie.

.section .rodata
.global ap_trampoline_start
.global ap_trampoline_end
.global ap_trampoline_gdt_base
.global ap_trampoline_root
.global ap_trampoline_jump
.code16
ap_trampoline_start:
    cli
    cld
    mov ax, cs
    mov ds, ax
    .byte 0x66, 0x0f, 0x01, 0x16 // lgdt with a 32-bit base, from this offset in the page
    .word ap_gdt_register - ap_trampoline_start
    mov eax, 0xa0               // CR4: PAE, PGE
    mov cr4, eax
    .byte 0x66, 0xa1            // mov eax, [the boot page tables' root]
    .word ap_trampoline_root - ap_trampoline_start
    mov cr3, eax
    mov ecx, 0xc0000080         // EFER
    rdmsr
    or eax, 0x900               // LME, NXE
    wrmsr
    mov eax, 0x80010033         // CR0: PG, WP, NE, ET, MP, PE; caches on
    mov cr0, eax
    .byte 0x66, 0xea            // far jump to 64-bit code
ap_trampoline_jump:
    .long ap_long_mode - ap_trampoline_start // plus the page's address
    .word 8
.code64
ap_long_mode:
    xor eax, eax
    mov ds, eax
    mov es, eax
    mov ss, eax
    mov fs, eax
    mov gs, eax
    mov rax, offset ap_high
    jmp rax
.align 8
ap_gdt:
    .quad 0
    .quad 0x00af9b000000ffff    // 64-bit code
ap_gdt_register:
    .word 15
ap_trampoline_gdt_base:
    .long ap_gdt - ap_trampoline_start // plus the page's address
ap_trampoline_root:
    .long 0                     // the boot page tables
ap_trampoline_end:

// Here a CPU arrives from the trampoline, and one that was parked from the switch pages: 64-bit mode, interrupts off,
// on tables that show the image, without a stack.
.section .text
.global ap_high
ap_high:
    mov rax, offset {root}
    mov rax, [rax]
    mov cr3, rax
    xor eax, eax                // its identifier: leaf 0Bh where there is one, else leaf 1
    cpuid
    cmp eax, 0xb
    jb ap_old_identifier
    mov eax, 0xb
    xor ecx, ecx
    cpuid
    test ebx, ebx
    jnz ap_find_area
ap_old_identifier:
    mov eax, 1
    cpuid
    mov edx, ebx
    shr edx, 24
ap_find_area:
    mov rsi, offset {areas}
    mov rsi, [rsi]              // the area of CPU 1; those of all others are behind it
    mov rcx, offset {count}
    mov ecx, [rcx]
ap_next_area:
    sub ecx, 1
    jb ap_halt                  // unknown
    cmp [rsi + {apic_id}], edx
    je ap_take_stack
    add rsi, offset __percpu_bytes
    jmp ap_next_area
ap_take_stack:
    mov rsp, [rsi + {stack_top}]
    test rsp, rsp
    jz ap_halt                  // must not start
    xor ebp, ebp
    call {entry}
    ud2
ap_halt:
    cli
    hlt
    jmp ap_halt
