// SPDX-License-Identifier: MIT OR Apache-2.0
//! A whole machine: any exits of two CPUs in any state. A fake CPU panics at a second event.

use std::sync::Arc;

use pmu::Policy;
use pmu::guest::{Config, Filter, Vendor};
use vm::addr::{AccessSize, Gpa};
use vm::cpu::cpuid::{CpuidConfig, CpuidResult, CpuidTable};
use vm::cpu::kvmclock::TscScale;
use vm::exit::{Exit, MemoryAccess, MemoryFault, PortAccess};
use vm::machine::{Cpu, Machine, MachineConfig, Outcome};
use vm::memory::GuestMemory;
use vm::testing::{FakeHost, FakeMemory, FakeVcpu};
use vm::vcpu::{Exception, Gpr, VcpuState};

use crate::input::Input;
use crate::instructions::{cpu, moved, transfer};

const MEMORY_BYTES: usize = 0x1_0000;
const HERTZ: u64 = 3_000_000_000;

/// Exits, one after the other; between two of them time passes, the operator types and the guest is entered.
pub fn machine(data: &[u8]) {
    let mut input = Input(data);
    let tsc = input.number();
    let config = MachineConfig {
        vcpus: 2,
        cpuid: CpuidTable::new(&host_cpuid, &CpuidConfig { vcpus: 2, tsc_khz: 3_000_000, apic_timer_khz: 3_000_000 }),
        scale: TscScale::from_hz(HERTZ).expect("3 GHz is a frequency"),
        boot_unix_ns: input.u64(),
        has_debug_exit: input.bool(),
    };
    let mut config = config;
    let counters = input.choose(&[None, Some(Vendor::Intel), Some(Vendor::Amd)]);
    if let Some(vendor) = counters {
        config.cpuid.show_counters(vendor);
    }
    if input.bool() {
        config.cpuid.show_paravirtual();
    }
    let machine = Machine::new(FakeMemory::new(MEMORY_BYTES), config);
    let mut host = FakeHost { tsc, ..FakeHost::default() };
    let mut cpus = [0, 1].map(|id| (FakeVcpu::default(), Cpu::new(id, id == 0, tsc, 1, Arc::default())));
    if let Some(vendor) = counters {
        let given = Config { vendor, policy: Policy::Direct, filter: Filter::ALL };
        cpus.iter_mut().for_each(|(_, cpu)| cpu.set_counters(&given, pmu::Source::Soft));
    }
    while !input.is_empty() {
        let (vcpu, cpu) = &mut cpus[usize::from(input.u8() & 3 == 0)];
        let exit = next(vcpu, &mut input, machine.memory());
        let before = vcpu.rip;
        let outcome = machine.context(vcpu, cpu, &mut host).handle(exit);
        assert!(moved(vcpu, before) <= 15, "one instruction at a time");
        if let Outcome::Stop(stop) = outcome {
            drop(stop.to_string());
        }
        vcpu.guest_ticks += u64::from(input.u8());
        machine.context(vcpu, cpu, &mut host).raise_overflows();
        pass(&machine, (vcpu, cpu), &mut host, &mut input);
        for (vcpu, cpu) in &mut cpus {
            machine.context(vcpu, cpu, &mut host).prepare_entry();
            // The guest takes the event, unless its delivery is interrupted.
            if input.u8() & 7 != 0 {
                vcpu.injected = None;
            }
        }
    }
}

fn pass(
    machine: &Machine<FakeMemory>,
    (vcpu, cpu): (&mut FakeVcpu, &mut Cpu),
    host: &mut FakeHost,
    input: &mut Input<'_>,
) {
    host.tsc = host.tsc.wrapping_add(input.number());
    host.unix_seconds = host.unix_seconds.wrapping_add(input.u8().into());
    if host.alarm.is_some_and(|deadline| deadline <= host.tsc) {
        machine.context(vcpu, cpu, host).alarm();
    }
    if input.u8() & 3 == 0 {
        host.typed.extend(input.string());
        machine.context(vcpu, cpu, host).poll_devices();
    }
}

pub(crate) fn host_cpuid(leaf: u32, _: u32) -> CpuidResult {
    match leaf {
        0 => CpuidResult { eax: 0x16, ebx: 0x6874_7541, ecx: 0x444d_4163, edx: 0x6974_6e65 },
        0xd => CpuidResult { eax: 7, ebx: 832, ecx: 832, edx: 0 },
        0x8000_0000 => CpuidResult { eax: 0x8000_0021, ..CpuidResult::default() },
        _ => CpuidResult { eax: u32::MAX, ebx: u32::MAX, ecx: u32::MAX, edx: u32::MAX },
    }
}

