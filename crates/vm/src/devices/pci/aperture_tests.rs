// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;
use crate::platform::loader::memory_map;

/// Nested page tables end here.
const END: u64 = 1 << layout::NESTED_ADDRESS_BITS;

fn window(first: u64, last: u64) -> Window {
    Window { space: Space::Memory, first, last }
}

#[test]
fn the_hole_and_what_is_above_memory_can_be_mapped() {
    let apertures = Apertures::beside(5 << 30);
    assert!(apertures.hold(window(0xc000_0000, 0xdfff_ffff)));
    assert!(!apertures.hold(window(0xbfff_f000, 0xc000_0fff)), "below the hole");
    assert!(!apertures.hold(window(0xdfff_f000, 0xe000_0fff)), "into configuration space");
    assert!(!apertures.hold(window(0xfee0_0000, 0xfee0_0fff)), "the local APIC");
    assert!(!apertures.hold(window(0x1_7fff_f000, 0x1_8000_0fff)), "memory");
    assert!(apertures.hold(window(0x1_8000_0000, 0x1_ffff_ffff)));
    assert!(apertures.hold(window(END - PAGE, END - 1)) && !apertures.hold(window(END, END + PAGE - 1)));
    assert!(!apertures.hold(window(u64::MAX - PAGE + 1, u64::MAX)));
}

#[test]
fn ports_and_parts_of_pages_cannot_be_mapped() {
    let apertures = Apertures::beside(1 << 30);
    assert!(!apertures.hold(window(0xc000_0000, 0xc000_07ff)));
    assert!(!apertures.hold(window(0xc000_0800, 0xc000_17ff)));
    assert!(!apertures.hold(Window { space: Space::Io, first: 0xc000_0000, last: 0xc000_0fff }));
    assert!(!Apertures::NONE.hold(window(0xc000_0000, 0xc000_0fff)));
}

proptest! {
    #[test]
    fn nothing_of_the_memory_map_is_in_them(
        memory_bytes in prop_oneof![1u64 << 20..1 << 40, any::<u64>().prop_map(|bytes| bytes >> 1)],
        first in prop_oneof![0xb000_0000u64..0x1_0000_0000, 0u64..1 << 41, any::<u64>()],
        pages in 1u64..1 << 20,
    ) {
        let first = first / PAGE * PAGE;
        let window = window(first, first.saturating_add(pages * PAGE - 1));
        for entry in memory_map(memory_bytes) {
            let end = entry.start.0.saturating_add(entry.bytes);
            let is_apart = window.last < entry.start.0 || end <= window.first;
            prop_assert!(is_apart || !Apertures::beside(memory_bytes).hold(window), "{entry:?} {window:?}");
        }
    }
}
