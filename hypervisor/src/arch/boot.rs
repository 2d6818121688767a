// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entry points: from loaders (`boot.S`, `linux.S`, `setup.S`) and from the previous image, and the first page
//! tables.

mod memory;
mod source;

use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, Ordering};

use handover::image::{
    BUILD_TEXT_BYTES, IOMMU_VERSION, LINKED_AT, NEWEST_DEVICE, NEWEST_SECTION, NOTE_TYPE, Note, SECURITY_VERSION,
};
use handover::layout::{VERSION_TEXT_BYTES, padded};
use units::PhysAddr;

pub use self::memory::BootMemory;
pub use self::source::Source;
use super::address::{DIRECT_MAP, IMAGE};
use super::hooks::HOOKS;
use super::{cpu_local, image};

global_asm!(
    include_str!("boot.S"),
    include_str!("linux.S"),
    include_str!("setup.S"),
    linked = const LINKED_AT,
    image = const IMAGE + LINKED_AT,
    pvh = const boot::pvh::MAGIC,
    linux = const boot::linux::MAGIC,
    line = const boot::COMMAND_LINE_BYTES + 1,
    margin = const handover::image::PACKED_MARGIN_BYTES,
    entry = sym boot_entry,
    warm_entry = sym warm_entry
);

unsafe extern "C" {
    static boot_pml4: u8;
    static boot_pdpt: u8;
    static boot_pdpt_high: u8;
    static boot_directories: u8;
    static boot_directory_image: u8;
    static mut boot_stack_bottom: u64;
    fn warm_start() -> !;
}

/// The note that a running host reads: an ELF note with a [`Note`] in it. Packed, because notes are aligned to four
/// bytes.
#[repr(C, packed(4))]
struct ElfNote {
    owner_bytes: u32,
    content_bytes: u32,
    kind: u32,
    owner: [u8; 8],
    entry: unsafe extern "C" fn() -> !,
    oldest: u32,
    newest: u32,
    version: [u8; VERSION_TEXT_BYTES],
    build: [u8; BUILD_TEXT_BYTES],
    trial_version: u32,
    security_version: u32,
    iommu_version: u32,
    newest_device: u32,
    newest_section: u32,
}

#[used]
// SAFETY: the linker script puts the section into the notes' segment, where nothing but notes is.
#[unsafe(link_section = ".note.Baton")]
static NOTE: ElfNote = ElfNote {
    owner_bytes: 6,
    content_bytes: (size_of::<Note>() + BUILD_TEXT_BYTES + 5 * size_of::<u32>()) as u32,
    kind: NOTE_TYPE,
    owner: *b"Baton\0\0\0",
    entry: warm_start,
    oldest: handover::OLDEST_VERSION,
    newest: handover::VERSION,
    version: padded(env!("CARGO_PKG_VERSION")),
    build: padded(BUILD),
    trial_version: ::update::trial::VERSION,
    security_version: SECURITY_VERSION,
    iommu_version: IOMMU_VERSION,
    newest_device: NEWEST_DEVICE,
    newest_section: NEWEST_SECTION,
};

/// The note's statement of it: read where it lies, while the boot page tables show it.
static NEWEST_VERSION: AtomicU32 = AtomicU32::new(0);

/// The newest hand-over version that this image reads and writes: what its note states, so that a test that cuts the
/// note down has an image of old.
pub fn newest_version() -> u32 {
    NEWEST_VERSION.load(Ordering::Relaxed)
}

/// Reads the image's own note. On the boot page tables, once it is known where the image lies.
fn read_own_note() {
    // Linked below the image's code, and seen where the slot is.
    let linked = (&raw const NOTE.newest) as u64;
    let at = DIRECT_MAP + image::physical_of_linked(linked);
    // SAFETY: the slot is below 4 GiB, which these tables show at the direct map; notes are aligned to four bytes, and
    // are never written.
    NEWEST_VERSION.store(unsafe { (at as *const u32).read_volatile() }, Ordering::Relaxed);
}

/// The name that scripts/build.sh gives this build: the commit it is made from.
pub const BUILD: &str = match option_env!("BATON_BUILD") {
    Some(build) => build,
    None => "",
};

