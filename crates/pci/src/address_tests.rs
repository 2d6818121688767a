// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::ToString;

use proptest::prelude::*;

use super::*;

const RANGE: EcamRange = EcamRange { base: 0xe000_0000, segment: 0, first_bus: 0, last_bus: 0x3f };

fn place(text: &str) -> Bdf {
    text.parse().unwrap()
}

#[test]
fn a_place_is_read_with_or_without_its_segment() {
    assert_eq!(place("00:1f.3"), Bdf::new(0, 0, 0x1f, 3).unwrap());
    assert_eq!(place("0001:a0:02.0"), Bdf::new(1, 0xa0, 2, 0).unwrap());
}

#[test]
fn what_is_no_place_is_refused() {
    for text in
        ["", "1f.3", "00:1f", "00:20.0", "00:1f.8", "100:1f.0", "00:+1.0", "12345:00:00.0", "0:0:0:0.0", "00:1f.3 "]
    {
        assert_eq!(text.parse::<Bdf>(), Err(NoPlace), "{text:?}");
    }
}

#[test]
fn memory_is_preferred_and_ports_reach_the_first_256_bytes_of_segment_0() {
    assert_eq!(route(&[RANGE], place("01:02.3"), 0x105), Some(Route::Memory { range: 0, offset: 0x11_3104 }));
    let second = EcamRange { base: 1 << 32, first_bus: 0x40, last_bus: 0x7f, ..RANGE };
    assert_eq!(route(&[RANGE, second], place("41:00.0"), 8), Some(Route::Memory { range: 1, offset: 0x10_0008 }));
    assert_eq!(route(&[], place("01:02.3"), 0x13), Some(Route::Ports(0x8001_1310)));
    assert_eq!(route(&[RANGE], place("40:00.0"), 0), Some(Route::Ports(0x8040_0000)));
    assert_eq!(route(&[], place("00:00.0"), 0x100), None);
    assert_eq!(route(&[RANGE], place("0001:00:00.0"), 0), None);
    assert_eq!(route(&[RANGE], place("00:00.0"), 0x1000), None);
}

#[test]
fn a_range_that_would_wrap_around_or_has_no_bus_has_no_addresses() {
    let last_buses = EcamRange { first_bus: 0x20, ..RANGE };
    assert_eq!(last_buses.addresses(), Some((0xe200_0000, 0xe400_0000)));
    assert_eq!(EcamRange { base: u64::MAX << 20, ..RANGE }.addresses(), None);
    assert_eq!(EcamRange { first_bus: 2, last_bus: 1, ..RANGE }.addresses(), None);
}

#[test]
fn a_range_overlaps_what_has_an_address_in_common() {
    for (start, end, overlaps) in [
        (0, 0xe000_0000, false),
        (0, 0xe000_0001, true),
        (0xe100_0000, 0xe100_0001, true),
        (0xe3ff_ffff, u64::MAX, true),
        (0xe400_0000, u64::MAX, false),
    ] {
        assert_eq!(RANGE.overlaps(start, end), overlaps, "{start:#x}");
    }
}

proptest! {
    #[test]
    fn a_place_is_read_as_it_is_printed(segment: u16, bus: u8, device in 0..32u8, function in 0..8u8) {
        let place = Bdf::new(segment, bus, device, function).unwrap();
        prop_assert_eq!(place.to_string().parse(), Ok(place));
    }

    #[test]
    fn no_two_registers_share_an_address(a: (u8, u8, u8, u16), b: (u8, u8, u8, u16)) {
        let of = |(bus, device, function, register): (u8, u8, u8, u16)| {
            (Bdf::new(0, bus & 0x3f, device % 32, function % 8).unwrap(), (register % 256) & !3)
        };
        let (a, b) = (of(a), of(b));
        prop_assert_eq!(a == b, route(&[RANGE], a.0, a.1) == route(&[RANGE], b.0, b.1));
        prop_assert_eq!(a == b, route(&[], a.0, a.1) == route(&[], b.0, b.1));
    }

    #[test]
    fn a_requester_is_the_function_that_it_names(segment: u16, requester: u16) {
        let place = Bdf::of_requester(segment, requester);
        prop_assert_eq!(place.requester(), requester);
        prop_assert_eq!(Bdf::new(segment, place.bus, place.device(), place.function()), Some(place));
    }
}
