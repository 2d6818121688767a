// SPDX-License-Identifier: MIT OR Apache-2.0

use proptest::prelude::*;

use super::*;

/// Returns the addresses that the second word of `INVALIDATE_IOMMU_PAGES` names: the first, and how many pages, as a
/// logarithm.
fn named(operand: u64) -> (u64, u32) {
    let order = if operand & 1 == 0 { 0 } else { (operand >> 12).trailing_ones() + 1 };
    ((operand >> 12).checked_shr(order).unwrap_or(0).checked_shl(order).unwrap_or(0) << 12, order)
}

#[test]
fn commands_have_the_bits_of_the_manual() {
    let wait = Command::CompletionWait { store: PhysAddr(0x1_2345_6008), value: 9 };
    assert_eq!(wait.encode(), [0x1000_0001_2345_6009, 9]);
    assert_eq!(Command::InvalidateDeviceTableEntry { requester: 0x1a3 }.encode(), [0x2000_0000_0000_01a3, 0]);
    assert_eq!(Command::invalidate_domain(DomainId(5)).encode(), [0x3000_0005_0000_0000, 0x7fff_ffff_ffff_f003]);
    let page = Command::invalidate_range(DomainId(5), 0x7000, 4096);
    assert_eq!(page.encode(), [0x3000_0005_0000_0000, 0x7002]);
    let two = Command::invalidate_range(DomainId(5), 0x6000, 8192);
    assert_eq!(two.encode()[1], 0x6003);
    let four = Command::invalidate_range(DomainId(5), 0x5000, 8192);
    assert_eq!(four.encode()[1], 0x5003);
    assert_eq!(Command::InvalidateInterruptTable { requester: 0x1a3 }.encode(), [0x5000_0000_0000_01a3, 0]);
    assert_eq!(Command::InvalidateAll.encode(), [0x8000_0000_0000_0000, 0]);
}

proptest! {
    #[test]
    fn the_block_around_a_range_is_the_smallest(address in 0u64.., bytes in prop_oneof![1..0x10_0000u64, 0u64..]) {
        let last = address.saturating_add(bytes.max(1) - 1);
        let (start, order) = named(pages_operand(address, bytes));
        prop_assert!(start <= address);
        if order < 51 {
            let end = start as u128 + (4096u128 << order);
            prop_assert!(u128::from(last) < end);
            let half = 2048u64 << order;
            prop_assert!(order == 0 || (address < start + half && last >= start + half));
        } else {
            prop_assert_eq!((start, order), (0, 52));
        }
    }
}
