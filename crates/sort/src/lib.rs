// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sorts slices of any type by one copy of the algorithm.
//!
//! `core` has a copy of its sorts for every type of element, of 3 KB and more each: a dozen of them were 40 KB of the
//! image. Here a type adds its comparison and its swap only. That costs an indirect call for each comparison, so this
//! crate is for lists that are short or seldom sorted. Heapsort takes no memory, and n log n comparisons whatever the
//! order is that untrusted input comes in.
#![no_std]

#[cfg(test)]
extern crate std;

/// A list as the algorithm sees it: elements are known by their indices.
trait Sequence {
    fn len(&self) -> usize;
    fn is_less(&self, one: usize, other: usize) -> bool;
    fn swap(&mut self, one: usize, other: usize);
}

struct Keyed<'a, T, F> {
    items: &'a mut [T],
    key: F,
}

impl<T, K: Ord, F: Fn(&T) -> K> Sequence for Keyed<'_, T, F> {
    fn len(&self) -> usize {
        self.items.len()
    }

    fn is_less(&self, one: usize, other: usize) -> bool {
        (self.key)(&self.items[one]) < (self.key)(&self.items[other])
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.items.swap(one, other);
    }
}

/// Sorts by a key, the lowest first. Elements with equal keys end in any order.
pub fn by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    heap_sort(&mut Keyed { items, key });
}

/// Sorts copies of numbers and the like, the lowest first.
pub fn ascending<T: Ord + Copy>(items: &mut [T]) {
    by_key(items, |item| *item);
}

fn heap_sort(sequence: &mut dyn Sequence) {
    let len = sequence.len();
    for root in (0..len / 2).rev() {
        sift_down(sequence, root, len);
    }
    for end in (1..len).rev() {
        sequence.swap(0, end);
        sift_down(sequence, 0, end);
    }
}

/// Moves an element down, among the elements before `end`, until none of its two children is larger.
fn sift_down(sequence: &mut dyn Sequence, mut root: usize, end: usize) {
    loop {
        let left = 2 * root + 1;
        if left >= end {
            return;
        }
        let right = left + 1;
        let child = if right < end && sequence.is_less(left, right) { right } else { left };
        if !sequence.is_less(root, child) {
            return;
        }
        sequence.swap(root, child);
        root = child;
    }
}

#[cfg(test)]
mod tests;
