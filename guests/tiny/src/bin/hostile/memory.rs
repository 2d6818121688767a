// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses that nothing answers at, and page tables made of junk.

use core::arch::asm;
use tiny::answers::{Wrong, expect, expect_exception};
use tiny::attempt::{INVALID_OPCODE, PAGE_FAULT};
use tiny::boot::{tiny_page_directories, tiny_page_pointers, tiny_page_root};
use tiny::cpu;
use tiny::random::Random;

/// Above the memory a tiny guest is given, in the PCI hole, and between the interrupt controllers.
const HOLES: [u64; 4] = [0xb800_0000, 0xd123_4560, 0xfe80_0000, 0xfed8_0000];
/// The page directory entry of 1 GiB: nothing of the guest's own is there.
const FREE_ENTRY: usize = 512;
const LARGE_PAGE: u64 = 2 << 20;
const PRESENT: u64 = 1;

/// Reading a hole gives ones, whatever the width, and writing it changes nothing.
pub fn unknown_addresses() -> Result<(), Wrong> {
    for address in HOLES {
        read_all_widths(address)?;
        cpu::write_memory(address, 0x1234_5678);
        read_all_widths(address)?;
    }
    Ok(())
}

fn read_all_widths(address: u64) -> Result<(), Wrong> {
    // SAFETY: nothing of Rust's is at these addresses; all of the first 4 GiB is mapped.
    let (byte, word, quad) = unsafe {
        (
            (address as *const u8).read_volatile(),
            (address as *const u16).read_volatile(),
            (address as *const u64).read_volatile(),
        )
    };
    expect("byte at", address, byte.into(), u8::MAX.into())?;
    expect("word at", address, word.into(), u16::MAX.into())?;
    expect("double word at", address, cpu::read_memory(address).into(), u32::MAX.into())?;
    expect("quad word at", address, quad, u64::MAX)
}

/// Entries of junk: with reserved bits set the walk ends in a page fault that reports them; not present, in one that
/// does not.
pub fn own_tables() -> Result<(), Wrong> {
    const RESERVED_BITS: u64 = 0x1f << 13; // of a large page's address
    let mut random = Random::new(7);
    for entry in FREE_ENTRY..FREE_ENTRY + 32 {
        let present = random.draw() & PRESENT;
        set_directory_entry(entry, random.draw() & !0xfff | RESERVED_BITS | 0x82 | present);
        let address = entry as u64 * LARGE_PAGE;
        expect_exception("page", address, PAGE_FAULT, || cpu::read_memory(address))?;
        expect_exception("page", address, PAGE_FAULT, || cpu::write_memory(address, 0))?;
    }
    (FREE_ENTRY..FREE_ENTRY + 32).for_each(|entry| set_directory_entry(entry, entry as u64 * LARGE_PAGE + 0x83));
    Ok(())
}

fn set_directory_entry(entry: usize, value: u64) {
    // SAFETY: the table is only ever accessed through raw pointers, and the entry maps nothing of Rust's.
    unsafe { (&raw mut tiny_page_directories).cast::<u64>().add(entry).write_volatile(value) };
    flush();
}

fn flush() {
    // SAFETY: loads the root that is loaded.
    unsafe { asm!("mov {0}, cr3", "mov cr3, {0}", out(reg) _, options(nostack, preserves_flags)) };
}

/// A hole has no instructions: all ones are an invalid one. A host that does not fetch from holes stops the guest.
pub fn execute_hole() -> Result<(), Wrong> {
    expect_exception("code at", HOLES[1], INVALID_OPCODE, || {
        // SAFETY: no code is there; an attempt survives what comes of it.
        unsafe { asm!("call {}", in(reg) HOLES[1], clobber_abi("C")) }
    })
}

/// A page directory in a hole: its entries read as ones, whose reserved bits are a page fault. A host that does not
/// walk through holes stops the guest.
pub fn tables_in_hole() -> Result<(), Wrong> {
    const THIRD_GIBIBYTE: usize = 2;
    let pointer = (&raw mut tiny_page_pointers).cast::<u64>();
    // SAFETY: as set_directory_entry; the third GiB holds nothing of Rust's.
    unsafe { pointer.add(THIRD_GIBIBYTE).write_volatile(0xd000_0000 | 3) };
    flush();
    expect_exception("page", 0x8000_0000, PAGE_FAULT, || cpu::read_memory(0x8000_0000))
}

/// Junk in the root: the next instruction cannot be fetched, nor any handler.
pub fn all_tables() -> Result<(), Wrong> {
    let mut random = Random::new(3);
    for entry in 0..512 {
        // SAFETY: within the table; nothing comes after the flush.
        unsafe { (&raw mut tiny_page_root).cast::<u64>().add(entry).write_volatile(random.draw()) };
    }
    flush();
    Err(Wrong::new("address", 0, cpu::read_memory(0).into()))
}
