// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exits to PCI functions, performance counters and strings of ports, and exceptions that are followed.

use pmu::guest::{Config, Filter, Vendor};
use pmu::{Policy, Source};
use vm::addr::{AccessSize, Gpa};
use vm::devices::pci::Slot;
use vm::devices::virtio::in_slot;
use vm::devices::virtio::rng::{Entropy, Rng};
use vm::exit::{Exit, MemoryAccess, MemoryFault, PortAccess};
use vm::memory::GuestMemory as _;
use vm::vcpu::{Gpr, Rflags, VcpuState as _};

use super::{Guest, INTERRUPT_COMMAND, RIP};

const ECAM: u64 = 0xe000_0000 + (8 << 12);
const BAR: u64 = 0xc000_0000;
const NOTIFY: u64 = BAR + 0x2000;
const DESCRIPTORS: u64 = 0x8000;
const AVAILABLE: u64 = 0x9000;
const USED: u64 = 0xa000;
const BUFFER: u64 = 0xb000;
const ENTRIES: u64 = 8;
/// DR6: a single step.
const STEP: u64 = 1 << 14;
const COUNTER_SELECT: u32 = 0xc001_0200;
const COUNTER: u32 = 0xc001_0201;
/// Cycles in all modes, with an interrupt.
const CYCLES: u64 = 0x0053_0076;

struct Ones;

impl Entropy for Ones {
    fn fill(&mut self, into: &mut [u8]) {
        into.fill(1);
    }
}

impl Guest {
    /// Gives it counters, and a virtio function, which its driver sets up (virtio 1.2, section 3.1.1).
    pub fn add_devices(&mut self) {
        self.vcpus[0]
            .1
            .set_counters(&Config { vendor: Vendor::Amd, policy: Policy::Direct, filter: Filter::ALL }, Source::Soft);
        let function = in_slot(Slot(8), Rng::new(Ones)).expect("it fits");
        self.machine.bus_mut().attach_function(function).expect("the slot is free");
        for (register, value) in [(0x10, BAR as u32), (0x14, 0), (4, 6)] {
            self.store(ECAM + register, AccessSize::Dword, value);
        }
        let common: [(u64, AccessSize, u32); 10] = [
            (20, AccessSize::Byte, 3),
            (8, AccessSize::Dword, 1),
            (12, AccessSize::Dword, 1),
            (20, AccessSize::Byte, 11),
            (24, AccessSize::Word, ENTRIES as u32),
            (32, AccessSize::Dword, DESCRIPTORS as u32),
            (40, AccessSize::Dword, AVAILABLE as u32),
            (48, AccessSize::Dword, USED as u32),
            (28, AccessSize::Word, 1),
            (20, AccessSize::Byte, 15),
        ];
        common.into_iter().for_each(|(register, size, value)| self.store(BAR + register, size, value));
        let descriptor = BUFFER as u128 | 64 << 64 | 2 << 96;
        self.machine.memory().write(Gpa(DESCRIPTORS), &descriptor.to_le_bytes()).unwrap();
    }

    /// `mov [rbx], al`, `ax` or `eax`.
    fn store(&mut self, at: u64, size: AccessSize, value: u32) {
        self.set(&[(Gpr::Rbx, at), (Gpr::Rax, value.into())]);
        let code: &[u8] = match size {
            AccessSize::Byte => &[0x88, 0x03],
            AccessSize::Word => &[0x66, 0x89, 0x03],
            _ => &[0x89, 0x03],
        };
        let fault = MemoryFault { gpa: Gpa(at), access: MemoryAccess::Write, during_walk: false };
        self.leaves(code, Exit::MemoryFault(fault));
    }

    fn word(&self, at: u64) -> u16 {
        let mut bytes = [0; 2];
        self.machine.memory().read(Gpa(at), &mut bytes).unwrap();
        u16::from_le_bytes(bytes)
    }

