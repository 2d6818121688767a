// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entry points: from loaders (`boot.S`, `linux.S`, `setup.S`) and from the previous image, and the first page
//! tables.

use core::arch::global_asm;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use handover::image::{BUILD_TEXT_BYTES, LINKED_AT, NOTE_TYPE, Note, SECURITY_VERSION};
use handover::layout::{VERSION_TEXT_BYTES, padded};
use units::{PhysAddr, PhysRange};

use super::address::{BOOT_MAPPED_BYTES, DIRECT_MAP, IMAGE};
use super::hooks::HOOKS;

global_asm!(
    include_str!("boot.S"),
    include_str!("linux.S"),
    include_str!("setup.S"),
    linked = const LINKED_AT,
    image = const IMAGE + LINKED_AT,
    pvh = const boot::pvh::MAGIC,
    linux = const boot::linux::MAGIC,
    line = const boot::COMMAND_LINE_BYTES + 1,
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

/// The loader or image that started this image.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// A boot loader.
    Loader {
        /// The magic number of the protocol that it speaks.
        protocol: u32,
        /// The address of what it left.
        start_info: PhysAddr,
    },
    /// The image that ran before.
    Predecessor {
        /// The address of its hand-over record.
        record: PhysAddr,
    },
    /// The image that runs, which may replace itself by this one.
    Judge {
        /// The address of its hand-over record.
        record: PhysAddr,
        /// The address of the page that leads back.
        page: u64,
    },
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
}

