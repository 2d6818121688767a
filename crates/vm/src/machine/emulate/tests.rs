// SPDX-License-Identifier: MIT OR Apache-2.0
mod fields;
mod marks;
mod model;
mod operations;
mod strings;

use std::vec::Vec;

use proptest::prelude::*;

use super::{MemoryBus, Recent, Refused, VectorFile, VectorWrite, decode, port_string};
use crate::addr::{AccessSize, Gpa};
use crate::memory::GuestMemory;
use crate::testing::{FakeMemory, FakeVcpu};
use crate::vcpu::{AccessRights, Gpr, Segment, SegmentName, efer};

const DEVICE: Gpa = Gpa(0xfee0_0020);

/// Remembers stores; every load sees the same value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Recorder {
    loads: u64,
    stores: Vec<(Gpa, AccessSize, u64)>,
    vectors: [[u64; 4]; 16],
    writes: Vec<VectorWrite>,
}

impl MemoryBus for Recorder {
    fn load(&mut self, _: Gpa, size: AccessSize) -> u64 {
        self.loads & size.mask()
    }
    fn store(&mut self, gpa: Gpa, size: AccessSize, value: u64) {
        self.stores.push((gpa, size, value));
    }
}

impl VectorFile for Recorder {
    fn vector(&self, register: u8) -> [u64; 4] {
        self.vectors[usize::from(register)]
    }
    fn set_vector(&mut self, register: u8, value: [u64; 4], write: VectorWrite) {
        self.vectors[usize::from(register)] = value;
        self.writes.push(write);
    }
}

fn access(vcpu: &mut FakeVcpu, memory: &FakeMemory, gpa: Gpa, bus: &mut Recorder) -> Result<(), Refused> {
    let access = decode(vcpu, memory, &mut Recent::default())?;
    super::access(vcpu, memory, gpa, &access, bus)
}

fn long_mode(code: &[u8]) -> (FakeVcpu, FakeMemory) {
    let memory = FakeMemory::new(0x2000);
    memory.write(Gpa(0x100), code).unwrap();
    let mut vcpu = FakeVcpu { rip: 0x100, efer: efer::LMA, gprs: [0x1111_2222_3333_4444; 16], ..FakeVcpu::default() };
    vcpu.segments[SegmentName::Cs as usize] =
        Segment { rights: AccessRights::from_packed(0xa9b), ..Segment::default() };
    (vcpu, memory)
}

fn run(code: &[u8], loads: u64) -> (FakeVcpu, Recorder) {
    let (mut vcpu, memory) = long_mode(code);
    let mut bus = Recorder { loads, ..Recorder::default() };
    access(&mut vcpu, &memory, DEVICE, &mut bus).unwrap();
    assert_eq!(vcpu.rip, 0x100 + code.len() as u64);
    (vcpu, bus)
}

#[test]
fn a_32_bit_load_clears_the_upper_half() {
    let (vcpu, _) = run(&[0x8b, 0x03], 0xdead_beef); // mov eax, [rbx]
    assert_eq!(vcpu.gprs[Gpr::Rax as usize], 0xdead_beef);
}

#[test]
fn an_8_bit_load_leaves_the_rest_and_ah_is_the_second_byte() {
    let (vcpu, _) = run(&[0x8a, 0x23], 0x99); // mov ah, [rbx]
    assert_eq!(vcpu.gprs[Gpr::Rax as usize], 0x1111_2222_3333_9944);
}

#[test]
fn a_store_of_a_register_and_of_an_immediate() {
    let (_, bus) = run(&[0x44, 0x89, 0x0b], 0); // mov [rbx], r9d
    assert_eq!(bus.stores, [(DEVICE, AccessSize::Dword, 0x3333_4444)]);
    let (_, bus) = run(&[0xc7, 0x03, 0x78, 0x56, 0x34, 0x12], 0); // mov dword [rbx], 0x12345678
    assert_eq!(bus.stores, [(DEVICE, AccessSize::Dword, 0x1234_5678)]);
}

#[test]
fn extending_loads_widen_as_encoded() {
    let (vcpu, _) = run(&[0x0f, 0xb6, 0x03], 0x80); // movzx eax, byte [rbx]
    assert_eq!(vcpu.gprs[0], 0x80);
    let (vcpu, _) = run(&[0x48, 0x0f, 0xbe, 0x03], 0x80); // movsx rax, byte [rbx]
    assert_eq!(vcpu.gprs[0], 0xffff_ffff_ffff_ff80);
}

