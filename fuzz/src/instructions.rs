// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions: fetched, skipped, carried out on device registers, sent to ports.

use vm::addr::{AccessSize, Gpa};
use vm::exit::PortAccess;
use vm::machine::emulate::{self, MemoryBus, Recent, VectorFile, VectorWrite};
use vm::machine::instruction::{self, MAX_BYTES, Usual};
use vm::memory::GuestMemory;
use vm::testing::{FakeMemory, FakeVcpu};
use vm::vcpu::{AccessRights, SegmentName, VcpuState};

use crate::input::Input;

const MEMORY_BYTES: usize = 0x1_0000;

/// Registers that answer with the input's bytes.
struct Registers<'a, 'b>(&'b mut Input<'a>);

impl MemoryBus for Registers<'_, '_> {
    fn load(&mut self, _: Gpa, _: AccessSize) -> u64 {
        self.0.u64()
    }
    fn store(&mut self, _: Gpa, size: AccessSize, value: u64) {
        assert_eq!(value & !size.mask(), 0, "no more is stored than fits");
    }
}

impl VectorFile for Registers<'_, '_> {
    fn vector(&self, register: u8) -> [u64; 4] {
        assert!(register < 16, "there are sixteen");
        [register.into(); 4]
    }
    fn set_vector(&mut self, register: u8, _: [u64; 4], _: VectorWrite) {
        assert!(register < 16, "there are sixteen");
    }
}

/// A CPU in any mode at any code: what is carried out moves RIP past one instruction at the most.
pub fn instruction(data: &[u8]) {
    let mut input = Input(data);
    let memory = FakeMemory::new(MEMORY_BYTES);
    let mut vcpu = cpu(&mut input, &memory);
    let (operation, gpa) = (input.u8(), Gpa(input.number()));
    let before = vcpu.rip;
    match operation % 3 {
        0 => drop(instruction::skip(&mut vcpu, &memory, Usual::new(&[0x0f, 0xa2]))),
        1 => drop(
            emulate::decode(&vcpu, &memory, &mut Recent::default())
                .and_then(|access| emulate::access(&mut vcpu, &memory, gpa, &access, &mut Registers(&mut input)))
                .map_err(|error| format!("{error:?}")),
        ),
        _ => port_string(&mut input, &mut vcpu, &memory, gpa),
    }
    assert!(moved(&vcpu, before) <= MAX_BYTES as u64, "one instruction at a time");
    if let Ok(bytes) = instruction::fetch(&vcpu, &memory) {
        assert!(bytes.as_slice().len() <= MAX_BYTES);
    }
}

/// Bytes by which RIP has moved; outside 64-bit mode it has 32 bits.
pub fn moved(vcpu: &FakeVcpu, before: u64) -> u64 {
    let moved = vcpu.rip.wrapping_sub(before);
    if instruction::bitness(vcpu) == 64 { moved } else { moved & 0xffff_ffff }
}

/// One step of INS or OUTS, between whatever its pointer leads to and a port.
fn port_string(input: &mut Input<'_>, vcpu: &mut FakeVcpu, memory: &FakeMemory, gpa: Gpa) {
    let access = transfer(input);
    let Ok(Some(step)) = emulate::port_string(vcpu, memory, &access) else { return };
    if access.is_in {
        step.store(memory, &mut Registers(input), gpa.0);
    } else {
        assert_eq!(step.load(memory, &mut Registers(input)) & !access.size.mask(), 0, "no more is sent than fits");
    }
    step.finish(vcpu);
}

/// A CPU's registers, its mode, its page tables and its code.
pub fn cpu(input: &mut Input<'_>, memory: &FakeMemory) -> FakeVcpu {
    let mut vcpu = FakeVcpu { rip: input.number(), rflags: input.u16().into(), ..FakeVcpu::default() };
    vcpu.gprs = core::array::from_fn(|_| input.number());
    (vcpu.cpl, vcpu.efer) = (input.u8() & 3, input.u16().into());
    vcpu.segments[SegmentName::Cs as usize].rights = AccessRights::from_packed(input.u16());
    vcpu.segments.iter_mut().for_each(|segment| segment.base = input.number());
    if input.bool() {
        (vcpu.cr0, vcpu.cr3, vcpu.cr4) = (1 << 31 | u64::from(input.u32()), input.number(), input.u16().into());
        for _ in 0..input.u8() & 0xf {
            let (at, entry) = (u64::from(input.u16()) & !7, input.number());
            let _ = memory.write(Gpa(at), &(entry << 12 | u64::from(input.u16())).to_le_bytes());
        }
    }
    if input.bool() {
        vcpu.instruction_bytes = input.take(MAX_BYTES + 1).to_vec();
    } else {
        let _ = memory.write(Gpa(vcpu.rip() % MEMORY_BYTES as u64), input.take(MAX_BYTES));
    }
    vcpu
}

/// A string transfer of a port.
pub fn transfer(input: &mut Input<'_>) -> PortAccess {
    PortAccess {
        port: input.u16(),
        size: input.choose(&[AccessSize::Byte, AccessSize::Word, AccessSize::Dword]),
        is_in: input.bool(),
        is_string: true,
        is_rep: input.bool(),
        next_rip: 0,
    }
}
