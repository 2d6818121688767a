// SPDX-License-Identifier: MIT OR Apache-2.0
// The image as a Linux kernel: entries of the Linux boot protocol (2.15), for kexec, GRUB's `linux`, iPXE and QEMU.
// These come first in the image: 32-bit at its first byte, 64-bit 0x200 bytes on. setup.S has the header that states
// this. Source: the Linux kernel's documentation, "The Linux/x86 Boot Protocol" and "Zero Page".

// Fields of boot_params, the "zero page".
.set EXT_CMD_LINE_PTR, 0x0c8
.set E820_ENTRIES, 0x1e8
.set RAMDISK_IMAGE, 0x218
.set RAMDISK_SIZE, 0x21c
.set EXT_RAMDISK_IMAGE, 0x0c0
.set EXT_RAMDISK_SIZE, 0x0c4
.set CMD_LINE_PTR, 0x228
.set E820_TABLE, 0x2d0
.set E820_ENTRY_BYTES, 20

// ESI = boot_params; 32-bit protected mode, paging off.
.section .boot.head, "ax", @progbits
.code32
linux_start_32:
    mov ebx, esi
    find_image
    mov esi, {linux}
    jmp boot_common

// RSI = boot_params; 64-bit mode on the loader's page tables, which show image, boot_params and command line where they
// lie: perhaps above 4 GiB, where nothing of Baton's first steps could reach them. They are taken below, and then all
// goes on as after the 32-bit entry.
.org 0x200
.code64
linux_start_64:
    cli
    cld
    lea rbp, [rip + linux_start_32]
    mov rbx, rsi
    lea rdi, [rbp + boot_stack_bottom - {image}]
    mov ecx, 4096 / 8
    rep movsq
    mov esi, [rbx + EXT_CMD_LINE_PTR]
    shl rsi, 32
    mov eax, [rbx + CMD_LINE_PTR]
    or rsi, rax
    jz 2f
    mov ecx, {line}             // one byte more than is kept, so that the reader sees that there is more
1:  lodsb
    stosb
    test al, al
    loopnz 1b
2:  mov byte ptr [rdi], 0

    lea rax, [rbp + __image_bytes]
    shr rax, 32
    jz linux_is_low

    // The lowest multiple of 2 MiB (RDX) such that the image, which ends at R8, has room there in usable memory, clear
    // of the bundle (R9 to R10). Loaders that place things so high place all of them so, and that is mostly the first.
    mov r9d, [rbx + EXT_RAMDISK_IMAGE]
    shl r9, 32
    mov eax, [rbx + RAMDISK_IMAGE]
    or r9, rax
    mov r10d, [rbx + EXT_RAMDISK_SIZE]
    shl r10, 32
    mov eax, [rbx + RAMDISK_SIZE]
    or r10, rax
    add r10, r9
    xor edx, edx
linux_next_place:
    add rdx, {linked}
    lea r8, [rdx + __image_bytes]
    mov rax, r8
    shr rax, 32
    jnz linux_no_place
    cmp r8, r9
    jbe 3f
    cmp rdx, r10
    jb linux_next_place
3:  movzx ecx, byte ptr [rbx + E820_ENTRIES]
    lea rdi, [rbx + E820_TABLE]
4:  sub ecx, 1
    jb linux_next_place
    mov rax, [rdi]
    cmp rdx, rax
    jb 5f
    add rax, [rdi + 8]
    cmp r8, rax
    ja 5f
    cmp dword ptr [rdi + 16], 1 // usable
    je 6f
5:  add rdi, E820_ENTRY_BYTES
    jmp 4b
6:  mov rsi, rbp
    mov rdi, rdx
    mov ecx, offset __image_dwords
    rep movsd
    mov rbp, rdx
    lea rax, [rbp + linux_is_low - {linked}]
    jmp rax

linux_is_low:
    lea rbx, [rbp + boot_stack_bottom - {image}]
    lea eax, [rbx + 4096]
    mov [rbx + CMD_LINE_PTR], eax
    mov dword ptr [rbx + EXT_CMD_LINE_PTR], 0

    lea rsp, [rbp + boot_stack_top - {image}]
    lea rax, [rbp + boot_gdt - {linked}]
    push rax
    sub rsp, 2
    mov word ptr [rsp], 31
    lgdt [rsp]
    mov rax, cr4
    btr rax, 17                 // PCIDE, with which paging cannot be left
    mov cr4, rax
    push 0x10
    lea rax, [rbp + linux_leave_long_mode - {linked}]
    push rax
    retfq
.code32
linux_leave_long_mode:
    mov eax, 0x18
    mov ds, eax
    mov es, eax
    mov ss, eax
    mov eax, cr0
    btr eax, 31                 // paging, and with it four or five levels of it
    mov cr0, eax
    mov esi, {linux}
    jmp boot_common

// There is no console yet: COM1 as it was left prints why nothing goes on.
.code64
linux_no_place:
    lea rsi, [rbp + linux_no_place_text - {linked}]
7:  mov ecx, 0x10000            // checks the line status, at most
8:  mov dx, 0x3fd
    in al, dx
    test al, 0x20
    loopz 8b
    mov dx, 0x3f8
    outsb
    cmp byte ptr [rsi], 0
    jne 7b
linux_halt:
    hlt
    jmp linux_halt
linux_no_place_text:
    .asciz "Baton: cannot boot: the memory map has no room below 4 GiB for the image\r\n"
