// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's memory: its frames and its page tables.

use core::arch::asm;
use core::sync::atomic::AtomicU64;

use frames::records::{Block, Record, Shape};
use frames::{FrameRange, Frames, LEDGER_SLOTS, ScrubPiece};
use paging::{Flags, Host, MapError, TableMemory, Tables};
use spin::Mutex;
use units::{PAGE_BYTES, PageSize, PhysAddr, PhysRange};

use super::address::{self, BOOT_MAPPED_BYTES, DIRECT_MAP};
pub use super::stack::{is_stack_guard, new_interrupt_stack, new_stack, stack_around};
use super::{boot, cpu, switch_pages};

/// All physical memory by owner.
pub static FRAMES: Mutex<Frames<'static>> = Mutex::new(Frames::new());
static HOST_TABLES: Mutex<Option<Tables<Host>>> = Mutex::new(None);

/// The reason for which the host's address space could not be built. Fatal.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "the refusal's details are for the panic's message")]
pub enum MemoryError {
    /// Less memory than the host itself needs.
    OutOfMemory,
    /// A mapping was refused.
    Map(MapError),
}

impl From<MapError> for MemoryError {
    fn from(error: MapError) -> Self {
        Self::Map(error)
    }
}

/// Frames for page tables, zeroed, through the direct map. `limit` keeps them where the boot tables can show them.
pub struct TableFrames {
    limit: u64,
}

impl TableFrames {
    /// Tables anywhere in memory: after [`enter`].
    pub const fn anywhere() -> Self {
        Self { limit: u64::MAX }
    }
}

impl TableMemory for TableFrames {
    fn allocate(&mut self) -> Option<PhysAddr> {
        let range = FRAMES.lock().allocate_below(PAGE_BYTES, PageSize::Kib4, PhysAddr(self.limit)).ok()?;
        let frame = range.leak().start();
        // SAFETY: the frame was just allocated: nobody else uses it, and the direct map shows it.
        unsafe { core::ptr::write_bytes((DIRECT_MAP + frame.0) as *mut u8, 0, PAGE_BYTES as usize) };
        Some(frame)
    }

    fn read(&self, table: PhysAddr, index: usize) -> u64 {
        // SAFETY: `table` is a table of ours (a whole frame in the direct map); the index is masked into it.
        unsafe { core::ptr::read_volatile(entry(table, index)) }
    }

    fn write(&mut self, table: PhysAddr, index: usize, value: u64) {
        // SAFETY: as in `read`; tables are changed by one CPU at a time (their owner's lock).
        unsafe { core::ptr::write_volatile(entry(table, index), value) }
    }

    fn free(&mut self, table: PhysAddr) {
        if let Some(range) = PhysRange::from_start(table, PAGE_BYTES).and_then(FrameRange::adopt) {
            release(range);
        }
    }
}

fn entry(table: PhysAddr, index: usize) -> *mut u64 {
    ((DIRECT_MAP + table.0) as *mut u64).wrapping_add(index & 511)
}

/// Opens the ledger of all memory, kept in `room`: at least `frames::LEDGER_BYTES` below 4 GiB that nobody else uses,
/// for ever.
pub fn open_ledger(room: PhysRange) {
    let start = (DIRECT_MAP + room.start().0) as *mut PhysRange;
    // SAFETY: the room is whole frames, shown by the boot tables and by those that follow at this address, and belongs
    // to the ledger alone, for ever; each slot is written before there is a reference to it.
    let slots = unsafe {
        (0..LEDGER_SLOTS).for_each(|index| start.add(index).write(PhysRange::default()));
        core::slice::from_raw_parts_mut(start, LEDGER_SLOTS)
    };
    *FRAMES.lock() = Frames::in_slots(slots);
}

/// Makes records and blocks of frames, for ever: so many records, of which nothing is written, and behind them the
/// blocks.
pub fn records_in(frames: FrameRange, shape: Shape) -> (&'static [Record], &'static [Block]) {
    assert!(frames.bytes() >= shape.bytes(), "the frames hold as many as that");
    let start = DIRECT_MAP + frames.leak().start().0;
    let blocks = (start + shape.record_bytes()) as *mut Block;
    // SAFETY: the frames were just allocated, are aligned to 4 KiB, and are nobody else's, for ever; the direct map
    // shows them. Both types are atomics, of which any bits are a value; a block's first value is zero.
    unsafe {
        core::ptr::write_bytes(blocks, 0, shape.blocks);
        (
            core::slice::from_raw_parts(start as *const Record, shape.records),
            core::slice::from_raw_parts(blocks, shape.blocks),
        )
    }
}

