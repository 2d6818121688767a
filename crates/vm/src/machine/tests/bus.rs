// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices behind a guest's ports and addresses, and the effects of accesses to them.

use std::cell::Cell;

use super::*;
use crate::devices::pci::Slot;
use crate::devices::pvpanic::PanicEvent;
use crate::machine::emulate::VectorWrite;
use crate::testing::Probe;

/// The probe's registers, by the enhanced window.
const CONFIG: u64 = 0xe000_0000 + (8 << 12);
const BAR: u64 = 0xc000_0000;
const RAISE: Gpa = Gpa(BAR + 4);

/// A machine with a probe in device 1: its registers are at [`BAR`], its vector 0 is 0x41 of CPU 0.
fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.machine.bus_mut().attach_function(Probe::in_slot(Slot(8))).expect("the slot is free");
    set_up(&mut lab, 0);
    lab
}

fn set_up(lab: &mut Lab, cpu: u32) {
    lab.store(Gpa(CONFIG + 0x10), BAR as u32);
    lab.store(Gpa(CONFIG + 0x14), 0xc000);
    lab.store(Gpa(CONFIG + 4), 7);
    lab.store(Gpa(CONFIG + 0x58), 1 << 31);
    lab.store(Gpa(BAR + u64::from(Probe::TABLE)), 0xfee0_0000 | cpu << 12);
    lab.store(Gpa(BAR + u64::from(Probe::TABLE) + 8), 0x41);
    lab.store(Gpa(BAR + u64::from(Probe::TABLE) + 12), 0);
}

#[test]
fn a_functions_interrupt_is_taken_by_the_guest() {
    let mut lab = lab();
    assert_eq!(lab.load(Gpa(CONFIG)), 0x7e57_1234);
    lab.store(RAISE, 0);
    assert_eq!(lab.take_interrupt(), Some(0x41));
}

#[test]
fn a_function_answers_at_its_ports_and_addresses() {
    let mut lab = lab();
    lab.store(Gpa(BAR), 0x1234_5678);
    assert_eq!(lab.load(Gpa(BAR)), 0x1234_5678);
    assert_eq!(lab.read_port(0xc000, AccessSize::Dword), 0x1234_5678);
    lab.write_port(0xc000, AccessSize::Dword, 9);
    assert_eq!(lab.load(Gpa(BAR)), 9);
    assert_eq!(lab.load(Gpa(BAR + 0x1000)), u32::MAX, "behind the range");
    assert_eq!(lab.read_port(0xc020, AccessSize::Dword), u32::MAX);
}

#[test]
fn a_function_reaches_the_guests_memory() {
    let mut lab = lab();
    lab.store(Gpa(BAR), 0x55aa);
    lab.store(Gpa(BAR + 8), 0x6000);
    assert_eq!(lab.machine.memory().bytes(Gpa(0x6000), 2), [0xaa, 0x55]);
}

#[test]
fn a_function_that_the_guest_moves_over_the_machines_registers_is_not_reached_there() {
    let mut lab = lab();
    lab.store(Gpa(BAR), 0x1234);
    for taken in [0xfec0_0000u64, 0xe000_0000] {
        let before = lab.load(Gpa(taken));
        lab.store(Gpa(CONFIG + 0x10), taken as u32);
        assert_eq!(lab.load(Gpa(taken)), before);
    }
    lab.store(Gpa(CONFIG + 0x10), BAR as u32);
    assert_eq!(lab.load(Gpa(BAR)), 0x1234, "it can be moved away again");
    lab.store(Gpa(CONFIG + 0x14), 0x70);
    lab.outb(0x70, 0);
    assert_eq!(lab.inb(0x71), 0x20, "the clock's");
}

/// A host that checks, whenever it is to notify another vCPU of an interrupt, whether a device is borrowed.
struct Watching<'a> {
    machine: &'a Machine<FakeMemory>,
    kicks: Cell<u32>,
}

impl Host for Watching<'_> {
    fn tsc(&self) -> u64 {
        START
    }
    fn unix_seconds(&self) -> u64 {
        0
    }
    fn console(&mut self, _: u8) {}
    fn console_input(&mut self) -> Option<u8> {
        Some(b'x')
    }
    fn kick(&mut self, _: usize) {
        assert!(self.machine.bus.devices().all(|device| device.try_lock().is_some()), "a device is borrowed");
        self.kicks.set(self.kicks.get() + 1);
    }
    fn shares_cpu(&self, _: usize) -> bool {
        false
    }
    fn leave_at_once(&mut self) {}
    fn set_alarm(&mut self, _: Option<u64>) {}
    fn panicked(&mut self, _: PanicEvent) {}
    fn send_soon(&mut self) {}
    fn poll_soon(&mut self) {}
    fn driver_fault(&mut self, _: u32, _: ::virtio::Fault) {}
    fn vector(&self, _: u8) -> [u64; 4] {
        [0; 4]
    }
    fn set_vector(&mut self, _: u8, _: [u64; 4], _: VectorWrite) {}
}

/// The causes of a device's interrupt: an MSI-X vector, a line with a new level, an entry that is unmasked.
#[test]
fn interrupts_are_sent_when_no_device_is_borrowed() {
    let mut lab = Lab::with_vcpus(2, false);
    lab.machine.bus_mut().attach_function(Probe::in_slot(Slot(8))).expect("the slot is free");
    set_up(&mut lab, 1);
    // COM1's pin is level-triggered, for CPU 1; COM1 interrupts for input that it receives.
    lab.store(Gpa(0xfec0_0000), 0x19);
    lab.store(Gpa(0xfec0_0010), 1 << 24);
    lab.redirect(4, 0x34 | 1 << 15);
    lab.outb(0x3fc, 1 << 3);
    lab.outb(0x3f9, 1);
    let Lab { machine, mut cpu, mut vcpu, .. } = lab;
    let mut host = Watching { machine: &machine, kicks: Cell::new(0) };
    let mut kicks = 0;
    let mut expect_kick = |host: &Watching<'_>, what: &str| {
        kicks += 1;
        assert_eq!(host.kicks.get(), kicks, "{what}");
        machine.mailboxes[1].take(&mut Lapic::new(1, false));
    };
    machine.context(&mut vcpu, &mut cpu, &mut host).poll_devices();
    expect_kick(&host, "a line");
    for (gpa, value, what) in [(RAISE, 0, "MSI-X"), (Gpa(0xfec0_0040), 0x34, "an end of interrupt")] {
        machine.memory().write(Gpa(RIP), &[0x89, 0x03]).unwrap();
        (vcpu.rip, vcpu.gprs[Gpr::Rax as usize], vcpu.gprs[Gpr::Rbx as usize]) = (RIP, value, gpa.0);
        let exit = Lab::fault(gpa, MemoryAccess::Write);
        assert_eq!(machine.context(&mut vcpu, &mut cpu, &mut host).handle(exit), Outcome::Resume);
        expect_kick(&host, what);
    }
}

#[test]
fn a_device_in_the_place_of_another_is_refused() {
    use crate::devices::bus::Taken;
    use crate::devices::cmos::Cmos;
    let mut lab = lab();
    assert_eq!(lab.machine.bus_mut().attach(Cmos::new()).map(drop), Err(Taken));
    assert_eq!(lab.machine.bus_mut().attach_function(Probe::in_slot(Slot(8))).map(drop), Err(Taken));
    assert!(lab.machine.bus_mut().attach_function(Probe::in_slot(Slot(9))).is_ok());
}
