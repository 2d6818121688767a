// SPDX-License-Identifier: MIT OR Apache-2.0
//! No exit path allocates: a guest's machine answers each kind of exit while allocations are counted, the first of its
//! kind included. It is the only test here: another one could have made what is made once in a process. (`sched` and
//! `klog`, which are passed on every exit too, are built without `alloc`.)

mod devices;

use std::sync::Arc;

use allocation_counter::measure;
use svm::Features;
use svm::vcpu::{Tables, Vcpu};
use svm::vmcb::Vmcb;
use vm::addr::{AccessSize, Gpa};
use vm::cpu::cpuid::{CpuidConfig, CpuidResult, CpuidTable};
use vm::cpu::kvmclock::TscScale;
use vm::devices::pvpanic::PanicEvent;
use vm::exit::{Exit, MemoryAccess, MemoryFault, PortAccess};
use vm::machine::emulate::VectorWrite;
use vm::machine::{Cpu, ExitStatistics, Host, Machine, MachineConfig, Outcome};
use vm::memory::GuestMemory;
use vm::testing::FakeMemory;
use vm::vcpu::{AccessRights, EntryState, Gpr, Rflags, Segment, TableRegister, VcpuState, cr0, efer};

const RIP: u64 = 0x1000;
const IOAPIC: Gpa = Gpa(0xfec0_0000);
const APIC_BASE: u32 = 0x1b;
const TSC_DEADLINE: u32 = 0x6e0;
const APIC_ID: u32 = 0x802;
const EOI: u32 = 0x80b;
const SPURIOUS: u32 = 0x80f;
const INTERRUPT_COMMAND: u32 = 0x830;
const TIMER: u32 = 0x832;
const SELF_IPI: u32 = 0x83f;
const NOBODYS: u32 = 0xdead;

/// A hypervisor that keeps nothing.
#[derive(Default)]
struct Quiet {
    tsc: u64,
    written: u64,
    kicks: u64,
    alarm: Option<u64>,
}

impl Host for Quiet {
    fn tsc(&self) -> u64 {
        self.tsc
    }
    fn unix_seconds(&self) -> u64 {
        1_700_000_000
    }
    fn console(&mut self, _: u8) {
        self.written += 1;
    }
    fn console_input(&mut self) -> Option<u8> {
        None
    }
    fn kick(&mut self, _: usize) {
        self.kicks += 1;
    }
    fn shares_cpu(&self, _: usize) -> bool {
        false
    }
    fn leave_at_once(&mut self) {}
    fn send_soon(&mut self) {}
    fn set_alarm(&mut self, deadline: Option<u64>) {
        self.alarm = deadline;
    }
    fn panicked(&mut self, _: PanicEvent) {}
    fn poll_soon(&mut self) {}
    fn driver_fault(&mut self, _: u32, _: vm::devices::virtio::Fault) {}
    fn vector(&self, _: u8) -> [u64; 4] {
        [0; 4]
    }
    fn set_vector(&mut self, _: u8, _: [u64; 4], _: VectorWrite) {}
}

/// A CPU with long mode and XSAVE of x87 and SSE.
fn host_cpuid(leaf: u32, subleaf: u32) -> CpuidResult {
    match (leaf, subleaf) {
        (0, _) => CpuidResult { eax: 0x16, ebx: 0x6874_7541, ecx: 0x444d_4163, edx: 0x6974_6e65 },
        (1, _) => CpuidResult { eax: 0x00a2_0f10, ebx: 0, ecx: u32::MAX, edx: u32::MAX },
        (0xd, 0) => CpuidResult { eax: 3, ebx: 576, ecx: 576, edx: 0 },
        (0x8000_0000, _) => CpuidResult { eax: 0x8000_0021, ..CpuidResult::default() },
        (0x8000_0001, _) => CpuidResult { edx: 1 << 29 | 1 << 20 | 1 << 11 | 1 << 9, ..CpuidResult::default() },
        _ => CpuidResult::default(),
    }
}