#[test]
fn an_or_reads_changes_and_writes_back_with_flags() {
    let (vcpu, bus) = run(&[0x83, 0x0b, 0x01], 0x8000_0000); // or dword [rbx], 1
    assert_eq!(bus.stores, [(DEVICE, AccessSize::Dword, 0x8000_0001)]);
    assert_eq!(vcpu.rflags & 0x8c5, 0x80, "sign, neither zero, carry nor overflow, odd parity");
}

#[test]
fn a_compare_sets_flags_and_stores_nothing() {
    let (vcpu, bus) = run(&[0x83, 0x3b, 0x01], 0); // cmp dword [rbx], 1
    assert!(bus.stores.is_empty());
    assert_eq!(vcpu.rflags & 0x8d5, 0x95, "carry, sign, auxiliary and parity of 0 - 1");
}

#[test]
fn an_exchange_swaps() {
    let (vcpu, bus) = run(&[0x87, 0x03], 7); // xchg [rbx], eax
    assert_eq!(vcpu.gprs[0], 7);
    assert_eq!(bus.stores, [(DEVICE, AccessSize::Dword, 0x3333_4444)]);
}

#[test]
fn a_repeated_store_takes_one_step_at_a_time() {
    let (mut vcpu, memory) = long_mode(&[0xf3, 0xab]); // rep stosd
    vcpu.gprs[Gpr::Rcx as usize] = 2;
    vcpu.gprs[Gpr::Rdi as usize] = DEVICE.0;
    let mut bus = Recorder::default();
    access(&mut vcpu, &memory, DEVICE, &mut bus).unwrap();
    assert_eq!((vcpu.rip, vcpu.gprs[Gpr::Rcx as usize]), (0x100, 1));
    access(&mut vcpu, &memory, Gpa(DEVICE.0 + 4), &mut bus).unwrap();
    assert_eq!((vcpu.rip, vcpu.gprs[Gpr::Rcx as usize]), (0x102, 0));
    assert_eq!(vcpu.gprs[Gpr::Rdi as usize], DEVICE.0 + 8);
    assert_eq!(bus.stores.len(), 2);
}

#[test]
fn a_copy_reaches_memory_on_its_other_side() {
    let (mut vcpu, memory) = long_mode(&[0xa5]); // movsd
    vcpu.gprs[Gpr::Rsi as usize] = DEVICE.0;
    vcpu.gprs[Gpr::Rdi as usize] = 0x800;
    let mut bus = Recorder { loads: 0xabcd_ef01, ..Recorder::default() };
    access(&mut vcpu, &memory, DEVICE, &mut bus).unwrap();
    assert_eq!(memory.bytes(Gpa(0x800), 4), 0xabcd_ef01u32.to_le_bytes());
}

#[test]
fn an_instruction_without_business_there_is_named() {
    let (mut vcpu, memory) = long_mode(&[0xdd, 0x03]); // fld qword [rbx]
    let refused = access(&mut vcpu, &memory, DEVICE, &mut Recorder::default());
    assert!(matches!(refused, Err(Refused::Unsupported(_))));
    assert_eq!(vcpu.rip, 0x100);
}

proptest! {
    #[test]
    fn any_instruction_is_carried_out_or_refused(
        code in prop::collection::vec(any::<u8>(), 15),
        gprs in any::<[u64; 16]>(),
        loads in any::<u64>(),
        attributes in any::<u16>(),
    ) {
        let (mut vcpu, memory) = long_mode(&code);
        vcpu.gprs = gprs;
        vcpu.segments[SegmentName::Cs as usize].rights = AccessRights::from_packed(attributes);
        let _ = access(&mut vcpu.clone(), &memory, DEVICE, &mut Recorder { loads, ..Recorder::default() });
        let transfer = strings::transfer(attributes & 1 == 0, attributes & 2 == 0);
        if let Ok(Some(step)) = port_string(&mut vcpu, &memory, &transfer) {
            let mut bus = Recorder { loads, ..Recorder::default() };
            step.load(&memory, &mut bus);
            step.store(&memory, &mut bus, loads);
            step.finish(&mut vcpu);
        }
    }
}
