// SPDX-License-Identifier: MIT OR Apache-2.0
// From a loader's entry to 64-bit Rust at the high addresses. A loader enters with a pointer in 32-bit protected mode,
// paging off, flat segments, without a stack: by PVH (here), by Multiboot2 (here), by the Linux boot protocol
// (linux.S). Some instructions for each lead to boot_common:
//   EBX = what the loader left, ESI = the magic number of its protocol, EBP = where the image's first byte lies.
// The image may lie anywhere below 4 GiB: what is addressed before paging is addressed from EBP on.
// Sources: the Xen project's "x86/HVM direct boot ABI"; Multiboot2 specification 2.0; AMD APM vol. 2, section 14.6
// (long mode).

.section .note.Xen, "a", @note
    .long 4, 4, 18              // name and descriptor bytes, XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .long pvh_start

// Finds out where the image lies, by a call with two words of what EBX points to as its stack; they are as before
// afterwards.
.macro find_image
    mov eax, [ebx + 4]
    lea esp, [ebx + 8]
    call here\@
here\@:
    pop ebp
    sub ebp, offset here\@ - {linked}
    mov [ebx + 4], eax
.endm

.section .boot, "ax", @progbits
.align 8
multiboot2_header:
    .long 0xe85250d6, 0         // magic, i386 protected mode
    .long multiboot2_header_end - multiboot2_header
    .long -(0xe85250d6 + (multiboot2_header_end - multiboot2_header))
    .word 1, 1                  // wanted, optional: command line, modules, memory map, ACPI 1.0 and later, EFI memory map
    .long 32, 1, 3, 6, 14, 15, 17
    .word 3, 0                  // entry
    .long 12, multiboot2_start, 0
    .word 10, 1                 // relocatable, optional: from 2 MiB to 4 GiB, in steps of 2 MiB, as low as possible
    .long 24, {linked}, 0xffffffff, {linked}, 1
    .word 0, 0
    .long 8
multiboot2_header_end:

.code32
.global pvh_start
pvh_start:
    find_image
    mov esi, {pvh}
    jmp boot_common

multiboot2_start:
    mov esi, eax                // the Multiboot version of the loader
    find_image
boot_common:
    cli
    cld
    test ebp, {linked} - 1
    jz boot_relocated

    // Not at a multiple of 2 MiB: the image moves up to the next one. A loader that loads it so has left it room.
    lea edx, [ebp + {linked} - 1]
    and edx, -{linked}
    mov eax, esi
    mov ecx, offset __file_dwords
    lea esi, [ebp + ecx * 4 - 4]
    lea edi, [edx + ecx * 4 - 4]
    std
    rep movsd
    cld
    mov esi, eax
    mov ebp, edx
    lea eax, [ebp + boot_relocated - {linked}]
    jmp eax

boot_relocated:
    lea esp, [ebp + boot_stack_top - {image}]
    rdtsc                       // the time of the first instruction in the image's place
    push edx
    push eax
    mov ecx, [ebp + packed_bytes - {linked}]
    test ecx, ecx
    jz boot_unpacked

    // All behind the first page is packed: one LZ4 block (LZ4 Block Format Description, 1.5.1). It moves up until it
    // ends {margin} bytes behind what comes out of it: no byte of it is then overwritten before it is read, which
    // `baton image pack` has tried.
    push esi
    lea esi, [ebp + ecx + 4096 - 1]
    lea edi, [ebp + __file_end - {image} + {margin} - 1]
    std
    rep movsb
    cld
    lea esi, [edi + 1]
    lea eax, [ebp + __file_end - {image}]
    push eax                    // the end
    lea edi, [ebp + 4096]
unpack_sequence:
    lodsb                       // the token: lengths of literals and of a match
    movzx edx, al
    mov ecx, edx
    shr ecx, 4
    cmp ecx, 15
    jne 2f
1:  lodsb
    movzx eax, al
    add ecx, eax
    cmp eax, 255
    je 1b
2:  rep movsb
    cmp edi, [esp]
    jae unpack_end              // the last sequence has no match
    lodsw                       // how far back it is
    movzx eax, ax
    mov ecx, edx
    and ecx, 15
    mov edx, eax
    cmp ecx, 15
    jne 4f
3:  lodsb
    movzx eax, al
    add ecx, eax
    cmp eax, 255
    je 3b