/// 64-bit code without paging: addresses are guest-physical ones.
fn vcpu() -> Vcpu<Box<Vmcb>> {
    let flat = Segment { selector: 0x18, rights: AccessRights::from_packed(0xc93), limit: u32::MAX, base: 0 };
    let entry = EntryState {
        rip: RIP,
        rsp: 0x800,
        rflags: Rflags::INTERRUPT.bits(),
        gprs: [0; 16],
        cr0: cr0::PE,
        cr3: 0,
        cr4: 0,
        efer: efer::LME | efer::LMA,
        cs: Segment { selector: 0x10, rights: AccessRights::from_packed(0xa9b), ..flat },
        data: flat,
        tr: Segment { rights: AccessRights::from_packed(0x8b), ..Segment::default() },
        gdtr: TableRegister::default(),
        idtr: TableRegister::default(),
    };
    let tables = Tables { io_map: 0x1000, msr_map: 0x4000, nested_root: 0x6000 };
    // Without next-RIP save and decode assists more is left to software.
    Vcpu::new(Box::new(Vmcb::zeroed()), Features::from_cpuid(16, 1 << 5 | 1 << 6), 1, tables, &entry)
}

struct Guest {
    machine: Machine<FakeMemory>,
    vcpus: [(Vcpu<Box<Vmcb>>, Cpu); 2],
    host: Quiet,
}

impl Guest {
    fn new() -> Self {
        let shown = CpuidConfig { vcpus: 2, tsc_khz: 3_000_000, apic_timer_khz: 3_000_000 };
        let mut cpuid = CpuidTable::new(&host_cpuid, &shown);
        cpuid.show_counters(pmu::guest::Vendor::Amd);
        let config = MachineConfig {
            vcpus: 2,
            cpuid,
            scale: TscScale::from_hz(3_000_000_000).unwrap(),
            boot_unix_ns: 0,
            has_debug_exit: true,
        };
        let cpu = |id| Cpu::new(id, id == 0, 0, 0, Arc::new(ExitStatistics::new()));
        let vcpus = [(vcpu(), cpu(0)), (vcpu(), cpu(1))];
        Self { machine: Machine::new(FakeMemory::new(0x10_000), config), vcpus, host: Quiet::default() }
    }

    /// vCPU 0 leaves at this instruction, and is entered again if it may run. The event that the entry delivers is
    /// taken.
    fn leaves(&mut self, code: &[u8], exit: Exit) -> Outcome {
        let (vcpu, cpu) = &mut self.vcpus[0];
        vcpu.set_rip(RIP);
        self.machine.memory().write(Gpa(RIP), code).unwrap();
        let outcome = self.machine.context(vcpu, cpu, &mut self.host).handle(exit);
        self.enter(0);
        outcome
    }

    /// Returns whether it runs, and the interrupt that it takes.
    fn enter(&mut self, which: usize) -> (bool, Option<u8>) {
        let (vcpu, cpu) = &mut self.vcpus[which];
        let runs = self.machine.context(vcpu, cpu, &mut self.host).prepare_entry();
        let vector = vcpu.withdraw_interrupt();
        // An exception was injected with EVENTINJ, which the CPU clears.
        let _ = vcpu.after_exit();
        (runs, vector)
    }

    fn set(&mut self, gprs: &[(Gpr, u64)]) {
        gprs.iter().for_each(|&(gpr, value)| self.vcpus[0].0.set_gpr(gpr, value));
    }

    fn wrmsr(&mut self, msr: u32, value: u64) {
        self.set(&[(Gpr::Rcx, msr.into()), (Gpr::Rax, value & 0xffff_ffff), (Gpr::Rdx, value >> 32)]);
        self.leaves(&[0x0f, 0x30], Exit::MsrWrite);
    }

    fn rdmsr(&mut self, msr: u32) {
        self.set(&[(Gpr::Rcx, msr.into())]);
        self.leaves(&[0x0f, 0x32], Exit::MsrRead);
    }

    fn port(&mut self, port: u16, is_in: bool) {
        let size = AccessSize::Byte;
        let next_rip = RIP + 1;
        let access = PortAccess { port, size, is_in, is_string: false, is_rep: false, next_rip };
        self.leaves(&[if is_in { 0xec } else { 0xee }], Exit::Port(access));
    }

    /// `mov [rbx], eax` or `mov eax, [rbx]`.
    fn access(&mut self, gpa: Gpa, access: MemoryAccess) {
        self.set(&[(Gpr::Rbx, gpa.0)]);
        let code = if access == MemoryAccess::Write { 0x89 } else { 0x8b };
        self.leaves(&[code, 0x03], Exit::MemoryFault(MemoryFault { gpa, access, during_walk: false }));
    }
}

fn self_ipi(guest: &mut Guest) {
    guest.vcpus[0].0.set_rflags(Rflags::empty());
    guest.wrmsr(SELF_IPI, 0x40);
    guest.vcpus[0].0.set_rflags(Rflags::INTERRUPT);
    assert_eq!(guest.enter(0), (true, Some(0x40)));
    guest.wrmsr(EOI, 0);
}