/// Writes zeros over a piece of memory that is being scrubbed.
pub fn clear_piece(piece: &mut ScrubPiece) {
    let range = piece.range();
    // SAFETY: the holder of the piece is the only one to use it; the direct map shows it.
    unsafe { core::ptr::write_bytes((DIRECT_MAP + range.start().0) as *mut u8, 0, range.bytes() as usize) };
}

/// Returns what frames hold, for their owner.
pub fn bytes_of(frames: &mut FrameRange) -> &mut [u8] {
    // SAFETY: the holder of the range owns the frames, and is borrowed for as long as the bytes; the direct map shows
    // them.
    unsafe { core::slice::from_raw_parts_mut((DIRECT_MAP + frames.start().0) as *mut u8, frames.bytes() as usize) }
}

/// Frames that are given back when their owner is dropped.
pub struct OwnedFrames(Option<FrameRange>);

impl OwnedFrames {
    /// Owns these.
    pub fn new(frames: FrameRange) -> Self {
        Self(Some(frames))
    }

    /// Returns where they are.
    pub fn range(&self) -> PhysRange {
        self.0.as_ref().map(FrameRange::range).unwrap_or_default()
    }

    /// Returns what they hold.
    pub fn bytes(&self) -> &[u8] {
        let Some(frames) = &self.0 else { return &[] };
        // SAFETY: the holder of the range owns the frames, and is borrowed for as long as the bytes; the direct map
        // shows them.
        unsafe { core::slice::from_raw_parts((DIRECT_MAP + frames.start().0) as *const u8, frames.bytes() as usize) }
    }

    /// They are nobody's any more, for good.
    pub fn leak(mut self) {
        self.0.take().map(FrameRange::leak);
    }

    /// Returns what they hold.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut().map(bytes_of).unwrap_or_default()
    }
}

impl Drop for OwnedFrames {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(release);
    }
}

/// Gives frames back.
pub fn release(range: FrameRange) {
    if let Err(error) = FRAMES.lock().free(range) {
        log::error!("frames: {error}");
    }
}

/// Zeroed frames in the direct map, for ever: what the CPU itself reads or writes.
pub fn permanent_frames(bytes: u64) -> Option<PhysAddr> {
    let range = FRAMES.lock().allocate(bytes, PageSize::Kib4).ok()?.leak();
    // SAFETY: the frames were just allocated: nobody else uses them, and the direct map shows them.
    unsafe { core::ptr::write_bytes((DIRECT_MAP + range.start().0) as *mut u8, 0, range.bytes() as usize) };
    Some(range.start())
}

/// Zeroed frames in the direct map, for ever, as words that any CPU may read and write; and where they are.
pub fn permanent_words(bytes: u64) -> Option<(PhysAddr, &'static [AtomicU64])> {
    let start = permanent_frames(bytes)?;
    // SAFETY: whole frames, aligned and mapped for ever, which nobody else was given; every bit pattern is a word.
    let words = unsafe { core::slice::from_raw_parts((DIRECT_MAP + start.0) as *const AtomicU64, bytes as usize / 8) };
    Some((start, words))
}

/// Kept frames as words that any CPU may read and write, for as long as this image runs.
pub fn adopted_words(frames: FrameRange) -> &'static [AtomicU64] {
    let range = frames.leak();
    // SAFETY: whole frames that the image before kept and nobody else is given (they are leaked here), aligned and
    // mapped for ever; every bit pattern is a word.
    unsafe {
        core::slice::from_raw_parts((DIRECT_MAP + range.start().0) as *const AtomicU64, range.bytes() as usize / 8)
    }
}

/// Returns what a loader's module holds; `None` unless all of it is in the direct map, and none of it is the image,
/// which changes.
pub fn module_bytes(range: PhysRange) -> Option<&'static [u8]> {
    if range.intersection(image_frames()).is_some() {
        return None;
    }
    let tables = HOST_TABLES.lock();
    let tables = tables.as_ref()?;
    let frames = TableFrames::anywhere();
    let last = range.end().0.checked_sub(1)?;
    let pages = (range.start().0..=last).step_by(PAGE_BYTES as usize).chain([last]);
    if !pages.map(|at| tables.translate(&frames, DIRECT_MAP + at)).all(|mapping| mapping.is_some()) {
        return None;
    }
    // SAFETY: all of it is mapped; it is not the image, and the module's frames are reserved for ever, so nobody writes
    // them.
    Some(unsafe { core::slice::from_raw_parts((DIRECT_MAP + range.start().0) as *const u8, range.bytes() as usize) })
}