4:  add ecx, 4
    mov eax, esi
    mov esi, edi
    sub esi, edx
    rep movsb                   // byte after byte: it may reach into what it copies
    mov esi, eax
    jmp unpack_sequence
unpack_end:
    pop eax
    pop esi

boot_unpacked:
    lea edi, [ebp + __bss_start - {image}]
    mov ecx, offset __bss_dwords
    xor eax, eax
    rep stosd

    // The first 4 GiB in 2 MiB pages, seen at 0 (until the jump) and at the direct map; the image at its own addresses.
    lea edi, [ebp + boot_directories - {image}]
    mov eax, 0x83               // present, writable, 2 MiB
    mov ecx, 2048
1:  mov [edi], eax
    add edi, 8
    add eax, 0x200000
    loop 1b

    lea edi, [ebp + boot_directory_image - {image} + 8]
    lea eax, [ebp + 0x83]
    mov ecx, offset __image_large_pages
2:  mov [edi], eax
    add edi, 8
    add eax, 0x200000
    loop 2b

    lea edi, [ebp + boot_pdpt - {image}]
    lea eax, [ebp + boot_directories - {image} + 3]
    mov ecx, 4
3:  mov [edi], eax
    add edi, 8
    add eax, 0x1000
    loop 3b

    lea eax, [ebp + boot_directory_image - {image} + 3]
    mov [ebp + boot_pdpt_high - {image} + 510 * 8], eax
    lea eax, [ebp + boot_pdpt - {image} + 3]
    mov [ebp + boot_pml4 - {image}], eax
    mov [ebp + boot_pml4 - {image} + 256 * 8], eax
    lea eax, [ebp + boot_pdpt_high - {image} + 3]
    mov [ebp + boot_pml4 - {image} + 511 * 8], eax

    lea eax, [ebp + boot_pml4 - {image}]
    mov cr3, eax
    mov eax, 0x20               // CR4: PAE and nothing of what ran before
    mov cr4, eax
    mov ecx, 0xc0000080         // EFER: LME, NXE
    mov eax, 0x900
    xor edx, edx
    wrmsr
    mov eax, 0x80010033         // CR0: PG, WP, NE, ET, MP, PE; caches on
    mov cr0, eax

    lea eax, [ebp + boot_gdt - {linked}]
    push eax
    sub esp, 2
    mov word ptr [esp], 31
    lgdt [esp]
    lea eax, [ebp + boot_long_mode - {linked}]
    push 8
    push eax
    retf
.code64
boot_long_mode:
    xor eax, eax
    mov ds, eax
    mov es, eax
    mov ss, eax
    mov fs, eax
    mov gs, eax
    mov rax, offset boot_high
    jmp rax

// For `baton image pack`: the mark by which it finds the bytes of the block, none in an image that is not packed.
.align 8
packed_mark:
    .ascii "BatonLZ4"
packed_bytes:
    .long 0

.align 8
boot_gdt:
    .quad 0
    .quad 0x00af9b000000ffff    // 64-bit code
    .quad 0x00cf9b000000ffff    // 32-bit code, on the way from a 64-bit loader
    .quad 0x00cf93000000ffff    // data, likewise

.section .text
boot_high:
    mov rsp, offset boot_stack_top
    mov edi, esi
    mov esi, ebx
    mov edx, ebp
    mov rcx, [rsp - 8]
    xor ebp, ebp                // the backtrace ends here
    call {entry}
    ud2

// The entry from the previous image (handover::image::Note): 64-bit mode, RDI = the record's physical address, RSI =
// this CPU's page if the image is on trial, else 0 and interrupts are off; on page tables that show the image and
// the first 4 GiB as the boot tables do, everything zero that .bss holds.
.global warm_start
warm_start:
    rdtsc
    shl rdx, 32
    or rdx, rax
    mov rsp, offset boot_stack_top
    xor ebp, ebp
    call {warm_entry}
    ud2

.section .bss
.align 4096
.global boot_pml4
.global boot_pdpt
.global boot_pdpt_high
boot_pml4: .skip 4096
boot_pdpt: .skip 4096
boot_pdpt_high: .skip 4096
.global boot_directory_image
boot_directory_image: .skip 4096 // the image in its slot

// Not cleared: nothing on a stack need be zero, and a 64-bit loader's words are carried in its far end (linux.S).
.section .boot_stack, "aw", @nobits
.align 4096
.global boot_stack_bottom
.global boot_stack_top
boot_stack_bottom: .skip 131072
boot_stack_top:
