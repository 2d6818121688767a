// SPDX-License-Identifier: MIT OR Apache-2.0
//! States that are handed over.

use super::*;

/// Where the transport begins: behind the registers and four MSI-X entries with their pending bits.
const TRANSPORT: usize = 264 + 3 * 16 + 8;

#[test]
fn a_driver_goes_on_with_another_image_and_does_not_notice() {
    let mut lab = lab();
    lab.start(VERSION_1 | EVENT_IDX);
    for round in 0..300_u32 {
        let bytes = round.to_le_bytes();
        let head = lab.add(0, &bytes, 8).expect("there is room");
        let waits = round % 3 == 0;
        // The chain is available, but the device has not been notified: the next image takes it.
        if waits {
            lab.hand_over(Echo::default()).expect("it is good");
        }
        lab.notify(0);
        if !waits {
            lab.hand_over(Echo::default()).expect("it is good");
        }
        assert_eq!(lab.collect(0), Some((head, bytes.to_vec())));
    }
}

#[test]
fn a_masked_interrupt_is_handed_over_pending() {
    let mut lab = started();
    lab.write(Lab::TABLE + 12, AccessSize::Dword, 1);
    lab.add(0, b"a", 1).expect("there is room");
    lab.notify(0);
    assert_eq!(lab.interrupts(), []);
    lab.hand_over(Echo::default()).expect("it is good");
    lab.write(Lab::TABLE + 12, AccessSize::Dword, 0);
    assert_eq!(lab.interrupts(), [0]);
}

#[test]
fn states_in_which_no_device_can_be_are_refused() {
    let state = started().saved();
    let refused = |at: usize, bytes: &[u8]| {
        let mut state = state.clone();
        state[TRANSPORT + at..][..bytes.len()].copy_from_slice(bytes);
        lab().hand_over_from(Echo::default(), &state).map_err(|error| error.field)
    };
    assert_eq!(refused(0, &[0]), Ok(()));
    assert_eq!(refused(0, &[1]), Err("virtio.features"), "not offered");
    assert_eq!(refused(4, &[0]), Err("virtio.features"), "VERSION_1");
    assert_eq!(refused(16, &[3, 0]), Err("virtio.config_vector"));
    assert_eq!(refused(20, &[3]), Err("virtio.queues"), "queues");
    assert_eq!(refused(22, &[16]), Err("virtio.status"));
    assert_eq!(refused(22, &[4]), Err("virtio.status"), "DRIVER_OK without features");
    assert_eq!(refused(22, &[3]), Err("virtio.queues"), "enabled without features");
    assert_eq!(refused(23, &[4]), Err("virtio.interrupt_status"));
    assert_eq!(refused(25, &[2]), Err("virtio.interrupt_status"), "flags");
    assert_eq!(refused(32 + 24, &[32, 0]), Err("virtio.queues.size"));
    assert_eq!(refused(32 + 24, &[3, 0]), Err("virtio.queues"));
    assert_eq!(refused(32 + 26, &[9, 0]), Err("virtio.queues.vector"));
    assert_eq!(refused(32 + 28, &[9, 0]), Err("virtio.queues"), "taken");
    assert_eq!(refused(32 + 32, &[2, 0]), Err("virtio.queues.size"), "enabled twice");
    let cut = |bytes| lab().hand_over_from(Echo::default(), &state[..bytes]).map_err(|error| error.field);
    assert_eq!(cut(TRANSPORT + 16), Err("virtio"));
    assert_eq!(cut(TRANSPORT + 32 + 8), Err("virtio"));
    assert_eq!(cut(state.len() - 1), Err("echo"));
}