#[used]
// SAFETY: the linker script puts the section into the notes' segment, where nothing but notes is.
#[unsafe(link_section = ".note.Baton")]
static NOTE: ElfNote = ElfNote {
    owner_bytes: 6,
    content_bytes: (size_of::<Note>() + BUILD_TEXT_BYTES + 2 * size_of::<u32>()) as u32,
    kind: NOTE_TYPE,
    owner: *b"Baton\0\0\0",
    entry: warm_start,
    oldest: handover::OLDEST_VERSION,
    newest: handover::VERSION,
    version: padded(env!("CARGO_PKG_VERSION")),
    build: padded(BUILD),
    trial_version: ::update::trial::VERSION,
    security_version: SECURITY_VERSION,
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
    let at = DIRECT_MAP + linked.wrapping_add(MOVED_BY.load(Ordering::Relaxed));
    // SAFETY: the slot is below 4 GiB, which these tables show at the direct map; notes are aligned to four bytes, and
    // nobody writes them.
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

/// The distance of the image from its link address: its slot's address less 2 MiB.
static MOVED_BY: AtomicU64 = AtomicU64::new(0);
/// Whether [`MOVED_BY`] is known.
static IS_PLACED: AtomicBool = AtomicBool::new(false);

/// The mark at the far end of the boot stack.
const STACK_END: u64 = 0x6461_6544_6b63_6174;

/// Marks the far end of the boot stack, which has no guard page. For an image that no loader has left words there.
pub fn mark_stack_end() {
    // SAFETY: a word of the stack that nothing uses yet: the stack has just begun at its other end.
    unsafe { (&raw mut boot_stack_bottom).write_volatile(STACK_END) };
}

/// Returns whether the boot stack has stayed within its bounds since its end was marked.
pub fn is_stack_end_intact() -> bool {
    // SAFETY: the CPU that runs on the stack has marked this word, and nobody else reads it.
    unsafe { (&raw const boot_stack_bottom).read_volatile() == STACK_END }
}

/// First Rust code, on the boot stack, on the boot page tables, interrupts off.
extern "C" fn boot_entry(protocol: u32, start_info: u32, slot: u32, entered_at: u64) -> ! {
    MOVED_BY.store(u64::from(slot).wrapping_sub(LINKED_AT), Ordering::Relaxed);
    IS_PLACED.store(true, Ordering::Relaxed);
    read_own_note();
    (HOOKS.main)(Source::Loader { protocol, start_info: PhysAddr(u64::from(start_info)) }, entered_at)
}

/// First Rust code of an image that replaces another: the same, on tables that the other image built.
/// On trial, `page` is where the way back is.
extern "C" fn warm_entry(record: u64, page: u64, entered_at: u64) -> ! {
    let record = PhysAddr(record);
    let source = if page == 0 { Source::Predecessor { record } } else { Source::Judge { record, page } };
    (HOOKS.main)(source, entered_at)
}

/// The physical address of what is at `address` in the image.
pub fn image_physical(address: u64) -> u64 {
    (address - IMAGE).wrapping_add(MOVED_BY.load(Ordering::Relaxed))
}

/// The boot page tables, on which CPUs start: below 4 GiB.
pub fn root() -> u64 {
    image_physical((&raw const boot_pml4) as u64)
}

/// Notes that the image lies in the slot at `start`, and fills its boot page tables as `boot.S` does for an image that
/// a loader put there: the first 4 GiB at 0 and at the direct map, and the image, whose slot has `bytes` bytes.
pub fn note_slot(start: PhysAddr, bytes: u64) {
    const TABLE: u64 = 0b11;
    const LARGE_PAGE: u64 = 0x83;
    const LARGE_BYTES: u64 = 2 << 20;
    MOVED_BY.store(start.0.wrapping_sub(LINKED_AT), Ordering::Relaxed);
    IS_PLACED.store(true, Ordering::Relaxed);
    read_own_note();
    let table = |symbol: *const u8| symbol.cast_mut().cast::<u64>();
    let physical = |symbol: *const u8| image_physical(symbol as u64);
    let (pml4, pdpt, high) = (&raw const boot_pml4, &raw const boot_pdpt, &raw const boot_pdpt_high);
    let low = &raw const boot_directories;
    // SAFETY: the symbols are whole tables of the image's own data, which nobody uses yet; every index is below their
    // length.
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

/// The far half of the boot stack, in which `linux.S` carries a 64-bit loader's words.
fn carried_words() -> Option<PhysRange> {
    const CARRIED_BYTES: u64 = 32 << 10;
    PhysRange::from_start(PhysAddr(image_physical(&raw const boot_stack_bottom as u64)), CARRIED_BYTES)
}

/// Physical memory as the boot page tables show it: the first 4 GiB, read-only.
///
/// Only for what is read before [`super::memory::enter`]: loader structures and firmware tables.
pub struct BootMemory;

impl boot::PhysicalMemory for BootMemory {
    fn bytes(&self, start: PhysAddr, bytes: usize) -> Option<&[u8]> {
        Self::bytes(self, start.0, bytes as u64)
    }
}

impl firmware::PhysicalMemory for BootMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), firmware::Unreadable> {
        let from = Self::bytes(self, address, into.len() as u64).ok_or(firmware::Unreadable)?;
        into.copy_from_slice(from);
        Ok(())
    }
}

impl BootMemory {
    /// The bytes at a physical address; `None` outside the first 4 GiB, in the image and in a PC's devices.
    pub fn bytes(&self, physical: u64, bytes: u64) -> Option<&'static [u8]> {
        let range = PhysRange::from_start(PhysAddr(physical), bytes)?;
        // An image that replaces another one knows its own place only from the record, which the other one has put
        // beside it.
        let is_placed = IS_PLACED.load(Ordering::Relaxed);
        let image = if is_placed { super::memory::image_frames() } else { PhysRange::default() };
        let is_carried = is_placed && carried_words().is_some_and(|carried| carried.contains_range(range));
        if range.end().0 > BOOT_MAPPED_BYTES || !(is_carried || boot::may_be_read(range, image)) {
            return None;
        }
        let start = (DIRECT_MAP + physical) as *const u8;
        // SAFETY: the boot tables map the first 4 GiB readable. `may_be_read` keeps off the image, all that this code
        // writes to, and the devices of a PC, which reading could disturb: what else a loader or firmware names is
        // memory or nothing, and stays as it is while it is read, since no frame is given away before all this has been
        // read. Of the image only the boot stack's far half is shown, which that stack does not reach before its words
        // have been read.
        Some(unsafe { core::slice::from_raw_parts(start, bytes as usize) })
    }
}
