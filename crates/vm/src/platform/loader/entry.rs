// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two states a kernel starts in: 64-bit mode with an identity map, or 32-bit protected mode without paging.

use alloc::vec;

use super::structures::Structures;
use crate::addr::Gpa;
use crate::memory::{GuestMemory, OutOfRange};
use crate::platform::layout::boot;
use crate::vcpu::{AccessRights, EntryState, Segment, TableRegister, cr0, cr4, efer};

/// `__BOOT_CS` of the Linux boot protocol.
const CODE_SELECTOR: u16 = 0x10;
/// `__BOOT_DS` of the Linux boot protocol.
const DATA_SELECTOR: u16 = 0x18;

const TASK_LIMIT: u32 = 0x67;

/// RFLAGS with interrupts disabled: only the bit that is always one.
const RFLAGS_CLEAR: u64 = 1 << 1;

const PAGE_BYTES: usize = 0x1000;
const LARGE_PAGE_BYTES: u64 = 0x20_0000;
const DIRECTORIES: u64 = 4;
/// Page-table entry: present and writable.
const TABLE: u64 = 0x3;
/// Page-directory entry: present, writable, accessed, dirty, 2 MiB page.
const LARGE_PAGE: u64 = 0xe3;

/// The state of the Linux 64-bit entry (boot protocol, "64-bit boot protocol"), with RSI as given.
pub(super) fn long_mode(memory: &impl GuestMemory, rip: u64, rsi: u64) -> Result<EntryState, OutOfRange> {
    write_gdt(memory, boot::GDT, AccessRights::CODE_64)?;
    write_identity_map(memory)?;
    let mut state = flat(rip, AccessRights::CODE_64, boot::GDT);
    state.rsp = boot::STACK_TOP.0;
    state.gprs[crate::vcpu::Gpr::Rsi as usize] = rsi;
    state.cr0 |= cr0::PG;
    state.cr3 = boot::PAGE_TABLES.0;
    state.cr4 = cr4::PAE;
    state.efer = efer::LME | efer::LMA;
    Ok(state)
}

/// The state that PVH and Multiboot kernels start in: 32-bit, flat, no paging, with EAX as given and EBX at the
/// information.
pub(super) fn protected_mode(
    memory: &impl GuestMemory,
    rip: u32,
    eax: u32,
    structures: &Structures,
) -> Result<EntryState, OutOfRange> {
    write_gdt(memory, structures.gdt, AccessRights::CODE_32)?;
    let mut state = flat(rip.into(), AccessRights::CODE_32, structures.gdt);
    state.gprs[crate::vcpu::Gpr::Rax as usize] = eax.into();
    state.gprs[crate::vcpu::Gpr::Rbx as usize] = structures.info.0;
    Ok(state)
}

fn flat(rip: u64, code: AccessRights, gdt: Gpa) -> EntryState {
    let flat = |selector, rights| Segment { selector, rights, limit: u32::MAX, base: 0 };
    EntryState {
        rip,
        rsp: 0,
        rflags: RFLAGS_CLEAR,
        gprs: [0; 16],
        cr0: cr0::PE | cr0::ET,
        cr3: 0,
        cr4: 0,
        efer: 0,
        cs: flat(CODE_SELECTOR, code),
        data: flat(DATA_SELECTOR, AccessRights::DATA_32),
        tr: Segment { selector: 0, rights: AccessRights::BUSY_TASK, limit: TASK_LIMIT, base: 0 },
        gdtr: TableRegister { base: gdt.0, limit: 4 * 8 - 1 },
        idtr: TableRegister { base: 0, limit: 0 },
    }
}

/// Descriptors for the selectors above; the two below them are null.
fn write_gdt(memory: &impl GuestMemory, gdt: Gpa, code: AccessRights) -> Result<(), OutOfRange> {
    let mut table = [0; 32];
    table[16..24].copy_from_slice(&flat_descriptor(code).to_le_bytes());
    table[24..32].copy_from_slice(&flat_descriptor(AccessRights::DATA_32).to_le_bytes());
    memory.write(gdt, &table)
}

/// A descriptor with base 0 and limit 4 GiB (AMD APM vol. 2, section 4.7).
fn flat_descriptor(rights: AccessRights) -> u64 {
    0x000f_0000_0000_ffff | u64::from(rights.bits()) << 40
}

/// One PML4, one PDPT and four directories of 2 MiB pages: the first 4 GiB at their own addresses.
fn write_identity_map(memory: &impl GuestMemory) -> Result<(), OutOfRange> {
    let page = |index: u64| Gpa(boot::PAGE_TABLES.0 + index * PAGE_BYTES as u64);
    write_table(memory, page(0), 1, |_| page(1).0 | TABLE)?;
    write_table(memory, page(1), DIRECTORIES, |index| page(2 + index).0 | TABLE)?;
    for directory in 0..DIRECTORIES {
        write_table(memory, page(2 + directory), 512, |index| {
            ((directory * 512 + index) * LARGE_PAGE_BYTES) | LARGE_PAGE
        })?;
    }
    Ok(())
}

/// One table whose first `used` entries are as computed and whose others are not present.
fn write_table(memory: &impl GuestMemory, at: Gpa, used: u64, entry: impl Fn(u64) -> u64) -> Result<(), OutOfRange> {
    let mut table = vec![0; PAGE_BYTES];
    for (bytes, index) in table.chunks_exact_mut(8).zip(0..used) {
        bytes.copy_from_slice(&entry(index).to_le_bytes());
    }
    memory.write(at, &table)
}
