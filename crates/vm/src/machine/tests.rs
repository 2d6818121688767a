// SPDX-License-Identifier: MIT OR Apache-2.0
//! A whole machine on plain data. [`Lab`] plays the CPU: it puts the registers and instruction bytes in place,
//! hands the machine an exit, and enters the guest again.

mod area;
mod assigned;
mod bus;
mod counting;
mod eoi;
mod exceptions;
mod hardware;
mod hypercalls;
mod instructions;
mod interleavings;
mod interrupts;
mod mailbox;
mod memory;
mod msrs;
mod nmi;
mod plugging;
mod ports;
mod properties;
mod saved;
mod serial;
mod speculation;
mod steal;
mod stepping;
mod straddle;
mod strings;
mod timer;
mod twins;
mod waiting;
mod watching;

use super::context::VcpuContext;
use super::*;
use crate::addr::{AccessSize, Gpa};
use crate::cpu::cpuid::{CpuidConfig, CpuidResult};
use crate::devices::InterruptMessage;
use crate::exit::{Exit, MemoryAccess, MemoryFault, PortAccess};
use crate::testing::{FakeHost, FakeMemory, FakeVcpu};
use crate::vcpu::{AccessRights, Event, Exception, Gpr, Rflags, Segment, SegmentName, cr0, efer};

/// The host's time stamp counter when the guest starts.
const START: u64 = 1_000_000;
const RIP: u64 = 0x1000;
const MEMORY_BYTES: usize = 0x10_000;
/// CPUID 0x8000_0001 EDX: NX, SYSCALL, long mode.
const EXTENDED_EDX: u32 = 1 << 29 | 1 << 20 | 1 << 11;

const EOI: u32 = 0x80b;
const SELF_IPI: u32 = 0x83f;
const SPURIOUS: u32 = 0x80f;
const TASK_PRIORITY: u32 = 0x808;
const ENABLED: u64 = 0x1ff;

struct Lab {
    machine: Machine<FakeMemory>,
    cpu: Cpu,
    vcpu: FakeVcpu,
    host: FakeHost,
}

/// A host with a CPU with long mode and XSAVE of x87, SSE and AVX.
fn host_cpuid(leaf: u32, subleaf: u32) -> CpuidResult {
    match (leaf, subleaf) {
        (0, _) => CpuidResult { eax: 0x16, ebx: 0x6874_7541, ecx: 0x444d_4163, edx: 0x6974_6e65 },
        (1, _) => CpuidResult { eax: 0x00a2_0f10, ebx: 0, ecx: u32::MAX, edx: u32::MAX },
        (0xd, 0) => CpuidResult { eax: 7, ebx: 832, ecx: 832, edx: 0 },
        (0xd, 2) => CpuidResult { eax: 256, ebx: 576, ecx: 0, edx: 0 },
        (0x8000_0000, _) => CpuidResult { eax: 0x8000_0021, ..CpuidResult::default() },
        (0x8000_0001, _) => CpuidResult { edx: EXTENDED_EDX | 1 << 9, ..CpuidResult::default() },
        _ => CpuidResult::default(),
    }
}

impl Lab {
    /// A machine in 64-bit mode without paging, interrupts disabled, its local APIC in x2APIC mode and enabled.
    fn new() -> Self {
        let mut lab = Self::after_power_on(true);
        lab.wrmsr(0x1b, 0xfee0_0c00).unwrap();
        lab.wrmsr(SPURIOUS, ENABLED).unwrap();
        lab
    }

    fn after_power_on(has_debug_exit: bool) -> Self {
        Self::with_vcpus(1, has_debug_exit)
    }

    fn with_vcpus(vcpus: u32, has_debug_exit: bool) -> Self {
        Self::of(&host_cpuid, vcpus, has_debug_exit)
    }