/// The next exit; the CPU is put in place for it, sometimes in a new state, sometimes in the last one.
pub(crate) fn next(vcpu: &mut FakeVcpu, input: &mut Input<'_>, memory: &FakeMemory) -> Exit {
    let kind = input.u8();
    if kind & 0x80 != 0 {
        let kept = (vcpu.injected.take(), vcpu.pat, vcpu.tsc_offset, vcpu.task_priority);
        *vcpu = cpu(input, memory);
        (vcpu.injected, vcpu.pat, vcpu.tsc_offset, vcpu.task_priority) = kept;
    }
    vcpu.next_rip = (kind & 0x40 != 0).then(|| vcpu.rip.wrapping_add(2));
    match kind & 0xf {
        0 => Exit::Cpuid,
        1 => msr(vcpu, input, Exit::MsrRead),
        2..=4 => msr(vcpu, input, Exit::MsrWrite),
        5..=7 => Exit::Port(port(vcpu, input)),
        8..=11 => Exit::MemoryFault(fault(vcpu, input)),
        12 => Exit::Halt,
        13 => {
            vcpu.set_task_priority(input.u8());
            Exit::InterruptWindow
        }
        14 => write_anywhere(input, memory),
        _ => rare(input),
    }
}

/// The guest writes its memory, such as the flag of a paravirtual end of interrupt.
fn write_anywhere(input: &mut Input<'_>, memory: &FakeMemory) -> Exit {
    let _ = memory.write(Gpa(input.u16().into()), &input.array::<4>());
    Exit::HostInterrupt
}

fn rare(input: &mut Input<'_>) -> Exit {
    input.choose(&[
        Exit::HostNmi,
        Exit::Hypercall,
        Exit::Xsetbv,
        Exit::AbsentInstruction,
        Exit::CounterRead,
        Exit::ClockRead,
        Exit::TaskPriorityWrite { source: None },
        Exit::CacheFlush,
        Exit::Shutdown,
        Exit::EntryRefused,
        Exit::Exception(Exception::Debug),
        Exit::Exception(Exception::Fault { vector: 17, code: Some(0) }),
        Exit::Unknown { code: 1 },
    ])
}

fn msr(vcpu: &mut FakeVcpu, input: &mut Input<'_>, exit: Exit) -> Exit {
    let number = match input.u8() {
        x2apic @ 0..=0x7f => 0x800 + u32::from(x2apic),
        0x80..=0xdf => input.choose(&[
            0x10,
            0x1b,
            0x6e0,
            0x277,
            0x4b56_4d00,
            0x4b56_4d01,
            0x4b56_4d04,
            0xc000_0080,
            0x186,
            0x4c1,
            0x38d,
            0x38f,
            0x1d9,
            0xc001_0200,
            0xc001_0201,
            0xc000_0301,
        ]),
        _ => input.u32(),
    };
    let value = input.number();
    vcpu.set_gpr(Gpr::Rcx, number.into());
    vcpu.set_gpr(Gpr::Rax, value & 0xffff_ffff);
    vcpu.set_gpr(Gpr::Rdx, value >> 32);
    exit
}

fn port(vcpu: &mut FakeVcpu, input: &mut Input<'_>) -> PortAccess {
    let first = input.choose(&[0x3f8, 0x70, 0xcf8, 0x600, 0x505, 0xf4, 0]);
    let is_string = input.u8() & 3 == 0;
    let access = transfer(input);
    vcpu.set_gpr(Gpr::Rax, input.u32().into());
    let port = if first == 0 { access.port } else { first + (access.port & 7) };
    PortAccess { port, is_string, next_rip: vcpu.rip.wrapping_add(2), ..access }
}

fn fault(vcpu: &mut FakeVcpu, input: &mut Input<'_>) -> MemoryFault {
    let page = input.choose(&[0xfee0_0000, 0xfec0_0000, 0xe000_0000, 0xd000_0000, 0]);
    let gpa = if page == 0 { input.number() } else { page + u64::from(input.u16() & 0xfff) };
    vcpu.set_gpr(Gpr::Rax, input.number());
    if input.bool() {
        let size = input.choose(&[AccessSize::Byte, AccessSize::Dword]);
        vcpu.instruction_bytes = vec![if size == AccessSize::Byte { 0x88 } else { 0x89 } | input.u8() & 2, 0x03];
    }
    let access = input.choose(&[MemoryAccess::Read, MemoryAccess::Write, MemoryAccess::Execute]);
    MemoryFault { gpa: Gpa(gpa), access, during_walk: input.u8() == 1 }
}
