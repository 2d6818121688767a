// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operands that lie on two pages, and transfers of ports to device registers.
use super::*;

const LOCAL_APIC: u64 = 0xfee0_0000;
/// Two neighbouring linear pages, of which the guest maps each where it likes.
const FIRST: u64 = 0x1f_e000;
const SECOND: u64 = 0x1f_f000;
/// A page of memory.
const MEMORY: u64 = 0x5000;
const PRESENT: u64 = 1;
const WRITABLE: u64 = 3;

/// A local APIC in xAPIC mode, and four levels of paging: `first` and `second` are the entries of the two pages.
fn lab(first: u64, second: u64) -> Lab {
    let mut lab = Lab::with_xapic();
    let memory = lab.machine.memory();
    for (table, entry) in [(0x8000u64, 0x9003u64), (0x9000, 0xa003), (0xa000, 0xb003), (0xb008, RIP | 3)] {
        memory.write(Gpa(table), &entry.to_le_bytes()).unwrap();
    }
    memory.write(Gpa(0xb000 + 510 * 8), &first.to_le_bytes()).unwrap();
    memory.write(Gpa(0xb000 + 511 * 8), &second.to_le_bytes()).unwrap();
    (lab.vcpu.cr0, lab.vcpu.cr3, lab.vcpu.cr4) = (cr0::PG | cr0::PE | cr0::WP, 0x8000, 1 << 5);
    lab
}

impl Lab {
    /// `mov [rbx], eax` at a linear address; the CPU finds no memory at `gpa`.
    fn store_at(&mut self, linear: u64, gpa: u64, value: u32) {
        self.at(&[0x89, 0x03]);
        self.vcpu.gprs[Gpr::Rax as usize] = value.into();
        self.vcpu.gprs[Gpr::Rbx as usize] = linear;
        assert_eq!(self.handle(Self::fault(Gpa(gpa), MemoryAccess::Write)), Outcome::Resume);
    }

    /// The local APIC's register at `offset`, by a load that lies on one page.
    fn register(&mut self, offset: u64) -> u32 {
        (self.vcpu.cr0, self.vcpu.cr4) = (0, 0);
        self.load(Gpa(LOCAL_APIC + offset))
    }
}

#[test]
fn a_store_from_memory_into_a_device_reaches_both() {
    let mut lab = lab(MEMORY | WRITABLE, LOCAL_APIC | WRITABLE);
    lab.store_at(SECOND - 2, LOCAL_APIC, 0x4433_2211);
    assert_eq!(lab.vcpu.exception(), None);
    assert_eq!(lab.machine.memory().bytes(Gpa(MEMORY + 0xffe), 2), [0x11, 0x22], "memory's half");
    assert_eq!(lab.vcpu.rip, RIP + 2);
}

#[test]
fn a_store_from_a_device_into_memory_reaches_both() {
    let mut lab = lab(LOCAL_APIC | WRITABLE, MEMORY | WRITABLE);
    lab.store_at(SECOND - 1, LOCAL_APIC + 0xfff, 0x4433_2211);
    assert_eq!(lab.vcpu.exception(), None);
    assert_eq!(lab.machine.memory().bytes(Gpa(MEMORY), 4), [0x22, 0x33, 0x44, 0], "memory's three quarters");
}

#[test]
fn a_quadword_whose_upper_half_is_a_register_writes_the_register() {
    let mut lab = lab(MEMORY | WRITABLE, 0xfec0_0000 | WRITABLE);
    lab.at(&[0x48, 0x89, 0x03]); // mov [rbx], rax
    lab.vcpu.gprs[Gpr::Rax as usize] = 0x0000_0001_8877_6655;
    lab.vcpu.gprs[Gpr::Rbx as usize] = SECOND - 4;
    assert_eq!(lab.handle(Lab::fault(Gpa(0xfec0_0000), MemoryAccess::Write)), Outcome::Resume);
    assert_eq!(lab.machine.memory().bytes(Gpa(MEMORY + 0xffc), 4), [0x55, 0x66, 0x77, 0x88]);
    (lab.vcpu.cr0, lab.vcpu.cr4) = (0, 0);
    assert_eq!(lab.load(Gpa(0xfec0_0010)), 0x0017_0020, "the I/O APIC's index is 1: version and pins");
}

