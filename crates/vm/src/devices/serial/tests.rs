// SPDX-License-Identifier: MIT OR Apache-2.0
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::devices::StateError;

const OUT2: u8 = 1 << 3;
const LOOPBACK: u8 = 1 << 4;

/// A UART with its interrupt line connected and its FIFOs enabled, with a trigger level of four bytes.
fn connected() -> Serial {
    let mut serial = Serial::new();
    write(&mut serial, offset::MODEM_CONTROL, OUT2);
    write(&mut serial, offset::FIFO_CONTROL, 0x41);
    serial
}

fn write(serial: &mut Serial, offset: u8, value: u8) -> Vec<u8> {
    let mut sent = Vec::new();
    serial.write(offset, value, &mut |byte| sent.push(byte));
    sent
}

#[test]
fn a_byte_written_is_sent_at_once() {
    let mut serial = Serial::new();
    assert_eq!(write(&mut serial, offset::DATA, b'B'), [b'B']);
    assert_eq!(serial.read(offset::LINE_STATUS), 0x60);
}

#[test]
fn bytes_received_are_read_in_order() {
    let mut serial = connected();
    for byte in *b"abc" {
        serial.receive(byte).unwrap();
    }
    assert_eq!(serial.read(offset::LINE_STATUS), 0x61);
    assert_eq!([serial.read(0), serial.read(0), serial.read(0)], *b"abc");
    assert_eq!(serial.read(offset::LINE_STATUS), 0x60);
}

#[test]
fn enabling_the_transmit_interrupt_while_empty_raises_it() {
    let mut serial = connected();
    assert!(!serial.interrupt_line());
    write(&mut serial, offset::INTERRUPT_ENABLE, 2);
    assert!(serial.interrupt_line());
    assert_eq!(serial.read(offset::INTERRUPT_ID), 0xc2);
    assert!(!serial.interrupt_line());
    assert_eq!(serial.read(offset::INTERRUPT_ID), 0xc1);
}

#[test]
fn a_transmit_interrupt_follows_every_byte_sent() {
    let mut serial = connected();
    write(&mut serial, offset::INTERRUPT_ENABLE, 2);
    serial.read(offset::INTERRUPT_ID);
    write(&mut serial, offset::DATA, b'x');
    assert!(serial.interrupt_line());
    assert_eq!(serial.read(offset::INTERRUPT_ID), 0xc2);
}

#[test]
fn disabling_and_enabling_raises_the_transmit_interrupt_again() {
    let mut serial = connected();
    for _ in 0..2 {
        write(&mut serial, offset::INTERRUPT_ENABLE, 2);
        assert_eq!(serial.read(offset::INTERRUPT_ID), 0xc2);
        write(&mut serial, offset::INTERRUPT_ENABLE, 0);
    }
    assert!(!serial.interrupt_line());
}

#[test]
fn keeping_the_transmit_interrupt_enabled_does_not_raise_it_again() {
    let mut serial = connected();
    write(&mut serial, offset::INTERRUPT_ENABLE, 2);
    serial.read(offset::INTERRUPT_ID);
    write(&mut serial, offset::INTERRUPT_ENABLE, 3);
    assert!(!serial.interrupt_line());
}

#[test]
fn data_below_the_trigger_is_a_time_out_and_at_the_trigger_data() {
    let mut serial = connected();
    write(&mut serial, offset::INTERRUPT_ENABLE, 1);
    for (count, id) in [(1, 0xcc), (2, 0xcc), (3, 0xcc), (4, 0xc4), (5, 0xc4)] {
        serial.receive(count).unwrap();
        assert!(serial.interrupt_line());
        assert_eq!(serial.read(offset::INTERRUPT_ID), id, "{count} bytes");
    }
}

#[test]
fn every_trigger_level_is_known() {
    for (control, bytes) in [(0x01, 1), (0x41, 4), (0x81, 8), (0xc1, 14)] {
        assert_eq!(FifoControl::from_bits_retain(control).trigger_bytes(), bytes);
    }
}

#[test]
fn reading_the_data_takes_the_receive_interrupt_back() {
    let mut serial = connected();
    write(&mut serial, offset::INTERRUPT_ENABLE, 1);
    serial.receive(1).unwrap();
    serial.read(offset::INTERRUPT_ID);
    assert!(serial.interrupt_line());
    serial.read(offset::DATA);
    assert!(!serial.interrupt_line());
}

#[test]
fn received_data_goes_before_an_empty_transmitter() {
    let mut serial = connected();
    write(&mut serial, offset::INTERRUPT_ENABLE, 3);
    serial.receive(1).unwrap();
    assert_eq!(serial.read(offset::INTERRUPT_ID), 0xcc);
    serial.read(offset::DATA);
    assert_eq!(serial.read(offset::INTERRUPT_ID), 0xc2);
}

