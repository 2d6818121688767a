// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entropy device's rules (section 5.4).

use alloc::sync::Arc;

use super::*;
use crate::devices::outputs::Request;
use crate::devices::virtio::rng::{Entropy, Rng};

/// Counts the bytes that it has given.
#[derive(Debug, Default)]
struct Counting(Arc<spin::Mutex<usize>>);

impl Entropy for Counting {
    fn fill(&mut self, into: &mut [u8]) {
        *self.0.lock() += into.len();
        into.fill(0xa5);
    }
}

fn started() -> VirtioDriver<Rng<Counting>> {
    let mut lab = VirtioDriver::new(Rng::new(Counting::default()));
    lab.start(VERSION_1 | EVENT_IDX);
    lab
}

#[test]
fn s5_4_6_a_request_is_filled_and_its_length_is_stated() {
    let mut lab = started();
    for (wanted, given) in [(1, 1), (64, 64), (256, 256), (4000, 256)] {
        let head = lab.add(0, b"", wanted).expect("there is room");
        lab.notify(0);
        let (found, bytes) = lab.collect(0).expect("it is filled");
        assert_eq!((found, bytes.len()), (head, given));
        assert!(bytes.iter().all(|byte| *byte == 0xa5));
    }
}

#[test]
fn s5_4_6_1_a_readable_request_is_a_fault() {
    let mut lab = started();
    lab.add(0, b"read me", 64).expect("there is room");
    lab.notify(0);
    assert_eq!(lab.status() & 64, 64);
    let fault = lab.world.outputs.take_request();
    let kind = DeviceKind::VirtioRng as u32;
    assert!(matches!(fault, Some(Request::DriverFault(own, Fault::Request(_))) if own == kind), "{fault:?}");
}

#[test]
fn one_notification_costs_a_bounded_number_of_bytes_and_the_rest_is_polled() {
    let given = Arc::default();
    let mut lab = VirtioDriver::new(Rng::new(Counting(Arc::clone(&given))));
    lab.start(VERSION_1);
    for _ in 0..3 {
        (0..8).for_each(|_| assert!(lab.add(0, b"", 4000).is_some()));
        lab.notify(0);
        assert_eq!(core::mem::take(&mut *given.lock()), 8 * 256);
        assert_eq!(lab.world.outputs.take_request(), None, "all is done");
        (0..8).for_each(|_| assert!(lab.collect(0).is_some()));
    }
}

#[test]
fn the_device_goes_on_in_another_image() {
    let mut lab = started();
    lab.add(0, b"", 64).expect("there is room");
    lab.hand_over(Rng::new(Counting::default())).expect("it is good");
    lab.notify(0);
    assert_eq!(lab.collect(0).map(|(_, bytes)| bytes.len()), Some(64));
}
