// SPDX-License-Identifier: MIT OR Apache-2.0
//! INS and OUTS: one transfer for each exit, RIP at the instruction until the count is used up.
use super::*;

const BUFFER: u64 = 0x4000;

fn string(port: u16, is_in: bool, is_rep: bool) -> Exit {
    let next_rip = RIP + 2;
    Exit::Port(PortAccess { port, size: AccessSize::Byte, is_in, is_string: true, is_rep, next_rip })
}

fn lab(code: &[u8], count: u64) -> Lab {
    let mut lab = Lab::new();
    lab.at(code);
    lab.vcpu.gprs[Gpr::Rcx as usize] = count;
    lab.vcpu.gprs[Gpr::Rsi as usize] = BUFFER;
    lab.vcpu.gprs[Gpr::Rdi as usize] = BUFFER;
    lab
}

#[test]
fn rep_outsb_sends_a_string_to_the_console() {
    let mut lab = lab(&[0xf3, 0x6e], 5);
    lab.machine.memory().write(Gpa(BUFFER), b"hello").unwrap();
    let mut exits = 0;
    while lab.vcpu.rip == RIP {
        assert_eq!(lab.handle(string(0x3f8, false, true)), Outcome::Resume);
        exits += 1;
    }
    assert_eq!((lab.vcpu.rip, exits), (RIP + 2, 5));
    assert_eq!(lab.host.console, b"hello");
    assert_eq!(lab.vcpu.gprs[Gpr::Rsi as usize], BUFFER + 5);
}

#[test]
fn interrupts_come_between_two_transfers() {
    let mut lab = lab(&[0xf3, 0x6e], 2);
    lab.handle(string(0x3f8, false, true));
    lab.send(&interrupts::edge(0x40));
    assert_eq!(lab.take_interrupt(), Some(0x40));
    assert_eq!((lab.vcpu.rip, lab.vcpu.gprs[Gpr::Rcx as usize]), (RIP, 1));
}

#[test]
fn rep_insb_fetches_what_was_typed() {
    let mut lab = lab(&[0xf3, 0x6c], 2);
    lab.outb(0x3fa, 1);
    lab.at(&[0xf3, 0x6c]);
    lab.host.typed.extend(b"ab");
    lab.context().poll_devices();
    while lab.vcpu.rip == RIP {
        assert_eq!(lab.handle(string(0x3f8, true, true)), Outcome::Resume);
    }
    assert_eq!(lab.machine.memory().bytes(Gpa(BUFFER), 3), b"ab\0");
}

#[test]
fn a_string_can_end_the_guest_like_a_byte() {
    let mut lab = lab(&[0x6e], 0);
    lab.machine.memory().write(Gpa(BUFFER), &[0x0e]).unwrap();
    assert_eq!(lab.handle(string(0xcf9, false, false)), Outcome::Stop(Stop::Reset));
    assert_eq!(lab.vcpu.rip, RIP + 1);
}

#[test]
fn a_string_on_a_page_that_is_not_there_faults() {
    let mut lab = lab(&[0x6e], 0);
    // Paging with a table that maps the code and nothing else.
    let memory = lab.machine.memory();
    for (table, next) in [(0x8000u64, 0x9003u64), (0x9000, 0xa003), (0xa000, 0xb003)] {
        memory.write(Gpa(table), &next.to_le_bytes()).unwrap();
    }
    memory.write(Gpa(0xb008), &(RIP | 1).to_le_bytes()).unwrap();
    (lab.vcpu.cr0, lab.vcpu.cr3, lab.vcpu.cr4) = (cr0::PG | cr0::PE, 0x8000, 1 << 5);
    assert_eq!(lab.handle(string(0x3f8, false, false)), Outcome::Resume);
    assert_eq!(lab.vcpu.exception(), Some(Exception::PageFault { code: 0, address: BUFFER }));
    assert_eq!((lab.vcpu.rip, lab.host.console.len()), (RIP, 0));
}
