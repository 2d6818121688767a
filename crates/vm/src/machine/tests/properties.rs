// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever a guest does, the machine answers: no panic, RIP stays or moves past one instruction, one event at a time
//! (the fake CPU panics at a second).
use proptest::prelude::*;

use super::*;

/// Encodings that exits come from, and some that have no business here; any prefix may stand before them.
const CODE: [&[u8]; 21] = [
    &[0x0f, 0xa2],
    &[0x0f, 0x22, 0xc0],
    &[0x0f, 0x32],
    &[0x0f, 0x30],
    &[0xf4],
    &[0x0f, 0x01, 0xd9],
    &[0x0f, 0x01, 0xd1],
    &[0x0f, 0x09],
    &[0x6c],
    &[0x6d],
    &[0x6e],
    &[0x6f],
    &[0x89, 0x03],
    &[0x8b, 0x03],
    &[0x0f, 0xb6, 0x43, 0x10],
    &[0xa4],
    &[0xa5],
    &[0xaa],
    &[0xab],
    &[0x0b, 0x03],
    &[0x87, 0x03],
];
const PREFIXES: [u8; 8] = [0xf3, 0xf2, 0x66, 0x67, 0x48, 0x4c, 0x65, 0xf0];

fn code() -> impl Strategy<Value = std::vec::Vec<u8>> {
    let known = (prop::collection::vec(prop::sample::select(&PREFIXES[..]), 0..4), prop::sample::select(&CODE[..]));
    prop_oneof![
        3 => known.prop_map(|(mut bytes, code)| { bytes.extend_from_slice(code); bytes }),
        1 => prop::collection::vec(any::<u8>(), 15),
    ]
}

fn gpa() -> impl Strategy<Value = u64> {
    let device = prop::sample::select(&[0xfee0_0000u64, 0xfec0_0000, 0xe000_0000, 0xd000_0000][..]);
    prop_oneof![(device, 0..0x1000u64).prop_map(|(page, offset)| page + offset), 0..0x1_0000u64, any::<u64>(),]
}

fn size() -> impl Strategy<Value = AccessSize> {
    prop::sample::select(&[AccessSize::Byte, AccessSize::Word, AccessSize::Dword][..])
}

fn port() -> impl Strategy<Value = u16> {
    prop_oneof![0x3f8..0x400u16, 0x70..0x72u16, 0xcf8..0xd00u16, 0x600..0x602u16, Just(0x505), Just(0xf4), any::<u16>()]
}

fn exit() -> impl Strategy<Value = Exit> {
    let plain = [
        Exit::Cpuid,
        Exit::Halt,
        Exit::InterruptWindow,
        Exit::HostInterrupt,
        Exit::HostNmi,
        Exit::Hypercall,
        Exit::Xsetbv,
        Exit::AbsentInstruction,
        Exit::CounterRead,
        Exit::TaskPriorityWrite { source: None },
        Exit::CacheFlush,
        Exit::Shutdown,
        Exit::EntryRefused,
        Exit::Exception(Exception::Debug),
        Exit::Exception(Exception::Fault { vector: 17, code: Some(0) }),
        Exit::Unknown { code: 7 },
    ];
    let access = (port(), size(), any::<[bool; 3]>()).prop_map(|(port, size, [is_in, is_string, is_rep])| {
        Exit::Port(PortAccess { port, size, is_in, is_string, is_rep, next_rip: 0 })
    });
    let kind = prop::sample::select(&[MemoryAccess::Read, MemoryAccess::Write, MemoryAccess::Execute][..]);
    let fault = (gpa(), kind, prop::bool::weighted(0.05))
        .prop_map(|(gpa, access, during_walk)| Exit::MemoryFault(MemoryFault { gpa: Gpa(gpa), access, during_walk }));
    prop_oneof![
        3 => prop::sample::select(std::vec::Vec::from(plain)),
        2 => Just(Exit::MsrRead),
        3 => Just(Exit::MsrWrite),
        5 => access,
        5 => fault,
    ]
}

