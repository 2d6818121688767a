// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's address space.
//!
//! | from | mapping | rights |
//! |---|---|---|
//! | `0xffff_8000_0000_0000` | direct map: all memory but the image | RW, never X |
//! | `0xffff_c000_0000_0000` | stacks, a guard page under each | RW, never X |
//! | `0xffff_c100_0000_0000` | stacks of exceptions, likewise | RW, never X |
//! | `0xffff_d000_0000_0000` | device registers, uncached | RW, never X |
//! | `0xffff_e000_0000_0000` | the switch pages, while an image leaves: code that outlives it | code RX, the rest RW |
//! | `0xffff_ffff_8000_0000` | the image | text RX, constants R, data RW |

/// Physical address `p` is seen at `DIRECT_MAP + p`.
pub const DIRECT_MAP: u64 = 0xffff_8000_0000_0000;
/// Stacks begin here.
pub const STACKS: u64 = 0xffff_c000_0000_0000;
/// Device registers are mapped from here on.
pub const DEVICES: u64 = 0xffff_d000_0000_0000;
/// The switch pages: mapped here in both images' tables and in its own.
pub const SWITCH_PAGES: u64 = 0xffff_e000_0000_0000;
/// The image's link base: symbol address less physical address.
pub const IMAGE: u64 = 0xffff_ffff_8000_0000;

/// A stack's bytes. A guest with disks that starts takes most: its devices are made there, some 50 KiB below the loop.
pub const STACK_BYTES: u64 = 80 * 1024;
/// From one stack to the next: the stack and its guard page, rounded up.
pub const STACK_STRIDE: u64 = 128 * 1024;

/// Stacks of exceptions begin here.
pub const INTERRUPT_STACKS: u64 = STACKS + (1 << 40);
/// Bytes of an exception's stack: nothing runs on it but the report.
pub const INTERRUPT_STACK_BYTES: u64 = 16 * 1024;
/// From one to the next: the stack and its guard page, rounded up.
pub const INTERRUPT_STACK_STRIDE: u64 = 32 * 1024;

/// Memory that the boot page tables show: the direct map is complete only after [`super::memory::enter`].
pub const BOOT_MAPPED_BYTES: u64 = 4 << 30;

macro_rules! linker_symbols {
    ($($name:ident => $symbol:ident: $what:literal;)*) => {
        unsafe extern "C" { $(static $symbol: u8;)* }
        $(
            #[doc = $what]
            pub fn $name() -> u64 {
                (&raw const $symbol) as u64
            }
        )*
    };
}

linker_symbols! {
    image_start => __image_start: "First byte of the image.";
    image_end => __image_end: "First byte after the image.";
    text_start => __text_start: "First byte of the code.";
    text_end => __text_end: "First byte after the code.";
    rodata_start => __rodata_start: "First byte of the constants.";
    rodata_end => __rodata_end: "First byte after the constants.";
    build_note => __build_note: "The note with the linker's build ID.";
    percpu_start => __percpu_start: "First byte of the per-CPU variables' initial values.";
    percpu_end => __percpu_end: "First byte after them.";
    percpu_boot => __percpu_boot: "First byte of the boot CPU's variables.";
    boot_only_start => __bss_end: "First byte of the part that only the boot needs; it ends with the boot stack.";
    boot_stack_start => boot_stack_bottom: "First byte of the boot stack.";
    boot_stack_end => boot_stack_top: "First byte after the boot stack.";
    data_start => __data_start: "First byte of the data.";
    data_end => __data_end: "First byte after the data.";
}
