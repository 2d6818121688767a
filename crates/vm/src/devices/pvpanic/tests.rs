// SPDX-License-Identifier: MIT OR Apache-2.0
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

#[test]
fn reading_names_both_events() {
    assert_eq!(Pvpanic::new().read(), 3);
}

#[test]
fn a_panic_is_reported_and_remembered() {
    let mut device = Pvpanic::new();
    assert_eq!(device.write(1), Some(PanicEvent::Panicked));
    assert_eq!(device.last_event(), Some(PanicEvent::Panicked));
}

#[test]
fn a_crash_kernel_is_distinguished_from_a_panic() {
    let mut device = Pvpanic::new();
    assert_eq!(device.write(2), Some(PanicEvent::CrashLoaded));
    assert_eq!(device.write(3), Some(PanicEvent::Panicked));
}

#[test]
fn unknown_events_are_ignored() {
    let mut device = Pvpanic::new();
    assert_eq!(device.write(0xfc), None);
    assert_eq!(device.last_event(), None);
}

proptest! {
    #[test]
    fn a_restored_device_behaves_the_same(before: Vec<u8>, after: Vec<u8>) {
        let mut device = Pvpanic::new();
        for value in before {
            device.write(value);
        }
        let mut restored = Pvpanic::from_state(device.state()).unwrap();
        for value in after {
            prop_assert_eq!(device.write(value), restored.write(value));
            prop_assert_eq!(device.state(), restored.state());
        }
    }
}