    /// `rep outsb` or `rep insb` of one byte.
    fn string(&mut self, port: u16, is_in: bool) {
        self.set(&[(Gpr::Rcx, 2), (Gpr::Rsi, BUFFER), (Gpr::Rdi, BUFFER), (Gpr::Rdx, port.into())]);
        let next_rip = RIP + 2;
        let access = PortAccess { port, size: AccessSize::Byte, is_in, is_string: true, is_rep: true, next_rip };
        self.leaves(&[0xf3, if is_in { 0x6c } else { 0x6e }], Exit::Port(access));
        assert_eq!(self.vcpus[0].0.gpr(Gpr::Rcx), 1, "a byte is transferred");
    }

    fn dword_port(&mut self, port: u16, is_in: bool, value: u32) -> u32 {
        self.set(&[(Gpr::Rax, value.into()), (Gpr::Rdx, port.into())]);
        let size = AccessSize::Dword;
        let access = PortAccess { port, size, is_in, is_string: false, is_rep: false, next_rip: RIP + 1 };
        self.leaves(&[if is_in { 0xed } else { 0xef }], Exit::Port(access));
        self.vcpus[0].0.gpr(Gpr::Rax) as u32
    }
}

pub fn strings(guest: &mut Guest) {
    for port in [0x3f8, 0x80] {
        guest.string(port, false);
        guest.string(port, true);
    }
}

/// By ports and in memory: the identity, and a BAR that is moved and put back.
pub fn configuration(guest: &mut Guest) {
    guest.dword_port(0xcf8, false, 1 << 31 | 8 << 8);
    assert_eq!(guest.dword_port(0xcfc, true, 0), 0x1044_1af4);
    guest.access(Gpa(ECAM), MemoryAccess::Read);
    for value in [u32::MAX, BAR as u32] {
        guest.store(ECAM + 0x10, AccessSize::Dword, value);
    }
    for value in [4, 6] {
        guest.store(ECAM + 4, AccessSize::Dword, value);
    }
}

/// A request is made available, and is answered at its notification.
pub fn notification(guest: &mut Guest) {
    let before = guest.word(USED + 2);
    guest.machine.memory().write(Gpa(AVAILABLE + 2), &before.wrapping_add(1).to_le_bytes()).unwrap();
    guest.store(NOTIFY, AccessSize::Word, 0);
    assert_eq!(guest.word(USED + 2), before.wrapping_add(1));
}

/// A counter is started, read, overflows, and is stopped.
pub fn counters(guest: &mut Guest) {
    guest.wrmsr(COUNTER, (1 << 48) - 1000);
    guest.wrmsr(COUNTER_SELECT, CYCLES);
    guest.rdmsr(COUNTER_SELECT);
    assert_eq!(guest.vcpus[0].0.gpr(Gpr::Rax), CYCLES, "the guest has counters");
    guest.host.tsc += 100_000;
    guest.rdmsr(COUNTER);
    let (vcpu, cpu) = &mut guest.vcpus[0];
    guest.machine.context(vcpu, cpu, &mut guest.host).raise_overflows();
    guest.wrmsr(COUNTER_SELECT, 0);
}

pub fn exceptions(guest: &mut Guest) {
    const NO_CODE: u64 = 0;
    guest.leaves(&[0x90], Exit::exception(1, 0, 0, NO_CODE));
    guest.leaves(&[0x90], Exit::exception(17, 0, 0, NO_CODE));
}

/// An NMI waits while one is in service: the IRET of the first is stepped over, and then that of the second.
pub fn interrupt_return(guest: &mut Guest) {
    for _ in 0..2 {
        guest.wrmsr(INTERRUPT_COMMAND, 4 << 8 | 1 << 14);
    }
    for _ in 0..2 {
        guest.leaves(&[0x48, 0xcf], Exit::InterruptReturn);
        let vcpu = &mut guest.vcpus[0].0;
        assert!(vcpu.rflags().contains(Rflags::TRAP), "the IRET is stepped over");
        // It loads the flags.
        vcpu.set_rflags(Rflags::INTERRUPT);
        vcpu.set_dr6(0xffff_0ff0 | STEP);
        guest.leaves(&[0x90], Exit::exception(1, 0, 0, 0));
        let vcpu = &guest.vcpus[0].0;
        assert!(!vcpu.rflags().contains(Rflags::TRAP) && vcpu.dr6() & STEP == 0, "the guest sees nothing of it");
    }
}