#[test]
fn the_seventeenth_byte_is_an_overrun_and_lost() {
    let mut serial = connected();
    write(&mut serial, offset::INTERRUPT_ENABLE, 4);
    assert!((0..16).all(|byte| serial.receive(byte) == Ok(())));
    assert_eq!(serial.room(), 0);
    assert_eq!(serial.receive(16), Err(Full));
    assert_eq!(serial.read(offset::INTERRUPT_ID), 0xc6);
    assert_eq!(serial.read(offset::LINE_STATUS), 0x63);
    assert_eq!(serial.read(offset::LINE_STATUS), 0x61);
    assert!((0..16).all(|byte| serial.read(offset::DATA) == byte));
    assert_eq!(serial.read(offset::DATA), 0);
}

#[test]
fn without_fifos_the_newer_byte_stays() {
    let mut serial = Serial::new();
    serial.receive(1).unwrap();
    assert_eq!(serial.receive(2), Err(Full));
    assert_eq!(serial.read(offset::LINE_STATUS), 0x63);
    assert_eq!(serial.read(offset::DATA), 2);
    assert_eq!(serial.read(offset::INTERRUPT_ID), 0x01);
}

#[test]
fn switching_or_clearing_the_fifos_empties_them() {
    for value in [0x00, 0x43] {
        let mut serial = connected();
        serial.receive(1).unwrap();
        write(&mut serial, offset::FIFO_CONTROL, value);
        assert_eq!(serial.read(offset::LINE_STATUS), 0x60, "{value:#x}");
    }
    let mut serial = connected();
    serial.receive(1).unwrap();
    write(&mut serial, offset::FIFO_CONTROL, 0xc1);
    assert_eq!(serial.read(offset::LINE_STATUS), 0x61);
}

#[test]
fn without_the_enable_no_other_fifo_bit_counts() {
    let mut serial = Serial::new();
    serial.receive(1).unwrap();
    write(&mut serial, offset::FIFO_CONTROL, 0xc6);
    assert_eq!(serial.read(offset::LINE_STATUS), 0x61);
    assert_eq!(serial.state().fifo_control, 0);
}

#[test]
fn out2_gates_the_interrupt_line() {
    let mut serial = connected();
    write(&mut serial, offset::INTERRUPT_ENABLE, 2);
    write(&mut serial, offset::MODEM_CONTROL, 0);
    assert!(!serial.interrupt_line());
    write(&mut serial, offset::MODEM_CONTROL, OUT2);
    assert!(serial.interrupt_line());
}

#[test]
fn in_loopback_bytes_come_back_and_nothing_is_sent() {
    let mut serial = connected();
    write(&mut serial, offset::MODEM_CONTROL, LOOPBACK);
    assert_eq!(write(&mut serial, offset::DATA, 0x5a), []);
    assert_eq!(serial.read(offset::DATA), 0x5a);
}

#[test]
fn in_loopback_the_outputs_are_the_inputs() {
    for (outputs, inputs) in [(0x0, 0x00), (0x1, 0x20), (0x2, 0x10), (0x4, 0x40), (0x8, 0x80), (0xf, 0xf0)] {
        let mut serial = Serial::new();
        write(&mut serial, offset::MODEM_CONTROL, LOOPBACK | outputs);
        assert_eq!(serial.read(offset::MODEM_STATUS) & 0xf0, inputs);
    }
}

#[test]
fn a_changed_modem_line_interrupts_until_it_is_read() {
    let mut serial = connected();
    write(&mut serial, offset::INTERRUPT_ENABLE, 8);
    assert_eq!(serial.read(offset::MODEM_STATUS), 0xb0);
    write(&mut serial, offset::MODEM_CONTROL, LOOPBACK);
    write(&mut serial, offset::MODEM_CONTROL, OUT2);
    assert_eq!(serial.read(offset::INTERRUPT_ID), 0xc0);
    assert_eq!(serial.read(offset::MODEM_STATUS), 0xbb);
    assert_eq!(serial.read(offset::MODEM_STATUS), 0xb0);
    assert_eq!(serial.read(offset::INTERRUPT_ID), 0xc1);
}

#[test]
fn only_the_end_of_ringing_is_a_change() {
    let mut serial = Serial::new();
    write(&mut serial, offset::MODEM_CONTROL, LOOPBACK | 0x0b);
    serial.read(offset::MODEM_STATUS);
    write(&mut serial, offset::MODEM_CONTROL, LOOPBACK | 0x0f);
    assert_eq!(serial.read(offset::MODEM_STATUS), 0xf0);
    write(&mut serial, offset::MODEM_CONTROL, LOOPBACK | 0x0b);
    assert_eq!(serial.read(offset::MODEM_STATUS), 0xb4);
}