    /// The same on another host.
    fn of(host_cpuid: &impl Fn(u32, u32) -> CpuidResult, vcpus: u32, has_debug_exit: bool) -> Self {
        let config = MachineConfig {
            vcpus,
            cpuid: CpuidTable::new(host_cpuid, &CpuidConfig { vcpus, tsc_khz: 3_000_000, apic_timer_khz: 3_000_000 }),
            scale: TscScale::from_hz(3_000_000_000).unwrap(),
            boot_unix_ns: 1_700_000_000_000_000_000,
            has_debug_exit,
        };
        let efer = efer::LMA | efer::LME | efer::SVME;
        let mut vcpu = FakeVcpu { rip: RIP, efer, xcr0: 1, ..FakeVcpu::default() };
        vcpu.segments[SegmentName::Cs as usize] =
            Segment { rights: AccessRights::from_packed(0xa9b), ..Segment::default() };
        let cpu = Cpu::new(0, true, START, 0x1234, Arc::default());
        vcpu.tsc_offset = cpu.tsc_offset();
        let host = FakeHost { tsc: START, unix_seconds: 1_700_000_000, ..FakeHost::default() };
        Self { machine: Machine::new(FakeMemory::new(MEMORY_BYTES), config), cpu, vcpu, host }
    }

    /// The same with its local APIC in xAPIC mode, enabled.
    fn with_xapic() -> Self {
        let mut lab = Self::after_power_on(true);
        lab.store(Gpa(0xfee0_00f0), ENABLED as u32);
        lab
    }

