// SPDX-License-Identifier: MIT OR Apache-2.0
//! String instructions and transfers of ports.
use super::*;
use crate::exit::PortAccess;
use crate::vcpu::{Exception, Rflags, cr0, cr4};

pub(super) fn transfer(is_in: bool, is_rep: bool) -> PortAccess {
    PortAccess { port: 0x80, size: AccessSize::Byte, is_in, is_string: true, is_rep, next_rip: 0 }
}

#[test]
fn a_repeated_out_sends_memory_byte_by_byte() {
    let (mut vcpu, memory) = long_mode(&[0xf3, 0x6e]); // rep outsb
    memory.write(Gpa(0x800), b"ab").unwrap();
    vcpu.gprs[Gpr::Rsi as usize] = 0x800;
    vcpu.gprs[Gpr::Rcx as usize] = 2;
    let mut sent = Vec::new();
    for _ in 0..2 {
        let step = port_string(&mut vcpu, &memory, &transfer(false, true)).unwrap().unwrap();
        sent.push(step.load(&memory, &mut Recorder::default()) as u8);
        step.finish(&mut vcpu);
    }
    assert_eq!(sent, b"ab");
    assert_eq!((vcpu.rip, vcpu.gprs[Gpr::Rcx as usize]), (0x102, 0));
}

#[test]
fn a_repeat_of_nothing_does_nothing() {
    let (mut vcpu, memory) = long_mode(&[0xf3, 0x6c]); // rep insb
    vcpu.gprs[Gpr::Rcx as usize] = 0;
    assert!(port_string(&mut vcpu, &memory, &transfer(true, true)).unwrap().is_none());
    assert_eq!(vcpu.rip, 0x102);
    let (mut vcpu, memory) = long_mode(&[0xf3, 0xab]); // rep stosd
    vcpu.gprs[Gpr::Rcx as usize] = 0;
    let mut bus = Recorder::default();
    access(&mut vcpu, &memory, DEVICE, &mut bus).unwrap();
    assert_eq!((vcpu.rip, vcpu.gprs[Gpr::Rcx as usize], bus.stores.len()), (0x102, 0, 0));
}

#[test]
fn a_load_fills_the_accumulator_and_moves_the_source() {
    let (mut vcpu, memory) = long_mode(&[0xad]); // lodsd
    vcpu.gprs[Gpr::Rsi as usize] = DEVICE.0;
    let mut bus = Recorder { loads: 0x1234_5678, ..Recorder::default() };
    access(&mut vcpu, &memory, DEVICE, &mut bus).unwrap();
    assert_eq!((vcpu.gprs[0], vcpu.gprs[Gpr::Rsi as usize]), (0x1234_5678, DEVICE.0 + 4));
}

#[test]
fn a_repeated_comparison_ends_with_the_count_or_with_the_answer() {
    // repe scasd, repne scasd: against a register that reads as 5, and against another value.
    for (prefix, accumulator, ends) in [(0xf3, 5, false), (0xf3, 6, true), (0xf2, 5, true), (0xf2, 6, false)] {
        let (mut vcpu, memory) = long_mode(&[prefix, 0xaf]);
        vcpu.gprs[0] = accumulator;
        vcpu.gprs[Gpr::Rcx as usize] = 2;
        vcpu.gprs[Gpr::Rdi as usize] = DEVICE.0;
        access(&mut vcpu, &memory, DEVICE, &mut Recorder { loads: 5, ..Recorder::default() }).unwrap();
        assert_eq!(vcpu.rip, if ends { 0x102 } else { 0x100 }, "{prefix:#x} {accumulator}");
        assert_eq!(vcpu.gprs[Gpr::Rcx as usize], 1);
        assert_eq!(vcpu.gprs[Gpr::Rdi as usize], DEVICE.0 + 4);
        assert_eq!(vcpu.rflags & 1 << 6 != 0, accumulator == 5);
        vcpu.rip = 0x100;
        access(&mut vcpu, &memory, Gpa(DEVICE.0 + 4), &mut Recorder { loads: 5, ..Recorder::default() }).unwrap();
        assert_eq!((vcpu.rip, vcpu.gprs[Gpr::Rcx as usize]), (0x102, 0), "the count is used up");
    }
}

#[test]
fn a_comparison_subtracts_the_target_from_the_source() {
    let (mut vcpu, memory) = long_mode(&[0xa7]); // cmpsd
    memory.write(Gpa(0x800), &7u32.to_le_bytes()).unwrap();
    vcpu.gprs[Gpr::Rsi as usize] = DEVICE.0;
    vcpu.gprs[Gpr::Rdi as usize] = 0x800;
    access(&mut vcpu, &memory, DEVICE, &mut Recorder { loads: 6, ..Recorder::default() }).unwrap();
    assert_eq!(vcpu.rflags & 0x8d5, 0x95, "carry, sign, auxiliary and parity of 6 - 7");
    assert_eq!((vcpu.gprs[Gpr::Rsi as usize], vcpu.gprs[Gpr::Rdi as usize]), (DEVICE.0 + 4, 0x804));
}