#[test]
fn a_load_takes_each_part_from_where_its_page_is() {
    // The page behind the local APIC's in guest-physical memory is a hole. The guest has mapped memory there.
    let mut lab = lab(0xd000_0000 | WRITABLE, MEMORY | WRITABLE);
    lab.machine.memory().write(Gpa(MEMORY), &[0x22, 0x33]).unwrap();
    lab.at(&[0x8b, 0x03]); // mov eax, [rbx]
    lab.vcpu.gprs[Gpr::Rbx as usize] = SECOND - 2;
    assert_eq!(lab.handle(Lab::fault(Gpa(0xd000_0ffe), MemoryAccess::Read)), Outcome::Resume);
    assert_eq!(lab.vcpu.gprs[Gpr::Rax as usize], 0x3322_ffff);
}

#[test]
fn a_change_of_an_operand_on_two_pages_reads_and_writes_both() {
    let mut lab = lab(MEMORY | WRITABLE, 0xd000_0000 | WRITABLE);
    lab.machine.memory().write(Gpa(MEMORY + 0xffe), &[0x01, 0x00]).unwrap();
    lab.at(&[0x81, 0x03, 0xff, 0xff, 0x00, 0x00]); // add dword [rbx], 0xffff
    lab.vcpu.gprs[Gpr::Rbx as usize] = SECOND - 2;
    assert_eq!(lab.handle(Lab::fault(Gpa(0xd000_0000), MemoryAccess::Write)), Outcome::Resume);
    assert_eq!(lab.machine.memory().bytes(Gpa(MEMORY + 0xffe), 2), [0, 0], "the sum carries into the hole");
    assert_eq!(lab.vcpu.rflags & 1, 1, "and out of it");
}

#[test]
fn a_second_page_that_is_missing_or_read_only_faults_there_and_nothing_is_done() {
    for (second, code) in [(0, 2), (MEMORY | PRESENT, 3)] {
        let mut lab = lab(LOCAL_APIC | WRITABLE, second);
        let before = lab.machine.memory().bytes(Gpa(MEMORY), 4);
        lab.store_at(SECOND - 2, LOCAL_APIC + 0xffe, 0x4433_2211);
        assert_eq!(lab.vcpu.exception(), Some(Exception::PageFault { code, address: SECOND }));
        assert_eq!((lab.vcpu.rip, lab.machine.memory().bytes(Gpa(MEMORY), 4)), (RIP, before));
    }
}

#[test]
fn a_first_page_that_is_read_only_faults_at_the_operand_although_the_second_is_the_device() {
    let mut lab = lab(MEMORY | PRESENT, LOCAL_APIC | WRITABLE);
    lab.store_at(SECOND - 2, LOCAL_APIC, 0x4433_2211);
    assert_eq!(lab.vcpu.exception(), Some(Exception::PageFault { code: 3, address: SECOND - 2 }));
}

#[test]
fn user_code_needs_both_pages_for_itself() {
    let mut lab = lab(LOCAL_APIC | 7, MEMORY | WRITABLE);
    for table in [0x8000u64, 0x9000, 0xa000] {
        let next = table + 0x1000;
        lab.machine.memory().write(Gpa(table), &(next | 7).to_le_bytes()).unwrap();
    }
    lab.vcpu.cpl = 3;
    lab.store_at(SECOND - 2, LOCAL_APIC + 0xffe, 0);
    assert_eq!(lab.vcpu.exception(), Some(Exception::PageFault { code: 7, address: SECOND }));
}

#[test]
fn a_load_that_faults_on_its_second_page_does_not_read_the_device() {
    let mut lab = lab(LOCAL_APIC | WRITABLE, 0);
    lab.at(&[0xff, 0x33]); // push qword [rbx]: the stack's page is not there
    lab.vcpu.gprs[Gpr::Rbx as usize] = FIRST + 0x20;
    lab.vcpu.gprs[Gpr::Rsp as usize] = SECOND + 8;
    assert_eq!(lab.handle(Lab::fault(Gpa(LOCAL_APIC + 0x20), MemoryAccess::Read)), Outcome::Resume);
    assert_eq!(lab.vcpu.exception(), Some(Exception::PageFault { code: 2, address: SECOND }));
    assert_eq!((lab.vcpu.rip, lab.vcpu.gprs[Gpr::Rsp as usize]), (RIP, SECOND + 8));
}

