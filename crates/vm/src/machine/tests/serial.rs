// SPDX-License-Identifier: MIT OR Apache-2.0
//! COM1: from its registers through the I/O APIC to the guest's next entry.
use super::*;

const DATA: u16 = 0x3f8;
const INTERRUPT_ENABLE: u16 = 0x3f9;
const INTERRUPT_ID: u16 = 0x3fa;
const FIFO_CONTROL: u16 = 0x3fa;
const MODEM_CONTROL: u16 = 0x3fc;
const LINE_STATUS: u16 = 0x3fd;
const OUT2: u8 = 1 << 3;
const RECEIVED: u8 = 1 << 0;
const TRANSMIT_EMPTY: u8 = 1 << 1;
const VECTOR: u8 = 0x34;

/// COM1's pin sends [`VECTOR`] by edge, and its interrupts reach the pin.
fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.redirect(4, VECTOR.into());
    lab.outb(MODEM_CONTROL, OUT2);
    lab.outb(FIFO_CONTROL, 1);
    lab
}

fn typed(lab: &mut Lab, bytes: &[u8]) {
    lab.host.typed.extend(bytes);
    lab.context().poll_devices();
}

#[test]
fn what_is_written_reaches_the_console() {
    let mut lab = lab();
    b"hello".iter().for_each(|&byte| lab.outb(DATA, byte));
    assert_eq!(lab.host.console, b"hello");
    assert_eq!(lab.inb(LINE_STATUS) & 0x60, 0x60, "ready for more");
}

#[test]
fn an_empty_transmitter_interrupts_at_the_next_entry() {
    let mut lab = lab();
    lab.outb(INTERRUPT_ENABLE, TRANSMIT_EMPTY);
    assert_eq!(lab.take_interrupt(), Some(VECTOR));
    assert_eq!(lab.inb(INTERRUPT_ID) & 0xf, 2);
    assert_eq!(lab.inb(INTERRUPT_ID) & 0xf, 1, "reading it takes it back");
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(lab.take_interrupt(), None);
    lab.outb(DATA, b'x');
    assert_eq!(lab.take_interrupt(), Some(VECTOR), "the next byte is out, too");
}

#[test]
fn with_interrupts_off_an_exit_is_asked_for_and_the_interrupt_waits() {
    let mut lab = lab();
    lab.outb(INTERRUPT_ENABLE, TRANSMIT_EMPTY);
    assert_eq!(lab.enter(), None);
    assert!(lab.vcpu.window_requested);
    assert_eq!(lab.handle(Exit::InterruptWindow), Outcome::Resume);
    assert_eq!(lab.take_interrupt(), Some(VECTOR));
    assert!(!lab.vcpu.window_requested);
}

#[test]
fn what_is_typed_interrupts_and_is_read() {
    let mut lab = lab();
    lab.outb(INTERRUPT_ENABLE, RECEIVED);
    assert_eq!(lab.take_interrupt(), None);
    typed(&mut lab, b"ok");
    assert_eq!(lab.take_interrupt(), Some(VECTOR));
    assert_eq!([lab.inb(DATA), lab.inb(DATA)], *b"ok");
    assert_eq!(lab.inb(LINE_STATUS) & 1, 0);
}

#[test]
fn no_more_is_taken_of_the_operator_than_there_is_room_for() {
    let mut lab = lab();
    typed(&mut lab, &[b'a'; 40]);
    assert_eq!(lab.host.typed.len(), 24);
    lab.inb(DATA);
    assert_eq!(lab.host.typed.len(), 23, "the rest follows as the guest reads");
}

#[test]
fn without_fifos_every_byte_typed_interrupts_by_edge() {
    let mut lab = lab();
    lab.outb(FIFO_CONTROL, 0);
    lab.outb(INTERRUPT_ENABLE, RECEIVED);
    typed(&mut lab, b"abc");
    for byte in *b"abc" {
        assert_eq!(lab.take_interrupt(), Some(VECTOR));
        assert_eq!(lab.inb(DATA), byte);
        lab.wrmsr(EOI, 0).unwrap();
    }
    assert_eq!(lab.take_interrupt(), None);
}

#[test]
fn a_level_triggered_line_interrupts_again_after_its_end_while_asserted() {
    let mut lab = lab();
    lab.redirect(4, u32::from(VECTOR) | 1 << 15);
    lab.outb(INTERRUPT_ENABLE, RECEIVED);
    typed(&mut lab, b"x");
    assert_eq!(lab.take_interrupt(), Some(VECTOR));
    assert_eq!(lab.take_interrupt(), None, "it is in service");
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(lab.take_interrupt(), Some(VECTOR), "the guest has not fetched the byte");
    lab.inb(DATA);
    lab.wrmsr(EOI, 0).unwrap();
    assert_eq!(lab.take_interrupt(), None);
}

#[test]
fn a_level_triggered_line_ends_by_register_in_xapic_mode_too() {
    let mut lab = Lab::with_xapic();
    lab.redirect(4, u32::from(VECTOR) | 1 << 15);
    lab.outb(MODEM_CONTROL, OUT2);
    lab.outb(INTERRUPT_ENABLE, RECEIVED);
    typed(&mut lab, b"x");
    assert_eq!(lab.take_interrupt(), Some(VECTOR));
    lab.store(Gpa(0xfee0_00b0), 0);
    assert_eq!(lab.take_interrupt(), Some(VECTOR));
}
