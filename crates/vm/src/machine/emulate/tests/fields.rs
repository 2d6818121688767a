// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions with two operands in memory, and vector registers.
use super::*;
use crate::vcpu::Exception;

#[test]
fn a_push_of_a_device_register_reaches_the_stack() {
    let (mut vcpu, memory) = long_mode(&[0xff, 0x33]); // push qword [rbx]
    vcpu.gprs[Gpr::Rbx as usize] = DEVICE.0;
    vcpu.gprs[Gpr::Rsp as usize] = 0x808;
    access(&mut vcpu, &memory, DEVICE, &mut Recorder { loads: 0x0102_0304_0506_0708, ..Recorder::default() }).unwrap();
    assert_eq!(memory.bytes(Gpa(0x800), 8), [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!((vcpu.gprs[Gpr::Rsp as usize], vcpu.rip), (0x800, 0x102));
}

#[test]
fn a_pop_computes_its_address_behind_what_it_pops() {
    // pop qword [rsp + disp32], which is the device's address once RSP is 8 higher.
    let displacement = (DEVICE.0 - 0x808) as u32;
    let (mut vcpu, memory) = long_mode(&[&[0x8f, 0x84, 0x24], &displacement.to_le_bytes()[..]].concat());
    memory.write(Gpa(0x800), &9u64.to_le_bytes()).unwrap();
    vcpu.gprs[Gpr::Rsp as usize] = 0x800;
    let mut bus = Recorder::default();
    assert_eq!(access(&mut vcpu, &memory, Gpa(DEVICE.0 + 0x1000), &mut bus), Err(Refused::Changed), "another page");
    access(&mut vcpu, &memory, DEVICE, &mut bus).unwrap();
    assert_eq!(bus.stores, [(DEVICE, AccessSize::Qword, 9)]);
    assert_eq!(vcpu.gprs[Gpr::Rsp as usize], 0x808);
}

#[test]
fn a_stack_outside_its_segment_is_a_stack_fault_and_nothing_is_loaded() {
    let (mut vcpu, memory) = long_mode(&[0xff, 0x33]); // push qword [rbx]
    vcpu.gprs[Gpr::Rbx as usize] = DEVICE.0;
    vcpu.gprs[Gpr::Rsp as usize] = 0x8000_0000_0008;
    let refused = access(&mut vcpu, &memory, DEVICE, &mut Recorder::default());
    assert_eq!(refused, Err(Refused::Exception(Exception::StackFault(0))));
}

#[test]
fn a_vector_store_is_made_of_quadwords_in_order() {
    let (mut vcpu, memory) = long_mode(&[0x0f, 0x11, 0x0b]); // movups [rbx], xmm1
    let mut bus = Recorder::default();
    bus.vectors[1] = [1, 2, 3, 4];
    access(&mut vcpu, &memory, DEVICE, &mut bus).unwrap();
    assert_eq!(bus.stores, [(DEVICE, AccessSize::Qword, 1), (Gpa(DEVICE.0 + 8), AccessSize::Qword, 2)]);
}

#[test]
fn a_vector_store_that_must_be_aligned_is_refused_where_it_is_not() {
    let (mut vcpu, memory) = long_mode(&[0x0f, 0x29, 0x0b]); // movaps [rbx], xmm1
    vcpu.gprs[Gpr::Rbx as usize] = DEVICE.0 + 8;
    let refused = access(&mut vcpu, &memory, Gpa(DEVICE.0 + 8), &mut Recorder::default());
    assert_eq!(refused, Err(Refused::Exception(Exception::GeneralProtection(0))));
    vcpu.gprs[Gpr::Rbx as usize] = DEVICE.0 + 16;
    access(&mut vcpu, &memory, Gpa(DEVICE.0 + 16), &mut Recorder::default()).unwrap();
}

/// Returns the register of ones after a load of sevens.
fn loaded(code: &[u8]) -> ([u64; 4], VectorWrite) {
    let (mut vcpu, memory) = long_mode(code);
    let mut bus = Recorder { loads: 0x7777_7777_7777_7777, vectors: [[1; 4]; 16], ..Recorder::default() };
    vcpu.gprs[Gpr::Rbx as usize] = 0xfee0_0040;
    access(&mut vcpu, &memory, Gpa(0xfee0_0040), &mut bus).unwrap();
    assert_eq!(vcpu.rip, 0x100 + code.len() as u64);
    (bus.vectors[9], bus.writes[0])
}

#[test]
fn loads_of_vectors_write_as_much_as_encoded() {
    const ALL: u64 = 0x7777_7777_7777_7777;
    use VectorWrite::{Clear, Keep, Whole};
    for (code, low, write) in [
        (&[0x44, 0x0f, 0x10, 0x0b][..], [ALL, ALL], Keep), // movups xmm9, [rbx]
        (&[0x44, 0x0f, 0x28, 0x0b], [ALL, ALL], Keep),     // movaps
        (&[0x66, 0x44, 0x0f, 0x6f, 0x0b], [ALL, ALL], Keep), // movdqa
        (&[0xf3, 0x44, 0x0f, 0x6f, 0x0b], [ALL, ALL], Keep), // movdqu
        (&[0x66, 0x44, 0x0f, 0x38, 0x2a, 0x0b], [ALL, ALL], Keep), // movntdqa
        (&[0xf3, 0x44, 0x0f, 0x7e, 0x0b], [ALL, 0], Keep), // movq
        (&[0x66, 0x44, 0x0f, 0x6e, 0x0b], [0x7777_7777, 0], Keep), // movd
        (&[0x66, 0x4c, 0x0f, 0x6e, 0x0b], [ALL, 0], Keep), // movq, from r/m64
        (&[0xf3, 0x44, 0x0f, 0x10, 0x0b], [0x7777_7777, 0], Keep), // movss
        (&[0xf2, 0x44, 0x0f, 0x10, 0x0b], [ALL, 0], Keep), // movsd
        (&[0x44, 0x0f, 0x12, 0x0b], [ALL, 1], Keep),       // movlps
        (&[0x44, 0x0f, 0x16, 0x0b], [1, ALL], Keep),       // movhps
        (&[0xc5, 0x78, 0x10, 0x0b], [ALL, ALL], Clear),    // vmovups xmm9
        (&[0xc5, 0x7e, 0x6f, 0x0b], [ALL, ALL], Whole),    // vmovdqu ymm9
        (&[0xc4, 0x61, 0x7e, 0x6f, 0x0b], [ALL, ALL], Whole), // the same with three bytes of prefix
        (&[0xc4, 0x62, 0x7d, 0x2a, 0x0b], [ALL, ALL], Whole), // vmovntdqa ymm9
        (&[0xc5, 0x7a, 0x7e, 0x0b], [ALL, 0], Clear),      // vmovq xmm9
        (&[0xc4, 0x61, 0xf9, 0x6e, 0x0b], [ALL, 0], Clear), // vmovq xmm9, from r/m64
    ] {
        let high = if write == Whole { ALL } else { 1 };
        assert_eq!(loaded(code), ([low[0], low[1], high, high], write), "{code:x?}");
    }
}

#[test]
fn a_vector_store_of_a_part_stores_only_that() {
    for (code, stored) in [
        (&[0x66, 0x0f, 0xd6, 0x0b][..], (AccessSize::Qword, 0x1111_2222_3333_4444)), // movq [rbx], xmm1
        (&[0x66, 0x0f, 0x7e, 0x0b], (AccessSize::Dword, 0x3333_4444)),               // movd
        (&[0x0f, 0x17, 0x0b], (AccessSize::Qword, 2)),                               // movhps
        (&[0x0f, 0x13, 0x0b], (AccessSize::Qword, 0x1111_2222_3333_4444)),           // movlps
        (&[0xc5, 0xf9, 0xd6, 0x0b], (AccessSize::Qword, 0x1111_2222_3333_4444)),     // vmovq
    ] {
        let (mut vcpu, memory) = long_mode(code);
        let mut bus = Recorder::default();
        bus.vectors[1] = [0x1111_2222_3333_4444, 2, 3, 4];
        access(&mut vcpu, &memory, DEVICE, &mut bus).unwrap();
        assert_eq!(bus.stores, [(DEVICE, stored.0, stored.1)], "{code:x?}");
    }
}

#[test]
fn an_address_relative_to_rip_is_computed_from_the_end_wherever_the_code_lies() {
    // vmovdqu [rip + 0x1ef4], ymm0: 8 bytes of code. At offset 0 of a page the address itself is checked.
    let code = [0xc5, 0xfe, 0x7f, 0x05, 0xf8, 0x1e, 0x00, 0x00];
    let (mut vcpu, memory) = long_mode(&code);
    let mut recent = Recent::default();
    for (rip, gpa) in [(0x100, 0x2000), (0x900, 0x2800), (0x100, 0x2000)] {
        memory.write(Gpa(rip), &code).unwrap();
        vcpu.rip = rip;
        let mut bus = Recorder::default();
        let decoded = decode(&vcpu, &memory, &mut recent).unwrap();
        super::super::access(&mut vcpu, &memory, Gpa(gpa), &decoded, &mut bus).unwrap();
        assert_eq!((vcpu.rip, bus.stores.len()), (rip + 8, 4));
        assert_eq!(bus.stores[3].0, Gpa(gpa + 24));
    }
}

#[test]
fn an_avx_instruction_that_is_no_move_stops_the_guest_and_is_no_undefined_instruction() {
    for code in [
        &[0xc5, 0xf0, 0x58, 0x03][..],         // vaddps xmm0, xmm1, [rbx]
        &[0xc5, 0xf0, 0x12, 0x03],             // vmovlps xmm0, xmm1, [rbx]
        &[0x62, 0xf1, 0x7c, 0x48, 0x10, 0x03], // vmovups zmm0, [rbx]
        &[0xc4, 0xe2, 0x7d, 0x18, 0x03],       // vbroadcastss ymm0, [rbx]
    ] {
        let (mut vcpu, memory) = long_mode(code);
        let refused = access(&mut vcpu, &memory, DEVICE, &mut Recorder::default());
        assert!(matches!(refused, Err(Refused::Unsupported(_))), "{code:x?}: {refused:?}");
    }
}
