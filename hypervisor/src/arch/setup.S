// SPDX-License-Identifier: MIT OR Apache-2.0
// The code and data that `baton image linux` puts before the image, so that it is a bzImage: the setup header, which
// Linux loaders read, and code for those that enter a kernel in 16-bit real mode, as QEMU's -kernel and iPXE on a BIOS
// do. It is in no segment of the ELF file. The code asks the BIOS for the memory map, and goes on at the 32-bit entry.
// Source: the Linux kernel's documentation, "The Linux/x86 Boot Protocol" (2.15); ACPI 6.5, section 15.1 (INT 15h,
// E820h).

.set ZERO_PAGE, 0x1000          // in the setup's segment, of which a kernel has the first 32 KiB
.set E820_MAXIMUM, 128

.section .setup, "", @progbits
.code16
setup_start:
    .org 0x1f1
    .byte (setup_end - setup_start) / 512 - 1 // sectors behind the first
    .word 0
    .long __file_paragraphs     // the rest of the file
    .word 0, 0xffff, 0, 0xaa55
    .byte 0xeb, setup_code - setup_header // jmp
setup_header:
    .ascii "HdrS"
    .word 0x20f                 // protocol 2.15
    .long 0
    .word 0, setup_version - setup_start - 0x200
    .byte 0, 1                  // loader; LOADED_HIGH
    .word 0
    .long 0x100000              // 32-bit entry, unless it is loaded elsewhere
    .long 0, 0, 0               // bundle, its bytes
    .word 0
    .byte 0, 0
    .long 0                     // command line
    .long 0xffffffff            // the bundle's last byte may lie here
    .long {linked}              // alignment
    .byte 1, 21                 // relocatable; least alignment, as a power of two
    .word 0x33                  // 64-bit entry, above 4 GiB if need be, kexec under EFI, from five-level paging
    .long {line} - 1            // bytes of command line
    .long 0
    .quad 0
    .long 0, 0                  // no payload
    .quad 0
    .quad {linked}              // where it would like to lie
    .long __init_bytes          // memory from where it lies on, room to move up to a multiple of 2 MiB included
    .long 0, 0
    .org 0x26c
setup_code:
    cld
    mov ax, ds
    mov es, ax
    mov di, ZERO_PAGE
    mov cx, 4096 / 2
    xor ax, ax
    rep stosw
    mov si, 0x1f1
    mov di, ZERO_PAGE + 0x1f1
    mov cx, 0x26c - 0x1f1       // the header
    rep movsb

    xor ebx, ebx                // the first entry
    mov di, ZERO_PAGE + 0x2d0
1:  mov eax, 0xe820
    mov edx, 0x534d4150
    mov ecx, 20
    int 0x15
    jc 2f
    cmp eax, 0x534d4150
    jne 2f
    inc byte ptr [ZERO_PAGE + 0x1e8]
    add di, 20
    cmp byte ptr [ZERO_PAGE + 0x1e8], E820_MAXIMUM
    jae 2f
    test ebx, ebx
    jnz 1b

2:  mov ax, 0x2401              // address line 20, by the BIOS and by port 92h
    int 0x15
    in al, 0x92
    or al, 2
    and al, 0xfe
    out 0x92, al
    cli
    xor ebx, ebx
    mov bx, ds
    shl ebx, 4
    lea eax, [ebx + setup_gdt]
    mov [setup_gdt_base], eax
    lea eax, [ebx + setup_protected]
    mov [setup_jump], eax
    lgdt [setup_gdt_register]
    mov eax, cr0
    or al, 1
    mov cr0, eax
    .byte 0x66, 0xea            // far jump to 32-bit code
setup_jump:
    .long 0
    .word 0x10
.code32
setup_protected:
    mov eax, 0x18
    mov ds, eax
    mov es, eax
    mov ss, eax
    lea esi, [ebx + ZERO_PAGE]
    jmp dword ptr [esi + 0x214]

.align 8
setup_gdt:
    .quad 0, 0
    .quad 0x00cf9b000000ffff    // 32-bit code
    .quad 0x00cf93000000ffff    // data
setup_gdt_register:
    .word 31
setup_gdt_base:
    .long 0
setup_version:
    .asciz "Baton"
    .balign 512
setup_end:

// Code assembled after this file is 64-bit again.
.code64
