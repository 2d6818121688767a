// SPDX-License-Identifier: MIT OR Apache-2.0
use proptest::prelude::*;

use super::*;

#[test]
fn accesses_of_one_byte_go_before_all_others() {
    let mut map = PortMap::new();
    map.add((0xcf8, 8), Widths::Any, (1, 0));
    map.add((0xcf9, 1), Widths::Byte, (2, 5));
    assert_eq!(map.find(0xcf9, AccessSize::Byte), Some((2, 5, 0)));
    assert_eq!(map.find(0xcf9, AccessSize::Word), Some((1, 0, 1)));
    assert_eq!(map.find(0xcf8, AccessSize::Byte), Some((1, 0, 0)));
    assert!(!map.is_free(0xcff, 1, Widths::Any) && map.is_free(0xd00, 1, Widths::Any));
    assert!(!map.is_free(0xcf9, 1, Widths::Byte) && map.is_free(0xcf8, 1, Widths::Byte));
}

#[test]
fn ports_that_functions_are_moved_to_cannot_be_claimed() {
    let map = PortMap::new();
    assert!(map.is_free(FIXED_PORTS_END - 8, 8, Widths::Any));
    assert!(!map.is_free(FIXED_PORTS_END - 8, 9, Widths::Any));
    assert!(!map.is_free(0xffff, 1, Widths::Any) && !map.is_free(0x80, 0, Widths::Any));
    assert_eq!(map.find(0xffff, AccessSize::Byte), None);
}

proptest! {
    #[test]
    fn the_map_finds_what_a_search_of_all_claims_finds(
        claims in prop::collection::vec((0u16..0x80, 1u16..20, any::<bool>()), 0..12),
        port in 0u16..0xa0,
        is_byte in any::<bool>(),
    ) {
        let (mut map, mut taken) = (PortMap::new(), std::vec::Vec::new());
        for (device, (first, count, byte_only)) in claims.into_iter().enumerate() {
            let widths = if byte_only { Widths::Byte } else { Widths::Any };
            if map.is_free(first, count, widths) {
                map.add((first, count), widths, (device, 3));
                taken.push((first, count, widths, device));
            }
        }
        let size = if is_byte { AccessSize::Byte } else { AccessSize::Dword };
        let of = |wanted: Widths| taken.iter().find(|(first, count, widths, _)| {
            *widths == wanted && (*first..first + count).contains(&port)
        });
        let expected = of(Widths::Byte).filter(|_| is_byte).or_else(|| of(Widths::Any));
        prop_assert_eq!(map.find(port, size), expected.map(|(first, _, _, device)| (*device, 3, port - first)));
    }
}
