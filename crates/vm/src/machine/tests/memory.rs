// SPDX-License-Identifier: MIT OR Apache-2.0
//! Addresses that no memory backs: device registers, holes, and faults at no device's register.
use super::*;

const LOCAL_APIC: u64 = 0xfee0_0000;
const HOLE: Gpa = Gpa(0xd000_0000);

#[test]
fn the_local_apics_registers_are_read_and_written_by_ordinary_moves() {
    let mut lab = Lab::with_xapic();
    assert_eq!(lab.load(Gpa(LOCAL_APIC + 0x20)), 0, "identifier");
    assert_eq!(lab.load(Gpa(LOCAL_APIC + 0xf0)), 0x1ff);
    lab.store(Gpa(LOCAL_APIC + 0x320), 0x1_00ec);
    assert_eq!(lab.load(Gpa(LOCAL_APIC + 0x320)), 0x1_00ec);
    lab.store(Gpa(LOCAL_APIC + 0x300), 1 << 18 | 0x41);
    assert_eq!(lab.take_interrupt(), Some(0x41));
    assert_eq!(lab.load(Gpa(LOCAL_APIC + 0x120)), 1 << 1, "in service");
    lab.store(Gpa(LOCAL_APIC + 0xb0), 0);
    assert_eq!(lab.load(Gpa(LOCAL_APIC + 0x120)), 0);
}

#[test]
fn in_x2apic_mode_the_register_page_is_a_hole() {
    let mut lab = Lab::new();
    assert_eq!(lab.load(Gpa(LOCAL_APIC + 0x20)), u32::MAX);
}

#[test]
fn the_register_page_is_where_the_guest_has_moved_it() {
    let mut lab = Lab::with_xapic();
    lab.wrmsr(0x1b, HOLE.0 | 1 << 11).unwrap();
    assert_eq!(lab.load(Gpa(HOLE.0 + 0xf0)), 0x1ff);
    assert_eq!(lab.load(Gpa(LOCAL_APIC + 0xf0)), u32::MAX);
}

#[test]
fn the_ioapic_is_programmed_through_its_two_registers() {
    let mut lab = Lab::new();
    lab.redirect(7, 0x1_0033);
    assert_eq!(lab.load(Gpa(0xfec0_0010)), 0x1_0033);
    lab.store(Gpa(0xfec0_0000), 1);
    assert_eq!(lab.load(Gpa(0xfec0_0010)), 0x0017_0020, "version and pins");
}

#[test]
fn a_narrow_read_of_an_apic_sees_its_part_and_a_narrow_write_does_nothing() {
    let mut lab = Lab::with_xapic();
    lab.vcpu.gprs[Gpr::Rax as usize] = 0;
    lab.executed(&[0x8a, 0x03], Lab::fault(Gpa(LOCAL_APIC + 0xf1), MemoryAccess::Read)); // mov al, [rbx]
    assert_eq!(lab.vcpu.gprs[Gpr::Rax as usize], 1);
    lab.vcpu.gprs[Gpr::Rax as usize] = 0;
    lab.executed(&[0x88, 0x03], Lab::fault(Gpa(LOCAL_APIC + 0xf1), MemoryAccess::Write)); // mov [rbx], al
    assert_eq!(lab.load(Gpa(LOCAL_APIC + 0xf0)), 0x1ff);
}

#[test]
fn enhanced_configuration_space_shows_the_same_bridge() {
    let mut lab = Lab::new();
    lab.write_port(0xcf8, AccessSize::Dword, 1 << 31);
    let bridge = lab.read_port(0xcfc, AccessSize::Dword);
    assert_eq!(lab.load(Gpa(0xe000_0000)), bridge);
    lab.store(Gpa(0xe000_0000), 0);
    assert_eq!(lab.load(Gpa(0xe000_0000)), bridge);
    assert_eq!(lab.load(Gpa(0xe000_8000)), u32::MAX, "an empty slot");
    assert_eq!(lab.load(Gpa(0xe010_0000)), u32::MAX, "past the window");
}