/// Device pages to map: virtual address, physical address.
pub type DevicePage = (u64, u64);

/// Builds the host's own page tables and switches to them: the direct map of `memory`, the image with its rights, the
/// device pages, and the switch pages that the image may still be on. W^X holds from here on.
pub fn enter(
    memory: impl Iterator<Item = PhysRange>,
    devices: &[DevicePage],
    switch_pages: Option<PhysRange>,
) -> Result<(), MemoryError> {
    let mut frames = TableFrames { limit: BOOT_MAPPED_BYTES };
    let mut tables = Tables::new(&mut frames, largest_page())?;
    let data = Flags::WRITABLE | Flags::NO_EXECUTE | Flags::GLOBAL;
    for range in memory {
        for part in without_image(range) {
            tables.map(&mut frames, DIRECT_MAP + part.start().0, part.start(), part.bytes(), data)?;
        }
    }
    map_image(&mut tables, &mut frames)?;
    for &(at, physical) in devices {
        tables.map(&mut frames, at, PhysAddr(physical), PAGE_BYTES, data | Flags::CACHE_DISABLE)?;
    }
    if let Some(switch_pages) = switch_pages {
        switch_pages::show_inherited(&mut tables, &mut frames, switch_pages)?;
    }
    switch_to(tables.root());
    *HOST_TABLES.lock() = Some(tables);
    Ok(())
}

/// Changes the host's tables; `None` if there are none yet.
pub fn with_host_tables<T>(change: impl FnOnce(&mut Tables<Host>, &mut TableFrames) -> T) -> Option<T> {
    HOST_TABLES.lock().as_mut().map(|tables| change(tables, &mut TableFrames::anywhere()))
}

fn map_image(tables: &mut Tables<Host>, frames: &mut TableFrames) -> Result<(), MapError> {
    let sections = [
        (address::text_start()..address::text_end(), Flags::GLOBAL),
        (address::rodata_start()..address::rodata_end(), Flags::GLOBAL | Flags::NO_EXECUTE),
        (address::data_start()..address::data_end(), Flags::GLOBAL | Flags::NO_EXECUTE | Flags::WRITABLE),
    ];
    for (range, flags) in sections {
        let physical = PhysAddr(boot::image_physical(range.start));
        tables.map(frames, range.start, physical, range.end - range.start, flags)?;
    }
    Ok(())
}

/// The image's frames: never part of the direct map. What lies right behind them may be a loader's module.
pub fn image_frames() -> PhysRange {
    let (start, end) = (boot::image_physical(address::image_start()), boot::image_physical(address::image_end()));
    PhysRange::new(PhysAddr(start), PhysAddr(end)).unwrap_or_else(|| unreachable!("the image ends after its start"))
}

fn without_image(range: PhysRange) -> impl Iterator<Item = PhysRange> {
    let image = image_frames();
    let below = PhysRange::new(range.start(), range.end().min(image.start()));
    let above = PhysRange::new(range.start().max(image.end()), range.end());
    below.into_iter().chain(above).filter(|part| !part.is_empty())
}

/// The largest pages that this CPU has.
pub fn largest_page() -> PageSize {
    let has_gib_pages = cpu::cpuid(0x8000_0001, 0).edx & (1 << 26) != 0;
    if has_gib_pages { PageSize::Gib1 } else { PageSize::Mib2 }
}

/// The host's tables show so many bytes of the switch pages no more.
pub fn hide_switch_pages(bytes: u64) {
    switch_pages::trial::hide(bytes);
}

fn switch_to(root: PhysAddr) {
    // SAFETY: the new tables show the running code, its data, the boot stack and (through the direct map) all frames at
    // the addresses the old ones did.
    unsafe { asm!("mov cr3, {}", in(reg) root.0, options(nostack, preserves_flags)) };
    protect_this_cpu();
}

/// Loads the host's page tables on the calling CPU.
pub fn host_root() -> u64 {
    HOST_TABLES.lock().as_ref().map_or(0, |tables| tables.root().0)
}