    fn context(&mut self) -> VcpuContext<'_, FakeVcpu, FakeMemory, FakeHost> {
        self.machine.context(&mut self.vcpu, &mut self.cpu, &mut self.host)
    }

    fn handle(&mut self, exit: Exit) -> Outcome {
        self.context().handle(exit)
    }

    /// Something in the machine sends an interrupt message.
    fn send(&mut self, message: &InterruptMessage) {
        self.context().initiator().send(message);
    }

    /// Puts `code` at a fresh RIP.
    fn at(&mut self, code: &[u8]) {
        self.vcpu.rip = RIP;
        self.machine.memory().write(Gpa(RIP), code).unwrap();
    }

    /// Hands over the exit of the instruction `code`, which must be done with.
    fn executed(&mut self, code: &[u8], exit: Exit) -> Outcome {
        self.at(code);
        let outcome = self.handle(exit);
        assert_eq!(self.vcpu.injected, None, "the instruction raised an exception");
        assert_eq!(self.vcpu.rip, RIP + code.len() as u64, "the instruction is not done with");
        outcome
    }

    /// Hands over the exit of the instruction `code`, which must raise an exception.
    fn raised(&mut self, code: &[u8], exit: Exit) -> Exception {
        self.at(code);
        assert_eq!(self.handle(exit), Outcome::Resume);
        assert_eq!(self.vcpu.rip, RIP, "an instruction that faults is not done with");
        let exception = self.vcpu.exception().expect("an exception");
        self.vcpu.injected = None;
        exception
    }

    fn rdmsr(&mut self, number: u32) -> Result<u64, Exception> {
        self.vcpu.gprs[Gpr::Rcx as usize] = number.into();
        self.at(&[0x0f, 0x32]);
        assert_eq!(self.handle(Exit::MsrRead), Outcome::Resume);
        self.result(2)?;
        Ok(self.vcpu.gprs[Gpr::Rdx as usize] << 32 | self.vcpu.gprs[Gpr::Rax as usize])
    }

    fn wrmsr(&mut self, number: u32, value: u64) -> Result<(), Exception> {
        self.vcpu.gprs[Gpr::Rcx as usize] = number.into();
        self.vcpu.gprs[Gpr::Rax as usize] = 0xdead_0000_0000_0000 | value & 0xffff_ffff;
        self.vcpu.gprs[Gpr::Rdx as usize] = 0xdead_0000_0000_0000 | value >> 32;
        self.at(&[0x0f, 0x30]);
        assert_eq!(self.handle(Exit::MsrWrite), Outcome::Resume);
        self.result(2)
    }

    /// Returns `Ok` if the instruction of `bytes` bytes is completed, else the exception that it raised.
    fn result(&mut self, bytes: u64) -> Result<(), Exception> {
        match self.vcpu.exception() {
            Some(exception) => {
                self.vcpu.injected = None;
                assert_eq!(self.vcpu.rip, RIP);
                Err(exception)
            }
            None => {
                assert_eq!(self.vcpu.rip, RIP + bytes);
                Ok(())
            }
        }
    }

    fn port(&mut self, port: u16, size: AccessSize, is_in: bool) -> Outcome {
        let access =
            PortAccess { port, size, is_in, is_string: false, is_rep: false, next_rip: self.vcpu.rip.wrapping_add(2) };
        self.handle(Exit::Port(access))
    }

    fn write_port(&mut self, port: u16, size: AccessSize, value: u32) -> Outcome {
        self.vcpu.gprs[0] = 0xdead_dead_0000_0000 | u64::from(value);
        self.port(port, size, false)
    }

    fn outb(&mut self, port: u16, value: u8) {
        assert_eq!(self.write_port(port, AccessSize::Byte, value.into()), Outcome::Resume);
    }

    fn read_port(&mut self, port: u16, size: AccessSize) -> u32 {
        self.vcpu.gprs[0] = 0;
        assert_eq!(self.port(port, size, true), Outcome::Resume);
        self.vcpu.gprs[0] as u32
    }

    fn inb(&mut self, port: u16) -> u8 {
        self.read_port(port, AccessSize::Byte) as u8
    }

    fn fault(gpa: Gpa, access: MemoryAccess) -> Exit {
        Exit::MemoryFault(MemoryFault { gpa, access, during_walk: false })
    }

    /// `mov [rbx], eax`.
    fn store(&mut self, gpa: Gpa, value: u32) {
        self.vcpu.gprs[Gpr::Rax as usize] = value.into();
        self.vcpu.gprs[Gpr::Rbx as usize] = gpa.0;
        let outcome = self.executed(&[0x89, 0x03], Self::fault(gpa, MemoryAccess::Write));
        assert_eq!(outcome, Outcome::Resume);
    }

    /// `mov eax, [rbx]`.
    fn load(&mut self, gpa: Gpa) -> u32 {
        self.vcpu.gprs[Gpr::Rbx as usize] = gpa.0;
        let outcome = self.executed(&[0x8b, 0x03], Self::fault(gpa, MemoryAccess::Read));
        assert_eq!(outcome, Outcome::Resume);
        self.vcpu.gprs[Gpr::Rax as usize] as u32
    }

    /// Programs a pin of the I/O APIC: the low half of its redirection entry, for CPU 0.
    fn redirect(&mut self, pin: u32, low: u32) {
        self.store(Gpa(0xfec0_0000), 0x10 + 2 * pin);
        self.store(Gpa(0xfec0_0010), low);
    }

    fn set_interrupts(&mut self, enabled: bool) {
        let flags = if enabled { Rflags::INTERRUPT.bits() } else { 0 };
        self.vcpu.rflags = self.vcpu.rflags & !Rflags::INTERRUPT.bits() | flags;
    }

    /// Enters the guest. An event is delivered: its gate disables interrupts.
    fn enter(&mut self) -> Option<Event> {
        self.context().prepare_entry();
        let event = self.vcpu.injected.take();
        if event.is_some() {
            self.set_interrupts(false);
        }
        event
    }

    /// Enters the guest with interrupts enabled; returns the vector it takes.
    fn take_interrupt(&mut self) -> Option<u8> {
        self.set_interrupts(true);
        match self.enter()? {
            Event::Interrupt(vector) => Some(vector),
            other => panic!("{other:?} instead of an interrupt"),
        }
    }

    /// Time passes; the host's alarm goes off if it is due.
    fn pass(&mut self, ticks: u64) {
        self.host.tsc += ticks;
        if self.host.alarm.is_some_and(|deadline| deadline <= self.host.tsc) {
            self.host.alarm = None;
            self.context().alarm();
        }
    }
}