/// Returns what the linker calls this image: behind the note's head and owner.
pub fn build_id() -> [u8; 20] {
    // SAFETY: the linker script puts the note, which has 36 bytes, among the constants.
    unsafe { ((super::address::build_note() + 16) as *const [u8; 20]).read() }
}

/// The mark at the far end of the boot stack.
const STACK_END: u64 = 0x6461_6544_6b63_6174;

/// Marks the far end of the boot stack, which has no guard page. For an image that no loader has left words there.
pub fn mark_stack_end() {
    // SAFETY: a word of the stack that nothing uses yet: the stack has just begun at its other end.
    unsafe { (&raw mut boot_stack_bottom).write_volatile(STACK_END) };
}

/// Returns whether the boot stack has stayed within its bounds since its end was marked.
pub fn is_stack_end_intact() -> bool {
    // SAFETY: the CPU that runs on the stack has marked this word, and no other code reads it.
    unsafe { (&raw const boot_stack_bottom).read_volatile() == STACK_END }
}

/// First Rust code, on the boot stack, on the boot page tables, interrupts off.
extern "C" fn boot_entry(protocol: u32, start_info: u32, slot: u32, entered_at: u64) -> ! {
    cpu_local::fill_boot_area();
    image::place(PhysAddr(u64::from(slot)));
    read_own_note();
    (HOOKS.main)(Source::Loader { protocol, start_info: PhysAddr(u64::from(start_info)) }, entered_at)
}

/// First Rust code of an image that replaces another: the same, on tables that the other image built.
/// On trial, `page` is where the way back is.
extern "C" fn warm_entry(record: u64, page: u64, entered_at: u64) -> ! {
    cpu_local::fill_boot_area();
    let record = PhysAddr(record);
    let source = if page == 0 { Source::Predecessor { record } } else { Source::Judge { record, page } };
    (HOOKS.main)(source, entered_at)
}

/// The boot page tables, on which CPUs start: below 4 GiB.
pub fn root() -> u64 {
    image::physical((&raw const boot_pml4) as u64)
}

/// Notes that the image lies in the slot at `start`, and fills its boot page tables as `boot.S` does for an image that
/// a loader put there: the first 4 GiB at 0 and at the direct map, and the image, in its slot of `bytes` bytes.
pub fn note_slot(start: PhysAddr, bytes: u64) {
    const TABLE: u64 = 0b11;
    const LARGE_PAGE: u64 = 0x83;
    const LARGE_BYTES: u64 = 2 << 20;
    image::place(start);
    read_own_note();
    let table = |symbol: *const u8| symbol.cast_mut().cast::<u64>();
    let physical = |symbol: *const u8| image::physical(symbol as u64);
    let (pml4, pdpt, high) = (&raw const boot_pml4, &raw const boot_pdpt, &raw const boot_pdpt_high);
    let low = &raw const boot_directories;
    // SAFETY: the symbols are whole tables of the image's own data, which are not in use yet; every index is below
    // their length.
    unsafe {
        for index in 0..2048 {
            table(low).add(index).write((index as u64 * LARGE_BYTES) | LARGE_PAGE);
        }
        for index in 0..4 {
            table(pdpt).add(index).write((physical(low) + index as u64 * 4096) | TABLE);
        }
        let image = &raw const boot_directory_image;
        for index in 0..bytes.div_ceil(LARGE_BYTES).min(511) {
            table(image).add(1 + index as usize).write((start.0 + index * LARGE_BYTES) | LARGE_PAGE);
        }
        table(high).add(510).write(physical(image) | TABLE);
        table(pml4).write(physical(pdpt) | TABLE);
        table(pml4).add(256).write(physical(pdpt) | TABLE);
        table(pml4).add(511).write(physical(high) | TABLE);
    }
}

/// Takes all but the first GiB out of the boot page tables: what CPUs that start later find there is enough for them.
pub fn keep_first_directory() {
    let pdpt = (&raw const boot_pdpt).cast_mut().cast::<u64>();
    for index in 1..4 {
        // SAFETY: a whole table of the image's own data; no CPU is on these tables, and those that start use the first
        // GiB and the image alone.
        unsafe { pdpt.add(index).write_volatile(0) };
    }
}