fn halt_until_the_timer(guest: &mut Guest) {
    guest.wrmsr(TIMER, 2 << 17 | 0x50);
    guest.wrmsr(TSC_DEADLINE, guest.host.tsc + 1000);
    assert_eq!(guest.leaves(&[0xf4], Exit::Halt), Outcome::Idle);
    guest.host.tsc = guest.host.alarm.expect("the timer is set");
    let (vcpu, cpu) = &mut guest.vcpus[0];
    guest.machine.context(vcpu, cpu, &mut guest.host).alarm();
    assert_eq!(guest.enter(0), (true, Some(0x50)));
    guest.wrmsr(EOI, 0);
}

/// INIT, start-up, an NMI and an interrupt for vCPU 1, which takes them.
fn interrupt_another(guest: &mut Guest) {
    let before = guest.host.kicks;
    for command in [5 << 8 | 1 << 14, 6 << 8 | 1 << 14 | 3, 4 << 8 | 1 << 14, 1 << 14 | 0x60] {
        guest.wrmsr(INTERRUPT_COMMAND, 1 << 32 | command);
        guest.enter(1);
    }
    assert!(guest.host.kicks > before);
}

fn consoles(guest: &mut Guest) {
    let before = guest.host.written;
    guest.port(0x3f8, false);
    guest.port(0x3fd, true);
    assert_eq!(guest.host.written, before + 1);
}

fn mmio(guest: &mut Guest) {
    guest.access(IOAPIC, MemoryAccess::Write);
    guest.access(Gpa(IOAPIC.0 + 0x10), MemoryAccess::Read);
    guest.access(Gpa(0xd000_0000), MemoryAccess::Read);
}

fn rare(guest: &mut Guest) {
    guest.leaves(&[0x0f, 0x01, 0xd9], Exit::Hypercall);
    guest.leaves(&[0xf3, 0x90], Exit::Pause);
    guest.leaves(&[0x0f, 0x09], Exit::CacheFlush);
    guest.leaves(&[0x0f, 0x01, 0xd8], Exit::AbsentInstruction);
    guest.leaves(&[0x0f, 0x33], Exit::CounterRead);
    guest.leaves(&[0x0f, 0x31], Exit::ClockRead);
    guest.set(&[(Gpr::Rcx, 0), (Gpr::Rax, 3), (Gpr::Rdx, 0)]);
    guest.leaves(&[0x0f, 0x01, 0xd1], Exit::Xsetbv);
}

fn host_interrupts(guest: &mut Guest) {
    guest.leaves(&[0x90], Exit::HostInterrupt);
    guest.leaves(&[0x90], Exit::InterruptWindow);
}

type Exits = (&'static str, fn(&mut Guest));

const EXITS: [Exits; 16] = [
    ("MMIO", mmio),
    ("CPUID", |guest| _ = guest.leaves(&[0x0f, 0xa2], Exit::Cpuid)),
    ("a port that no device has", |guest| guest.port(0x80, false)),
    ("COM1", consoles),
    ("RDMSR", |guest| guest.rdmsr(APIC_ID)),
    ("#GP for an MSR", |guest| guest.rdmsr(NOBODYS)),
    ("a self-IPI", self_ipi),
    ("HLT and the timer", halt_until_the_timer),
    ("interrupts for another vCPU", interrupt_another),
    ("host interrupts", host_interrupts),
    ("INS and OUTS", devices::strings),
    ("PCI configuration", devices::configuration),
    ("a virtio queue's notification", devices::notification),
    ("performance counters", devices::counters),
    ("#DB and #AC", devices::exceptions),
    ("an IRET that is stepped over", devices::interrupt_return),
];

#[test]
fn no_exit_path_allocates() {
    let mut guest = Guest::new();
    guest.wrmsr(APIC_BASE, 0xfee0_0d00);
    guest.wrmsr(SPURIOUS, 0x1ff);
    guest.add_devices();
    assert_ne!(measure(|| drop(Box::new(guest.host.tsc))).count_total, 0, "allocations are counted");
    for round in 0..100 {
        for (name, exits) in EXITS.iter().chain(&[("rare ones", rare as fn(&mut Guest))]) {
            let found = measure(|| exits(&mut guest));
            assert_eq!((found.count_total, found.bytes_total), (0, 0), "{name}, round {round}");
        }
    }
}