/// Turns on what the calling CPU has of WP, NX, global pages, SMEP, SMAP and machine checks.
pub fn protect_this_cpu() {
    const MCE: u64 = 1 << 6;
    const PGE: u64 = 1 << 7;
    const OSXSAVE: u64 = 1 << 18;
    const SMEP: u64 = 1 << 20;
    const SMAP: u64 = 1 << 21;
    const OSFXSR: u64 = 0b11 << 9;
    let features = cpu::cpuid(7, 0).ebx;
    let has_xsave = cpu::cpuid(1, 0).ecx & (1 << 26) != 0;
    let has_machine_checks = cpu::cpuid(1, 0).edx & (1 << 7) != 0;
    let bits = PGE
        | OSFXSR
        | if has_machine_checks { MCE } else { 0 }
        | if features & (1 << 7) != 0 { SMEP } else { 0 }
        | if features & (1 << 20) != 0 { SMAP } else { 0 }
        | if has_xsave { OSXSAVE } else { 0 };
    // SAFETY: the CPU has each feature; no page is a user page, so SMEP and SMAP forbid nothing that is done.
    // OSFXSR and OSXSAVE let guests' registers be saved and restored; the hypervisor itself uses none of them.
    unsafe {
        asm!("mov {t}, cr4", "or {t}, {b}", "mov cr4, {t}", t = out(reg) _, b = in(reg) bits, options(nostack));
        asm!("mov {t}, cr0", "or {t}, {wp}", "and {t}, {not_em_ts}", "or {t}, 2", "mov cr0, {t}",
            t = out(reg) _, wp = in(reg) 1u64 << 16, not_em_ts = in(reg) !0xcu64, options(nostack));
    }
}

/// The calling CPU flushes every translation, global ones too: they go when CR4.PGE changes (AMD APM vol. 2,
/// section 5.5.3).
pub fn flush_translations() {
    const PGE: u64 = 1 << 7;
    // SAFETY: the bit is put back as it was, and page tables show the same memory with and without it.
    unsafe {
        asm!("mov {old}, cr4", "mov {new}, {old}", "xor {new}, {pge}", "mov cr4, {new}", "mov cr4, {old}",
            old = out(reg) _, new = out(reg) _, pge = const PGE, options(nostack));
    }
}

/// Writes a word of the first page of memory, where the memory map calls it usable.
pub fn write_low(physical: u64, value: u32) {
    let is_mapped = {
        let tables = HOST_TABLES.lock();
        let at = DIRECT_MAP + physical;
        tables.as_ref().is_some_and(|tables| tables.translate(&TableFrames::anywhere(), at).is_some())
    };
    if is_mapped && physical < PAGE_BYTES - 4 {
        // SAFETY: mapped, in the first page, which is reserved from the frame allocator.
        unsafe { core::ptr::write_unaligned((DIRECT_MAP + physical) as *mut u32, value) };
    }
}

/// Maps new frames at a virtual address; they are never given back.
pub fn map_new(at: u64, bytes: u64, flags: Flags) -> Result<(), MemoryError> {
    let range = FRAMES.lock().allocate(bytes, PageSize::Kib4).map_err(|_| MemoryError::OutOfMemory)?.leak();
    let mut tables = HOST_TABLES.lock();
    let tables = tables.as_mut().ok_or(MemoryError::OutOfMemory)?;
    Ok(tables.map(&mut TableFrames::anywhere(), at, range.start(), bytes, flags)?)
}

/// Maps a device's registers, uncached.
pub fn map_device(at: u64, physical: u64, bytes: u64) -> Result<(), MemoryError> {
    let flags = Flags::WRITABLE | Flags::NO_EXECUTE | Flags::GLOBAL | Flags::CACHE_DISABLE;
    let mapped = with_host_tables(|tables, frames| tables.map(frames, at, PhysAddr(physical), bytes, flags));
    Ok(mapped.ok_or(MemoryError::OutOfMemory)??)
}

/// Leaves the current stack for good and goes on in `next` on another one.
pub fn continue_on(stack_top: u64, next: extern "C" fn() -> !) -> ! {
    // SAFETY: the stack was just made and belongs to nobody else; `next` never returns, so nothing on the old one is
    // used again. RBP = 0 ends backtraces.
    unsafe { asm!("mov rsp, {}", "xor ebp, ebp", "call {}", "ud2", in(reg) stack_top, in(reg) next, options(noreturn)) }
}
