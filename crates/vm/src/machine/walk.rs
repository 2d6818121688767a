// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a guest's linear address to its physical one: the guest's own page tables, read as the CPU would (AMD APM vol.
//! 2, chapter 5). Accessed and dirty bits are set by [`path::Path::mark`] alone: for accesses on the guest's behalf.

pub mod path;

use crate::addr::{AccessSize, Gpa};
use crate::memory::GuestMemory;
use crate::vcpu::{Exception, Rflags, VcpuState, cr0, cr4, efer};

/// Purpose of the translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To learn what the CPU has just executed: rights were checked when it did.
    Inspect,
    /// Data read on the guest's behalf.
    Read,
    /// Data write on the guest's behalf.
    Write,
}

const PRESENT: u64 = 1 << 0;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const LARGE: u64 = 1 << 7;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// Translates `linear`; the error is the page fault that the guest deserves.
#[inline]
pub fn translate(
    vcpu: &(impl VcpuState + ?Sized),
    memory: &(impl GuestMemory + ?Sized),
    linear: u64,
    purpose: Purpose,
) -> Result<Gpa, Exception> {
    let found = walk(vcpu, memory, linear, &mut |_, _, _| ());
    check(vcpu, linear, purpose, found)
}

/// An address and the rights of every level that led to it, combined.
struct Found {
    gpa: Gpa,
    rights: u64,
}

/// Walks the tables. `visit` gets each entry that has accessed and dirty bits, as it was read: where it is, its size,
/// its value.
#[inline(always)]
fn walk(
    vcpu: &(impl VcpuState + ?Sized),
    memory: &(impl GuestMemory + ?Sized),
    linear: u64,
    visit: &mut impl FnMut(Gpa, AccessSize, u64),
) -> Option<Found> {
    if vcpu.cr0() & cr0::PG == 0 {
        return Some(Found { gpa: Gpa(linear & 0xffff_ffff), rights: WRITABLE | USER });
    }
    if vcpu.cr4() & cr4::PAE == 0 {
        walk_legacy(memory, vcpu.cr3(), (linear, vcpu.cr4() & cr4::PSE != 0), visit)
    } else if vcpu.efer() & efer::LMA != 0 {
        let levels = if vcpu.cr4() & cr4::LA57 != 0 { 5 } else { 4 };
        walk_long(memory, vcpu.cr3() & ADDRESS, (linear, levels), visit)
    } else {
        walk_pae(memory, vcpu.cr3(), linear, visit)
    }
}

#[inline]
fn check(
    vcpu: &(impl VcpuState + ?Sized),
    linear: u64,
    purpose: Purpose,
    found: Option<Found>,
) -> Result<Gpa, Exception> {
    if (purpose == Purpose::Inspect || vcpu.cr0() & cr0::PG == 0)
        && let Some(found) = found
    {
        return Ok(found.gpa);
    }
    let is_write = purpose == Purpose::Write;
    let is_user = vcpu.cpl() == 3;
    let fault = |present: u64| {
        let code = present | if is_write { WRITABLE } else { 0 } | if is_user { USER } else { 0 };
        Exception::PageFault { code: code as u32, address: linear }
    };
    let found = found.ok_or(fault(0))?;
    let must_be_writable = is_write && (is_user || vcpu.cr0() & cr0::WP != 0);
    let is_user_page = found.rights & USER != 0;
    // Supervisor mode access prevention (AMD APM vol. 2, section 5.6.6); no access here is an implicit one, such as to
    // a descriptor.
    let is_prevented = vcpu.cr4() & cr4::SMAP != 0 && !vcpu.rflags().contains(Rflags::ALIGNMENT_CHECK);
    let is_permitted = if is_user { is_user_page } else { !(is_user_page && is_prevented) };
    if (must_be_writable && found.rights & WRITABLE == 0) || !is_permitted {
        return Err(fault(PRESENT));
    }
    Ok(found.gpa)
}

/// Returns where the code at `linear` is, for exits that happen often: [`translate`] for [`Purpose::Inspect`], with the
/// walk of four-level tables unrolled into the caller.
#[inline(always)]
pub fn inspect(vcpu: &(impl VcpuState + ?Sized), memory: &(impl GuestMemory + ?Sized), linear: u64) -> Option<Gpa> {
    let is_four_level =
        vcpu.cr0() & cr0::PG != 0 && vcpu.cr4() & (cr4::PAE | cr4::LA57) == cr4::PAE && vcpu.efer() & efer::LMA != 0;
    if is_four_level {
        walk_four_levels(memory, vcpu.cr3() & ADDRESS, linear)
    } else {
        inspect_seldom(vcpu, memory, linear)
    }
}

