// SPDX-License-Identifier: MIT OR Apache-2.0
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

fn depth(tree: Tree, mut index: u32) -> u32 {
    let mut levels = 0;
    while index != 0 {
        index = tree.parent(index);
        levels += 1;
    }
    levels
}

#[test]
fn four_thousand_cpus_are_few_steps_from_the_root() {
    assert_eq!(depth(Tree { count: 128 }, 127), 3);
    assert_eq!(depth(Tree { count: 4096 }, 4095), 4);
}

proptest! {
    #[test]
    fn each_but_the_root_is_the_child_of_exactly_its_parent(count in 1u32..5000) {
        let tree = Tree { count };
        let mut children: Vec<u32> = (0..count).flat_map(|index| tree.children(index)).collect();
        children.sort_unstable();
        prop_assert_eq!(children, (1..count).collect::<Vec<_>>());
        prop_assert!((1..count).all(|index| tree.children(tree.parent(index)).contains(&index)));
    }

    #[test]
    fn absurd_numbers_have_no_children(index in u32::MAX / 2.., count: u32) {
        let tree = Tree { count: count / 4 };
        prop_assert!(tree.children(index).is_empty());
    }
}
