// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::{Purpose, inspect, translate};
use crate::addr::Gpa;
use crate::memory::GuestMemory;
use crate::testing::{FakeMemory, FakeVcpu};
use crate::vcpu::{Exception, Rflags, cr0, cr4, efer};

pub(super) fn long_mode(cr3: u64) -> FakeVcpu {
    FakeVcpu {
        cr0: cr0::PE | cr0::PG | cr0::WP,
        cr3,
        cr4: cr4::PAE,
        efer: efer::LMA | efer::LME,
        ..FakeVcpu::default()
    }
}

pub(super) fn memory_with(entries: &[(u64, u64)]) -> FakeMemory {
    let memory = FakeMemory::new(0x10000);
    for &(gpa, entry) in entries {
        memory.write(Gpa(gpa), &entry.to_le_bytes()).unwrap();
    }
    memory
}

/// One 4 KiB page at linear 0x40_3000 → 0x9000, with the rights given.
pub(super) fn four_levels(rights: u64) -> FakeMemory {
    memory_with(&[(0x1000, 0x2007), (0x2000, 0x3007), (0x3010, 0x4007), (0x4018, 0x9000 | rights)])
}

#[test]
fn without_paging_an_address_is_itself() {
    // Nor are there rights to check.
    for cr4 in [0, cr4::SMAP] {
        let vcpu = FakeVcpu { cr4, ..FakeVcpu::default() };
        assert_eq!(translate(&vcpu, &FakeMemory::new(16), 0x1234, Purpose::Read), Ok(Gpa(0x1234)));
    }
}

#[test]
fn four_levels_lead_to_a_page() {
    assert_eq!(translate(&long_mode(0x1000), &four_levels(7), 0x40_3abc, Purpose::Read), Ok(Gpa(0x9abc)));
}

#[test]
fn a_large_page_ends_the_walk() {
    let memory = memory_with(&[(0x1000, 0x2007), (0x2000, 0x3007), (0x3008, 0x60_0087)]);
    assert_eq!(translate(&long_mode(0x1000), &memory, 0x3f_f123, Purpose::Read), Ok(Gpa(0x7f_f123)));
}

#[test]
fn a_missing_entry_is_a_not_present_fault() {
    let fault = translate(&long_mode(0x1000), &four_levels(7), 0x80_0000, Purpose::Write);
    assert_eq!(fault, Err(Exception::PageFault { code: 2, address: 0x80_0000 }));
}

#[test]
fn a_write_needs_a_writable_page_where_write_protect_is_on() {
    let mut vcpu = long_mode(0x1000);
    let fault = Err(Exception::PageFault { code: 3, address: 0x40_3000 });
    assert_eq!(translate(&vcpu, &four_levels(5), 0x40_3000, Purpose::Write), fault);
    vcpu.cr0 &= !cr0::WP;
    assert_eq!(translate(&vcpu, &four_levels(5), 0x40_3000, Purpose::Write), Ok(Gpa(0x9000)));
}

#[test]
fn user_code_needs_a_user_page() {
    let vcpu = FakeVcpu { cpl: 3, ..long_mode(0x1000) };
    let fault = Err(Exception::PageFault { code: 5, address: 0x40_3000 });
    assert_eq!(translate(&vcpu, &four_levels(3), 0x40_3000, Purpose::Read), fault);
    assert_eq!(translate(&vcpu, &four_levels(3), 0x40_3000, Purpose::Inspect), Ok(Gpa(0x9000)));
}

#[test]
fn supervisor_mode_access_prevention_keeps_the_kernel_from_user_pages() {
    let mut vcpu = long_mode(0x1000);
    vcpu.cr4 |= cr4::SMAP;
    for (purpose, code) in [(Purpose::Read, 1), (Purpose::Write, 3)] {
        let fault = Err(Exception::PageFault { code, address: 0x40_3000 });
        assert_eq!(translate(&vcpu, &four_levels(7), 0x40_3000, purpose), fault);
        assert_eq!(translate(&vcpu, &four_levels(3), 0x40_3000, purpose), Ok(Gpa(0x9000)), "a supervisor page");
    }
    assert_eq!(translate(&vcpu, &four_levels(7), 0x40_3000, Purpose::Inspect), Ok(Gpa(0x9000)));
    vcpu.rflags = Rflags::ALIGNMENT_CHECK.bits();
    assert_eq!(translate(&vcpu, &four_levels(7), 0x40_3000, Purpose::Read), Ok(Gpa(0x9000)), "RFLAGS.AC permits it");
    let user = FakeVcpu { cpl: 3, rflags: 0, ..vcpu };
    assert_eq!(translate(&user, &four_levels(7), 0x40_3000, Purpose::Read), Ok(Gpa(0x9000)));
}

#[test]
fn legacy_paging_has_two_levels_and_four_mebibyte_pages() {
    let memory = memory_with(&[(0x1004, 0x2007 | (0x83 | 0x40_0000) << 32), (0x200c, 0x9007)]);
    let vcpu = FakeVcpu { cr0: cr0::PE | cr0::PG, cr3: 0x1000, cr4: cr4::PSE, ..FakeVcpu::default() };
    assert_eq!(translate(&vcpu, &memory, 0x40_3010, Purpose::Read), Ok(Gpa(0x9010)));
    assert_eq!(translate(&vcpu, &memory, 0x80_1234, Purpose::Read), Ok(Gpa(0x40_1234)));
}

#[test]
fn pae_paging_starts_at_four_pointers() {
    let memory = memory_with(&[(0x1008, 0x2001), (0x2010, 0x3007), (0x3018, 0x9007)]);
    let vcpu = FakeVcpu { cr0: cr0::PE | cr0::PG, cr3: 0x1000, cr4: cr4::PAE, ..FakeVcpu::default() };
    assert_eq!(translate(&vcpu, &memory, 0x4040_3010, Purpose::Read), Ok(Gpa(0x9010)));
}

proptest! {
    #[test]
    fn the_unrolled_walk_agrees_with_the_general_one(
        words in prop::collection::vec(0u64..0x200, 512),
        linear in any::<u64>(),
    ) {
        let memory = FakeMemory::new(0x4000);
        for (index, word) in words.iter().enumerate() {
            // Tables lead to one of four tables; present, writable, user and large bits vary.
            let entry = (word & 3) << 12 | word >> 2 | 1;
            memory.write(Gpa(index as u64 * 32), &entry.to_le_bytes()).unwrap();
        }
        let vcpu = long_mode(0);
        prop_assert_eq!(inspect(&vcpu, &memory, linear), translate(&vcpu, &memory, linear, Purpose::Inspect).ok());
    }

    #[test]
    fn junk_tables_never_lead_astray(
        words in prop::collection::vec(any::<u64>(), 512),
        linear in any::<u64>(),
        (cr0, cr3, cr4, efer) in any::<(u64, u64, u64, u64)>(),
    ) {
        let memory = FakeMemory::new(0x4000);
        for (index, word) in words.iter().enumerate() {
            memory.write(Gpa(index as u64 * 32), &word.to_le_bytes()).unwrap();
        }
        let vcpu = FakeVcpu { cr0, cr3: cr3 & 0x3fff, cr4, efer, ..FakeVcpu::default() };
        let _ = translate(&vcpu, &memory, linear, Purpose::Write);
        prop_assert_eq!(inspect(&vcpu, &memory, linear), translate(&vcpu, &memory, linear, Purpose::Inspect).ok());
    }
}