#[test]
fn the_direction_flag_counts_down() {
    let (mut vcpu, memory) = long_mode(&[0xaa]); // stosb
    vcpu.rflags = Rflags::DIRECTION.bits();
    vcpu.gprs[Gpr::Rdi as usize] = DEVICE.0;
    access(&mut vcpu, &memory, DEVICE, &mut Recorder::default()).unwrap();
    assert_eq!(vcpu.gprs[Gpr::Rdi as usize], DEVICE.0 - 1);
}

#[test]
fn a_pointer_of_a_narrow_address_wraps_and_keeps_its_upper_half() {
    let (mut vcpu, memory) = long_mode(&[0x67, 0xaa]); // stosb [edi]
    vcpu.gprs[Gpr::Rdi as usize] = 0x7_ffff_ffff;
    let mut bus = Recorder::default();
    access(&mut vcpu, &memory, Gpa(0xffff_ffff), &mut bus).unwrap();
    assert_eq!(bus.stores, [(Gpa(0xffff_ffff), AccessSize::Byte, 0x44)]);
    assert_eq!(vcpu.gprs[Gpr::Rdi as usize], 0, "a 32-bit result clears the upper half");
}

/// A vCPU with four levels of paging that map the first 2 MiB to itself, and its last two pages as in `entries`.
pub(super) fn paged(code: &[u8], entries: [u64; 2]) -> (FakeVcpu, FakeMemory) {
    let memory = FakeMemory::new(0x20_0000);
    for (table, entry) in [(0x8000u64, 0x9007u64), (0x9000, 0xa007), (0xa000, 0xb007)] {
        memory.write(Gpa(table), &entry.to_le_bytes()).unwrap();
    }
    for page in 0..512u64 {
        let entry = if page >= 510 { entries[page as usize - 510] } else { page << 12 | 7 };
        memory.write(Gpa(0xb000 + 8 * page), &entry.to_le_bytes()).unwrap();
    }
    memory.write(Gpa(0x100), code).unwrap();
    let (mut vcpu, _) = long_mode(code);
    (vcpu.cr0, vcpu.cr3, vcpu.cr4) = (cr0::PG | cr0::PE | cr0::WP, 0x8000, cr4::PAE);
    (vcpu, memory)
}

const LAST_PAGE: u64 = 0x1f_f000;

#[test]
fn supervisor_mode_access_prevention_covers_the_other_side_of_a_copy() {
    let (mut vcpu, memory) = paged(&[0xa5], [0, DEVICE.0 & !0xfff | 3]); // movsd
    vcpu.gprs[Gpr::Rsi as usize] = LAST_PAGE + 0x20;
    vcpu.gprs[Gpr::Rdi as usize] = 0x5000;
    vcpu.cr4 |= cr4::SMAP;
    let mut bus = Recorder::default();
    let before = vcpu.clone();
    let fault = Exception::PageFault { code: 3, address: 0x5000 };
    assert_eq!(access(&mut vcpu, &memory, DEVICE, &mut bus), Err(fault.into()));
    assert_eq!((vcpu.gprs, vcpu.rip), (before.gprs, before.rip));
    vcpu.rflags |= Rflags::ALIGNMENT_CHECK.bits();
    access(&mut vcpu, &memory, DEVICE, &mut bus).unwrap();
}

#[test]
fn an_address_that_is_not_canonical_is_a_general_protection_fault() {
    let refused = Err(Refused::Exception(Exception::GeneralProtection(0)));
    for outside in [0x8000_0000_0000, 0x7fff_ffff_fffd, 0xffff_7fff_ffff_ffff, 0x1234_0000_0000_0800] {
        let (mut vcpu, memory) = long_mode(&[0xa5]); // movsd
        vcpu.gprs[Gpr::Rsi as usize] = DEVICE.0;
        vcpu.gprs[Gpr::Rdi as usize] = outside;
        assert_eq!(access(&mut vcpu, &memory, DEVICE, &mut Recorder::default()), refused, "{outside:#x}");
        let (mut vcpu, memory) = long_mode(&[0x6f]); // outsd
        vcpu.gprs[Gpr::Rsi as usize] = outside;
        let transfer = PortAccess { size: AccessSize::Dword, ..transfer(false, false) };
        assert_eq!(port_string(&mut vcpu, &memory, &transfer).err(), refused.err());
    }
}

#[test]
fn a_fifth_level_of_paging_makes_more_addresses_canonical() {
    let (mut vcpu, memory) = long_mode(&[0xa5]); // movsd, without paging
    vcpu.cr4 = cr4::LA57;
    vcpu.gprs[Gpr::Rsi as usize] = DEVICE.0;
    vcpu.gprs[Gpr::Rdi as usize] = 0x8000_0000_0800;
    access(&mut vcpu, &memory, DEVICE, &mut Recorder { loads: 9, ..Recorder::default() }).unwrap();
    assert_eq!(memory.bytes(Gpa(0x800), 4), [9, 0, 0, 0]);
}
