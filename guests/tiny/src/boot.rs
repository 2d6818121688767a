// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a Multiboot loader (Multiboot 0.6.96) to 64-bit code.
//!
//! The loader starts `tiny_entry` in 32-bit protected mode without paging, EBX pointing at its information. The entry
//! maps the first 4 GiB one to one with 2 MiB pages (so that the interrupt controllers' registers are in reach), loads
//! a descriptor table, turns long mode on and calls `tiny_main`.

use core::arch::global_asm;
use core::ops::Range;
use core::slice;
use core::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a command line that are checked.
const COMMAND_LINE_LIMIT: usize = 4096;

global_asm!(
    r#"
    .section .multiboot, "awx"
    .balign 4
    .long 0x1badb002            // magic
    .long 0x2                   // flags: memory information wanted
    .long -(0x1badb002 + 0x2)   // checksum

    .code32
    .global tiny_entry
tiny_entry:
    cli
    cld
    mov esp, offset tiny_stack_top
    mov edi, ebx

    // The lowest level: 2048 pages of 2 MiB, present, writable, large.
    xor ecx, ecx
2:  mov eax, ecx
    shl eax, 21
    or eax, 0x83
    mov dword ptr [tiny_page_directories + ecx * 8], eax
    mov dword ptr [tiny_page_directories + ecx * 8 + 4], 0
    inc ecx
    cmp ecx, 2048
    jb 2b

    // Four directories in one pointer table, one pointer table in the root.
    xor ecx, ecx
    mov eax, offset tiny_page_directories + 3
3:  mov dword ptr [tiny_page_pointers + ecx * 8], eax
    mov dword ptr [tiny_page_pointers + ecx * 8 + 4], 0
    add eax, 4096
    inc ecx
    cmp ecx, 4
    jb 3b
    mov eax, offset tiny_page_pointers + 3
    mov dword ptr [tiny_page_root], eax
    mov dword ptr [tiny_page_root + 4], 0

    mov eax, offset tiny_page_root
    mov cr3, eax
    mov eax, cr4
    or eax, 0x20                // CR4.PAE
    mov cr4, eax
    mov ecx, 0xc0000080         // EFER
    rdmsr
    or eax, 0x100               // EFER.LME
    wrmsr
    mov eax, cr0
    or eax, 0x80010001          // CR0.PG, CR0.WP, CR0.PE
    mov cr0, eax
    lgdt [tiny_gdt_pointer]
    push 0x08
    mov eax, offset tiny_long_mode
    push eax
    retf

    .code64
tiny_long_mode:
    mov eax, 0x10
    mov ds, eax
    mov es, eax
    mov ss, eax
    xor eax, eax
    mov fs, eax
    mov gs, eax
    lea rsp, [rip + tiny_stack_top]
    mov edi, edi
    call tiny_main
    ud2

    .balign 8
tiny_gdt:
    .quad 0
    .quad 0x00af9b000000ffff    // 0x08: 64-bit code
    .quad 0x00cf93000000ffff    // 0x10: data
tiny_gdt_pointer:
    .word 23
    .long tiny_gdt

    .section .bss.boot, "aw", @nobits
    .balign 4096
    .global tiny_page_root, tiny_page_pointers, tiny_page_directories
tiny_page_root:        .skip 4096
tiny_page_pointers:    .skip 4096
tiny_page_directories: .skip 4 * 4096
    .skip 65536
tiny_stack_top:

    .text
    "#
);

unsafe extern "C" {
    /// The root of the page tables in force.
    pub static mut tiny_page_root: [u64; 512];
    /// The table below it.
    pub static mut tiny_page_pointers: [u64; 512];
    /// The tables below that one: entry N maps the 2 MiB at N × 2 MiB.
    pub static mut tiny_page_directories: [u64; 2048];
    /// End of the program by the linker script, its stack and tables included.
    static tiny_image_end: u8;
}

/// Address of the loader's information.
static INFORMATION: AtomicU32 = AtomicU32::new(0);

/// Keeps the address of the loader's information, before its fields are read.
pub fn install(information: u32) {
    INFORMATION.store(information, Ordering::Relaxed);
}

/// A field of the information, if its flag is set.
fn field(flag: u32, offset: usize) -> Option<u32> {
    let information = INFORMATION.load(Ordering::Relaxed) as usize;
    let field = |offset: usize| (information + offset) as *const u32;
    // SAFETY: the loader promises a structure of at least 20 bytes at the address, in memory that is mapped one to one.
    let (flags, value) = unsafe { (field(0).read_unaligned(), field(offset).read_unaligned()) };
    (flags & 1 << flag != 0).then_some(value)
}

/// Free memory: from behind the program to the end of what follows 1 MiB without a hole, in whole pages. Empty when the
/// loader does not state how much there is.
pub fn free_memory() -> Range<u64> {
    const PAGE_BYTES: u64 = 4096;
    let start = (&raw const tiny_image_end as u64).next_multiple_of(PAGE_BYTES);
    let upper_kib = field(0, 8).unwrap_or(0);
    start..start.max((1 << 20) + u64::from(upper_kib) * 1024)
}

/// The command line; empty when there is none or it is no text.
pub fn command_line() -> &'static str {
    let Some(address) = field(2, 16) else { return "" };
    let text = address as usize as *const u8;
    // SAFETY: flag 2 states that a zero-terminated text is at the address; no more than 4 KiB from there are checked,
    // all mapped, and nothing writes there after the loader.
    let bytes = unsafe { slice::from_raw_parts(text, COMMAND_LINE_LIMIT) };
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(0);
    str::from_utf8(&bytes[..length]).unwrap_or("")
}
