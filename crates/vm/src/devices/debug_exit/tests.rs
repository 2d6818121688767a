// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;

fn any_size() -> impl Strategy<Value = AccessSize> {
    prop_oneof![Just(AccessSize::Byte), Just(AccessSize::Word), Just(AccessSize::Dword), Just(AccessSize::Qword)]
}

#[test]
fn the_number_is_kept_raw_and_shown_as_qemu_shows_it() {
    let code = DebugExit::new().write(0, AccessSize::Dword, 0x10).unwrap();
    assert_eq!(code, DebugExitCode(0x10));
    assert_eq!(code.status(), 0x21);
}

#[test]
fn success_is_never_status_zero() {
    assert_eq!(DebugExitCode(0).status(), 1);
    assert_eq!(DebugExitCode(u32::MAX).status(), u32::MAX);
}

#[test]
fn a_narrow_write_counts_only_its_own_bytes() {
    assert_eq!(DebugExit::new().write(0, AccessSize::Byte, 0x1234), Some(DebugExitCode(0x34)));
    assert_eq!(DebugExit::new().write(0, AccessSize::Word, 0x12_3456), Some(DebugExitCode(0x3456)));
}

#[test]
fn a_write_beside_the_register_does_not_stop_the_guest() {
    assert_eq!(DebugExit::new().write(1, AccessSize::Byte, 1), None);
}

proptest! {
    #[test]
    fn a_restored_device_behaves_the_same(script in prop::collection::vec((0u8..4, any_size(), any::<u32>()), 0..8)) {
        let mut device = DebugExit::new();
        for (offset, size, value) in script {
            let mut restored = DebugExit::from_state(device.state()).unwrap();
            prop_assert_eq!(device.write(offset, size, value), restored.write(offset, size, value));
            prop_assert_eq!(device.state(), restored.state());
        }
    }
}
