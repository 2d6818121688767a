// SPDX-License-Identifier: MIT OR Apache-2.0

use std::string::ToString as _;

use proptest::prelude::*;

use super::*;

fn decode(first: u64) -> Event {
    Event::decode(0, [first, 0x5000])
}

#[test]
fn events_have_the_bits_of_the_manual() {
    let source = Bdf::of_requester(0, 0x1a3);
    let fault = |access, reason| Event::Fault(Fault { source, address: 0x5000, access, reason });
    let cases = [
        (0x1020_0000_0000_01a3, fault(Access::Write, FaultReason::BadTable(1))),
        (0x2000_0007_0000_01a3, fault(Access::Read, FaultReason::NotMapped)),
        (0x2070_0007_0000_01a3, fault(Access::Write, FaultReason::NotAllowed)),
        (0x2090_0007_0000_01a3, fault(Access::Read, FaultReason::BadTable(2))),
        (0x2008_0000_0000_01a3, fault(Access::Interrupt, FaultReason::NotOpened)),
        (0x2100_0000_0000_01a3, fault(Access::Read, FaultReason::Other(2))),
        (0x3000_0000_0000_01a3, fault(Access::Read, FaultReason::BadTable(3))),
        (0x4020_0000_0000_01a3, fault(Access::Write, FaultReason::BadTable(4))),
        (0x5000_0000_0000_0000, Event::BadCommand { at: PhysAddr(0x5000), is_hardware: false }),
        (0x6000_0000_0000_0000, Event::BadCommand { at: PhysAddr(0x5000), is_hardware: true }),
        (0x7000_0000_0000_01a3, Event::DeviceCacheTimeout { source }),
        (0x8000_0000_0000_01a3, fault(Access::Read, FaultReason::Other(8))),
        (0x9000_0000_0000_01a3, Event::Unknown(9)),
    ];
    for (first, event) in cases {
        assert_eq!(decode(first), event, "{first:#x}");
    }
}

proptest! {
    #[test]
    fn every_event_has_a_text(first in 0u64..) {
        prop_assert!(!decode(first).to_string().is_empty());
    }
}
