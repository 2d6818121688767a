// SPDX-License-Identifier: MIT OR Apache-2.0
//! Canonical Huffman codes with a longest length.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Returns the length of each symbol's code, 0 for those that do not occur. No code is longer than `longest`.
pub(super) fn lengths(counts: &[u32], longest: u8) -> Vec<u8> {
    let mut counts = counts.to_vec();
    loop {
        let lengths = unbounded(&counts);
        if lengths.iter().all(|&length| length <= longest) {
            return lengths;
        }
        // Rarer symbols are taken for more frequent, until the tree is flat enough.
        for count in counts.iter_mut().filter(|count| **count > 0) {
            *count = *count / 2 + 1;
        }
    }
}

fn unbounded(counts: &[u32]) -> Vec<u8> {
    let mut nodes: Vec<Option<usize>> = vec![None; counts.len()];
    let occurring = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let mut heap: BinaryHeap<_> = occurring.map(|(symbol, &count)| Reverse((u64::from(count), symbol))).collect();
    if let (1, Some(Reverse((_, only)))) = (heap.len(), heap.peek()) {
        let mut lengths = vec![0; counts.len()];
        lengths[*only] = 1;
        return lengths;
    }
    while let (Some(Reverse((first, one))), Some(Reverse((second, other)))) = (heap.pop(), heap.pop()) {
        let parent = nodes.len();
        nodes.push(None);
        (nodes[one], nodes[other]) = (Some(parent), Some(parent));
        heap.push(Reverse((first + second, parent)));
        if heap.len() == 1 {
            break;
        }
    }
    let depth = |symbol: usize| std::iter::successors(nodes[symbol], |&node| nodes[node]).count();
    (0..counts.len()).map(|symbol| u8::try_from(depth(symbol)).unwrap_or(u8::MAX)).collect()
}

/// Returns the codes for these lengths, their bits in the order in which they are written.
pub(super) fn codes(lengths: &[u8]) -> Vec<u16> {
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let (mut codes, mut next) = (vec![0; lengths.len()], 0u16);
    for bits in 1..=longest {
        for (symbol, _) in lengths.iter().enumerate().filter(|(_, length)| **length == bits) {
            codes[symbol] = next.reverse_bits() >> (16 - bits);
            next = next.wrapping_add(1);
        }
        next <<= 1;
    }
    codes
}