fn msr() -> impl Strategy<Value = u32> {
    prop_oneof![
        0x800..0x840u32,
        prop::sample::select(
            &[0x10, 0x1b, 0x6e0, 0x277, 0x4b56_4d00, 0x4b56_4d01, 0x4b56_4d04, 0xc000_0080, 0xc001_0015][..]
        ),
        any::<u32>(),
    ]
}

/// One exit, and the CPU that it finds.
#[derive(Clone, Debug)]
pub(super) struct Step {
    exit: Exit,
    code: std::vec::Vec<u8>,
    gprs: [u64; 16],
    msr: Option<u32>,
    small_rax: Option<u8>,
    rip: u64,
    cs: u16,
    control: [u64; 3],
    has_paging: bool,
    interrupts_on: bool,
    task_priority: u8,
    cpl: u8,
    has_next_rip: bool,
    pub(super) ticks: u32,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let cpu = (prop_oneof![4 => 0..0x8000u64, 1 => any::<u64>()], any::<u16>(), any::<[u64; 3]>());
    let registers = (any::<[u64; 16]>(), prop::option::of(msr()), prop::option::of(any::<u8>()));
    let flags = (prop::bool::weighted(0.2), any::<bool>(), 0..16u8, 0..4u8, any::<bool>(), any::<u32>());
    (exit(), code(), registers, cpu, flags).prop_map(|(exit, code, registers, cpu, flags)| {
        let ((gprs, msr, small_rax), (rip, cs, control)) = (registers, cpu);
        let (has_paging, interrupts_on, task_priority, cpl, has_next_rip, ticks) = flags;
        Step {
            exit,
            code,
            gprs,
            msr,
            small_rax,
            rip,
            cs,
            control,
            has_paging,
            interrupts_on,
            task_priority,
            cpl,
            has_next_rip,
            ticks,
        }
    })
}

impl Lab {
    /// Puts the CPU in place; returns the exit, which knows where its instruction ends.
    pub(super) fn prepare(&mut self, step: &Step) -> Exit {
        let vcpu = &mut self.vcpu;
        (vcpu.gprs, vcpu.rip, vcpu.task_priority, vcpu.cpl) = (step.gprs, step.rip, step.task_priority, step.cpl);
        vcpu.segments[SegmentName::Cs as usize].rights = AccessRights::from_packed(step.cs);
        [vcpu.cr0, vcpu.cr3, vcpu.cr4] = step.control;
        vcpu.cr0 = if step.has_paging { vcpu.cr0 | cr0::PG } else { vcpu.cr0 & !cr0::PG };
        if let Some(msr) = step.msr {
            vcpu.gprs[Gpr::Rcx as usize] = msr.into();
        }
        if let Some(small) = step.small_rax {
            (vcpu.gprs[Gpr::Rax as usize], vcpu.gprs[Gpr::Rdx as usize]) = (small.into(), 0);
        }
        let next_rip = step.rip.wrapping_add(step.code.len() as u64);
        vcpu.next_rip = step.has_next_rip.then_some(next_rip);
        // An address without memory is one of the things to try.
        let _ = self.machine.memory().write(Gpa(step.rip), &step.code);
        self.set_interrupts(step.interrupts_on);
        match step.exit {
            Exit::Port(access) => Exit::Port(PortAccess { next_rip, ..access }),
            other => other,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_exits_are_answered(steps in prop::collection::vec(step(), 1..24), is_x2apic in any::<bool>()) {
        let mut lab = if is_x2apic { Lab::new() } else { Lab::with_xapic() };
        for step in steps {
            let exit = lab.prepare(&step);
            lab.handle(exit);
            let moved = lab.vcpu.rip.wrapping_sub(step.rip);
            // Outside 64-bit mode RIP has 32 bits.
            let moved = if crate::machine::instruction::bitness(&lab.vcpu) == 64 { moved } else { moved & 0xffff_ffff };
            prop_assert!(moved <= 15, "RIP moved by {:#x}", moved);
            prop_assert!(moved == 0 || lab.vcpu.exception().is_none(), "an instruction that faults is not done with");
            lab.pass(step.ticks.into());
            lab.enter();
        }
    }
}