#[test]
fn a_bit_offset_leads_to_a_register_on_the_next_page() {
    let mut lab = lab(MEMORY | WRITABLE, 0xfec0_0000 | WRITABLE);
    lab.at(&[0x0f, 0xab, 0x03]); // bts [rbx], eax
    lab.vcpu.gprs[Gpr::Rax as usize] = 0x1000 * 8;
    lab.vcpu.gprs[Gpr::Rbx as usize] = FIRST;
    assert_eq!(lab.handle(Lab::fault(Gpa(0xfec0_0000), MemoryAccess::Write)), Outcome::Resume);
    (lab.vcpu.cr0, lab.vcpu.cr4) = (0, 0);
    assert_eq!(lab.load(Gpa(0xfec0_0000)), 1, "the I/O APIC's index");
}

#[test]
fn an_instruction_that_has_changed_since_the_fault_is_executed_again() {
    let mut lab = lab(MEMORY | WRITABLE, LOCAL_APIC | WRITABLE);
    lab.vcpu.rflags |= Rflags::TRAP.bits();
    lab.store_at(FIRST + 4, LOCAL_APIC, 1);
    assert_eq!((lab.vcpu.rip, lab.vcpu.exception()), (RIP, None), "it is not done, so no single step has ended");
}

fn string(port: u16, size: AccessSize, is_in: bool) -> Exit {
    Exit::Port(PortAccess { port, size, is_in, is_string: true, is_rep: false, next_rip: RIP + 1 })
}

#[test]
fn what_a_port_sends_reaches_a_device_register() {
    let mut lab = Lab::with_xapic();
    lab.write_port(0xcf8, AccessSize::Dword, 0x8000_0000);
    lab.at(&[0x6d]); // insd
    lab.vcpu.gprs[Gpr::Rdi as usize] = LOCAL_APIC + 0x380;
    assert_eq!(lab.handle(string(0xcf8, AccessSize::Dword, true)), Outcome::Resume);
    assert_eq!(lab.vcpu.gprs[Gpr::Rdi as usize], LOCAL_APIC + 0x380 + 4);
    assert_eq!(lab.vcpu.rip, RIP + 1);
    assert_eq!(lab.register(0x380), 0x8000_0000);
}

#[test]
fn what_a_device_register_holds_reaches_a_port() {
    let mut lab = Lab::with_xapic();
    lab.store(Gpa(LOCAL_APIC + 0x380), 0x41);
    lab.at(&[0x6e]); // outsb
    lab.vcpu.gprs[Gpr::Rsi as usize] = LOCAL_APIC + 0x380;
    assert_eq!(lab.handle(string(0x3f8, AccessSize::Byte, false)), Outcome::Resume);
    assert_eq!(lab.host.console, b"A");
}

#[test]
fn a_port_sends_to_two_pages_what_each_is_to_get() {
    let mut lab = lab(MEMORY | WRITABLE, 0xfec0_0000 | WRITABLE);
    lab.at(&[0x6d]); // insd, from a port without a device: all ones
    lab.vcpu.gprs[Gpr::Rdi as usize] = SECOND - 2;
    assert_eq!(lab.handle(string(0x80, AccessSize::Dword, true)), Outcome::Resume);
    assert_eq!((lab.vcpu.exception(), lab.vcpu.rip), (None, RIP + 1));
    assert_eq!(lab.machine.memory().bytes(Gpa(MEMORY + 0xffd), 3), [0, 0xff, 0xff]);
}

#[test]
fn a_port_is_not_read_for_a_page_that_is_not_there() {
    let mut lab = lab(MEMORY | WRITABLE, 0);
    lab.host.typed.extend(b"a");
    lab.context().poll_devices();
    lab.at(&[0x6d]);
    lab.vcpu.gprs[Gpr::Rdi as usize] = SECOND - 2;
    assert_eq!(lab.handle(string(0x3f8, AccessSize::Dword, true)), Outcome::Resume);
    assert_eq!(lab.vcpu.exception(), Some(Exception::PageFault { code: 2, address: SECOND }));
    assert_eq!(lab.machine.memory().bytes(Gpa(MEMORY + 0xffe), 2), [0, 0]);
    assert_eq!(lab.inb(0x3f8), b'a', "the byte still waits");
}
