// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modules that lie where there is no usable memory, by the memory map.

use std::vec::Vec;

use arrayvec::ArrayString;
use proptest::prelude::*;

use super::*;
use crate::memory_map::MapBuilder;

const PAGE: u64 = 4096;

fn info(usable: &[(u64, u64)], modules: &[(u64, u64)]) -> BootInfo {
    let mut builder = MapBuilder::default();
    usable.iter().for_each(|(start, end)| builder.add(PhysAddr(*start), end - start, RegionKind::Usable).unwrap());
    let mut info = BootInfo::handed_over(builder.finish().unwrap(), None);
    let module = |(start, end): &(u64, u64)| Module { range: range(*start, *end), command_line: ArrayString::new() };
    info.modules.extend(modules.iter().map(module));
    info
}

fn beside(usable: &[(u64, u64)], modules: &[(u64, u64)]) -> Vec<PhysRange> {
    info(usable, modules).modules_beside_memory().collect()
}

#[test]
fn a_module_with_an_end_that_firmware_has_reserved_is_in_part_beside_memory() {
    let memory = [(0x10_0000, 0x3ffd_3000)];
    assert_eq!(beside(&memory, &[(0x3feb_1000, 0x3ffd_7d53)]), [range(0x3ffd_3000, 0x3ffd_8000)]);
    assert_eq!(beside(&memory, &[(0x20_0000, 0x30_0001)]), []);
    assert_eq!(beside(&memory, &[(0x8000_0010, 0x8000_0011)]), [range(0x8000_0000, 0x8000_1000)]);
}

#[test]
fn modules_that_share_a_page_have_it_once() {
    let modules = [(0x5800, 0x6001), (0x2000, 0x5001), (0x5100, 0x5200)];
    assert_eq!(
        beside(&[(0x3000, 0x4000)], &modules),
        [range(0x2000, 0x3000), range(0x4000, 0x6000), range(0x6000, 0x7000)]
    );
}

proptest! {
    #[test]
    fn each_page_of_a_module_is_memory_or_beside_it_once(
        usable in prop::collection::vec((0..40u64, 1..6u64), 0..6),
        modules in prop::collection::vec((0..40 * PAGE, 1..4 * PAGE), 0..6),
    ) {
        let usable: Vec<_> = usable.iter().map(|(page, pages)| (page * PAGE, (page + pages) * PAGE)).collect();
        let modules: Vec<_> = modules.iter().map(|(start, bytes)| (*start, start + bytes)).collect();
        let found = beside(&usable, &modules);
        for page in 0..60 {
            let at = PhysAddr(page * PAGE);
            let is_of_module = modules.iter().any(|(start, end)| *start < at.0 + PAGE && at.0 < *end);
            let is_memory = usable.iter().any(|(start, end)| (*start..*end).contains(&at.0));
            let times = found.iter().filter(|range| range.contains(at)).count();
            prop_assert_eq!(times, usize::from(is_of_module && !is_memory), "page {}", page);
        }
        prop_assert!(found.is_sorted_by_key(|range| range.start()));
    }
}