/// [`inspect`] in any mode of paging: kept out of the path of the usual one.
#[cold]
#[inline(never)]
fn inspect_seldom(vcpu: &(impl VcpuState + ?Sized), memory: &(impl GuestMemory + ?Sized), linear: u64) -> Option<Gpa> {
    translate(vcpu, memory, linear, Purpose::Inspect).ok()
}

#[inline(always)]
fn walk_four_levels(memory: &(impl GuestMemory + ?Sized), root: u64, linear: u64) -> Option<Gpa> {
    let read = |table: u64, shift: u32| {
        let entry = memory.read_u64(Gpa(table & ADDRESS | linear >> (shift - 3) & 0xff8)).ok()?;
        (entry & PRESENT != 0).then_some(entry)
    };
    let page = |entry: u64, shift: u32| Gpa(entry & ADDRESS & !0 << shift | linear & !(!0 << shift));
    let pointers = read(root, 39)?;
    let directory = read(pointers, 30)?;
    if directory & LARGE != 0 {
        return Some(page(directory, 30));
    }
    let table = read(directory, 21)?;
    if table & LARGE != 0 {
        return Some(page(table, 21));
    }
    Some(page(read(table, 12)?, 12))
}

/// PAE and long mode tables: 512 entries of 8 bytes, `levels` deep.
#[inline(always)]
fn walk_long(
    memory: &(impl GuestMemory + ?Sized),
    root: u64,
    (linear, levels): (u64, u32),
    visit: &mut impl FnMut(Gpa, AccessSize, u64),
) -> Option<Found> {
    let mut table = root;
    let mut rights = WRITABLE | USER;
    let mut shift = 12 + 9 * (levels - 1);
    loop {
        let at = Gpa(table | (linear >> shift & 511) << 3);
        let entry = memory.read_u64(at).ok()?;
        if entry & PRESENT == 0 {
            return None;
        }
        visit(at, AccessSize::Qword, entry);
        rights &= entry;
        if shift == 12 || (entry & LARGE != 0 && shift <= 30) {
            let offset = (1 << shift) - 1;
            return Some(Found { gpa: Gpa(entry & ADDRESS & !offset | linear & offset), rights });
        }
        table = entry & ADDRESS;
        shift -= 9;
    }
}

/// Four page directory pointers (which carry no rights, and no accessed and dirty bits), then two levels.
fn walk_pae(
    memory: &(impl GuestMemory + ?Sized),
    cr3: u64,
    linear: u64,
    visit: &mut impl FnMut(Gpa, AccessSize, u64),
) -> Option<Found> {
    let pointer = memory.read_u64(Gpa((cr3 & 0xffff_ffe0) + (linear >> 30 & 3) * 8)).ok()?;
    if pointer & PRESENT == 0 {
        return None;
    }
    walk_long(memory, pointer & ADDRESS, (linear & 0x3fff_ffff, 2), visit)
}

/// Two levels of 1024 entries of 4 bytes.
fn walk_legacy(
    memory: &(impl GuestMemory + ?Sized),
    cr3: u64,
    (linear, has_large_pages): (u64, bool),
    visit: &mut impl FnMut(Gpa, AccessSize, u64),
) -> Option<Found> {
    let mut read = |gpa: u64| {
        let mut bytes = [0; 4];
        memory.read(Gpa(gpa), &mut bytes).ok()?;
        let entry = u64::from(u32::from_le_bytes(bytes));
        if entry & PRESENT == 0 {
            return None;
        }
        visit(Gpa(gpa), AccessSize::Dword, entry);
        Some(entry)
    };
    let directory = read((cr3 & 0xffff_f000) + (linear >> 22 & 1023) * 4)?;
    if has_large_pages && directory & LARGE != 0 {
        let high = (directory >> 13 & 0xff) << 32;
        return Some(Found { gpa: Gpa(high | directory & 0xffc0_0000 | linear & 0x3f_ffff), rights: directory });
    }
    let entry = read((directory & 0xffff_f000) + (linear >> 12 & 1023) * 4)?;
    Some(Found { gpa: Gpa(entry & 0xffff_f000 | linear & 0xfff), rights: directory & entry })
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
