// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;

fn any_register() -> impl Strategy<Value = PowerRegister> {
    prop_oneof![Just(PowerRegister::SleepControl), Just(PowerRegister::SleepStatus), Just(PowerRegister::Reset)]
}

#[test]
fn sleep_type_five_with_enable_powers_off() {
    assert_eq!(Power::new().write(PowerRegister::SleepControl, 0x34), Some(PowerRequest::PowerOff));
}

#[test]
fn a_sleep_type_alone_does_nothing_and_reads_back() {
    let mut power = Power::new();
    assert_eq!(power.write(PowerRegister::SleepControl, 0x14), None);
    assert_eq!(power.read(PowerRegister::SleepControl), 0x14);
}

#[test]
fn other_sleep_types_are_not_entered() {
    for sleep_type in [0, 1, 2, 3, 4, 6, 7] {
        assert_eq!(Power::new().write(PowerRegister::SleepControl, SLEEP_ENABLE | sleep_type << 2), None);
    }
}

#[test]
fn the_enable_bit_reads_as_zero() {
    let mut power = Power::new();
    power.write(PowerRegister::SleepControl, 0xff);
    assert_eq!(power.read(PowerRegister::SleepControl), SLEEP_TYPE_MASK);
}

#[test]
fn the_advertised_reset_value_and_a_hard_reset_both_reset() {
    assert_eq!(Power::new().write(PowerRegister::Reset, port::RESET_VALUE), Some(PowerRequest::Reset));
    assert_eq!(Power::new().write(PowerRegister::Reset, 0x06), Some(PowerRequest::Reset));
}

#[test]
fn a_reset_is_prepared_before_it_happens() {
    let mut power = Power::new();
    assert_eq!(power.write(PowerRegister::Reset, 0x02), None);
    assert_eq!(power.read(PowerRegister::Reset), 0x02);
    assert_eq!(power.write(PowerRegister::Reset, 0x06), Some(PowerRequest::Reset));
}

#[test]
fn ports_name_their_registers() {
    assert_eq!(PowerRegister::at_port(0x600), Some(PowerRegister::SleepControl));
    assert_eq!(PowerRegister::at_port(0x601), Some(PowerRegister::SleepStatus));
    assert_eq!(PowerRegister::at_port(0xcf9), Some(PowerRegister::Reset));
    assert_eq!(PowerRegister::at_port(0xcf8), None);
}

proptest! {
    #[test]
    fn a_restored_device_behaves_the_same(script in prop::collection::vec((any_register(), any::<u8>()), 0..16)) {
        let mut power = Power::new();
        for (register, value) in script {
            let mut restored = Power::from_state(power.state()).unwrap();
            prop_assert_eq!(power.write(register, value), restored.write(register, value));
            prop_assert_eq!(power.read(register), restored.read(register));
        }
    }

    #[test]
    fn only_states_that_read_back_are_accepted(sleep_control: u8, reset_control: u8) {
        let state = PowerState { sleep_control, reset_control };
        match Power::from_state(state) {
            Ok(power) => prop_assert_eq!(
                (power.read(PowerRegister::SleepControl), power.read(PowerRegister::Reset)),
                (sleep_control & 0x1c, reset_control & 0x0a)
            ),
            Err(error) => prop_assert!(error.field.starts_with("power.")),
        }
    }
}