#[test]
fn a_hole_reads_as_all_ones_and_swallows_writes() {
    let mut lab = Lab::new();
    lab.store(HOLE, 7);
    assert_eq!(lab.load(HOLE), u32::MAX);
    lab.executed(&[0x48, 0x8b, 0x03], Lab::fault(HOLE, MemoryAccess::Read)); // mov rax, [rbx]
    assert_eq!(lab.vcpu.gprs[Gpr::Rax as usize], u64::MAX);
}

#[test]
fn executing_in_a_hole_is_undefined() {
    let mut lab = Lab::new();
    lab.vcpu.rip = HOLE.0;
    assert_eq!(lab.handle(Lab::fault(HOLE, MemoryAccess::Execute)), Outcome::Resume);
    assert_eq!((lab.vcpu.exception(), lab.vcpu.rip), (Some(Exception::InvalidOpcode), HOLE.0));
}

#[test]
fn page_tables_in_a_hole_stop_the_guest() {
    let mut lab = Lab::new();
    let fault = MemoryFault { gpa: HOLE, access: MemoryAccess::Read, during_walk: true };
    let outcome = lab.handle(Exit::MemoryFault(fault));
    assert_eq!(outcome, Outcome::Stop(Stop::Fault(Fault::PageTables(HOLE))));
}

#[test]
fn an_instruction_that_is_not_carried_out_stops_the_guest_and_is_named() {
    let mut lab = Lab::new();
    lab.at(&[0xdd, 0x03]); // fld qword [rbx]
    let Outcome::Stop(stop) = lab.handle(Lab::fault(HOLE, MemoryAccess::Write)) else { panic!("it goes on") };
    assert_eq!(std::format!("{stop}"), "it used an instruction on device registers that is not supported: [dd, 03]");
    assert_eq!(lab.vcpu.rip, RIP);
}

#[test]
fn an_instruction_that_has_vanished_is_undefined() {
    let mut lab = Lab::new();
    let fault = Lab::fault(HOLE, MemoryAccess::Read);
    assert_eq!(lab.raised(&[0x06], fault), Exception::InvalidOpcode);
}

#[test]
fn an_event_that_cannot_be_delivered_stops_the_guest_before_the_instruction_it_interrupted_is_touched() {
    let mut lab = Lab::new();
    lab.at(&[0x8b, 0x03]); // mov eax, [rbx]: innocent
    lab.vcpu.gprs[0] = 7;
    lab.vcpu.injected = Some(Event::Interrupt(0x31));
    lab.vcpu.was_delivering = true;
    let outcome = lab.handle(Lab::fault(HOLE, MemoryAccess::Read));
    assert_eq!(outcome, Outcome::Stop(Stop::Fault(Fault::Delivery(HOLE))));
    assert_eq!((lab.vcpu.rip, lab.vcpu.gprs[0]), (RIP, 7));
}

#[test]
fn an_event_that_only_waits_does_not_keep_the_instruction_from_its_registers() {
    let mut lab = Lab::new();
    lab.at(&[0x8b, 0x03]); // mov eax, [rbx]
    lab.vcpu.injected = Some(Event::Interrupt(0x31));
    assert_eq!(lab.handle(Lab::fault(HOLE, MemoryAccess::Read)), Outcome::Resume);
    assert_eq!((lab.vcpu.rip, lab.vcpu.gprs[0]), (RIP + 2, 0xffff_ffff));
}

#[test]
fn a_copy_from_one_register_to_another_reaches_both() {
    let mut lab = Lab::with_xapic();
    lab.vcpu.gprs[Gpr::Rsi as usize] = LOCAL_APIC + 0xf0;
    lab.vcpu.gprs[Gpr::Rdi as usize] = LOCAL_APIC + 0x380;
    lab.executed(&[0xa5], Lab::fault(Gpa(LOCAL_APIC + 0xf0), MemoryAccess::Read)); // movsd
    assert_eq!(lab.load(Gpa(LOCAL_APIC + 0x380)), 0x1ff, "the timer's initial count");
}