#[test]
fn the_divisor_hides_data_and_interrupt_enable() {
    let mut serial = Serial::new();
    write(&mut serial, offset::LINE_CONTROL, 0x83);
    assert_eq!(write(&mut serial, offset::DATA, 0x34), []);
    write(&mut serial, offset::INTERRUPT_ENABLE, 0x12);
    assert_eq!((serial.read(0), serial.read(1)), (0x34, 0x12));
    write(&mut serial, offset::LINE_CONTROL, 0x03);
    assert_eq!((serial.read(0), serial.read(1)), (0, 0));
    assert_eq!(serial.state().divisor, 0x1234);
}

#[test]
fn scratch_keeps_a_byte_and_unused_bits_read_as_zero() {
    let mut serial = Serial::new();
    write(&mut serial, offset::SCRATCH, 0xa5);
    write(&mut serial, offset::INTERRUPT_ENABLE, 0xff);
    write(&mut serial, offset::MODEM_CONTROL, 0xff);
    assert_eq!((serial.read(7), serial.read(1), serial.read(4)), (0xa5, 0x0f, 0x1f));
    assert_eq!(serial.read(8), 0xff);
}

#[test]
fn a_state_no_uart_can_be_in_is_refused() {
    let refused = |change: fn(&mut SerialState)| {
        let mut state = Serial::new().state();
        change(&mut state);
        Serial::from_state(state).map(drop).map_err(|StateError { field, .. }| field)
    };
    assert_eq!(refused(|state| state.interrupt_enable = 0x10), Err("serial.interrupt_enable"));
    assert_eq!(refused(|state| state.modem_control = 0x20), Err("serial.modem_control"));
    assert_eq!(refused(|state| state.modem_changes = 0x10), Err("serial.modem_changes"));
    assert_eq!(refused(|state| state.fifo_control = 0x40), Err("serial.fifo_control"));
    assert_eq!(refused(|state| state.received.extend([1, 2])), Err("serial.received"));
    assert_eq!(refused(|_| ()), Ok(()));
}

#[derive(Clone, Debug)]
enum Step {
    Read(u8),
    Write(u8, u8),
    Receive(u8),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u8..9).prop_map(Step::Read),
        (0u8..9, any::<u8>()).prop_map(|(offset, value)| Step::Write(offset, value)),
        any::<u8>().prop_map(Step::Receive),
    ]
}

/// Returns what a step shows: a value read or bytes sent, whether a byte was lost, the interrupt line, and the room.
fn take(serial: &mut Serial, step: &Step) -> (Vec<u8>, bool, bool, usize) {
    let (shown, lost) = match *step {
        Step::Read(offset) => (Vec::from([serial.read(offset)]), false),
        Step::Write(offset, value) => (write(serial, offset, value), false),
        Step::Receive(byte) => (Vec::new(), serial.receive(byte).is_err()),
    };
    (shown, lost, serial.interrupt_line(), serial.room())
}

prop_compose! {
    fn any_state()(
        received in prop::collection::vec(any::<u8>(), 0..=FIFO_BYTES),
        registers: [u8; 6],
        divisor: u16,
        flags: [bool; 2],
    ) -> SerialState {
        let [interrupt_enable, fifo_control, line_control, modem_control, modem_changes, scratch] = registers;
        let [overrun, transmit_empty_pending] = flags;
        SerialState {
            received: received.into_iter().collect(), divisor, interrupt_enable, fifo_control, line_control,
            modem_control, modem_changes, scratch, overrun, transmit_empty_pending,
        }
    }
}

proptest! {
    #[test]
    fn a_restored_uart_behaves_the_same(
        before in prop::collection::vec(any_step(), 0..64),
        after in prop::collection::vec(any_step(), 0..64),
    ) {
        let mut serial = Serial::new();
        for step in &before {
            take(&mut serial, step);
        }
        let mut restored = Serial::from_state(serial.state()).unwrap();
        for step in &after {
            prop_assert_eq!(take(&mut serial, step), take(&mut restored, step));
        }
        prop_assert_eq!(serial, restored);
    }

    #[test]
    fn a_hostile_state_is_refused_or_harmless(
        state in any_state(),
        steps in prop::collection::vec(any_step(), 0..32),
    ) {
        if let Ok(mut serial) = Serial::from_state(state) {
            for step in &steps {
                take(&mut serial, step);
                prop_assert!(Serial::from_state(serial.state()).is_ok());
            }
        }
    }
}
