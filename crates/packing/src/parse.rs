// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cheapest way to write bytes as literals and matches.

use super::block::Costs;
use super::matches::{MIN_LENGTH, Match};
use super::token::Token;

/// A match of this length is taken whole.
const LONG: u16 = 130;

/// Returns the tokens of all bytes that cost least: the shortest path from the first byte to the end.
pub(super) fn cheapest(bytes: &[u8], matches: &[&[Match]], costs: &Costs) -> Vec<Token> {
    let mut best = vec![u64::MAX; bytes.len() + 1];
    let mut last = vec![Token { length: 0, distance: 0, literal: 0 }; bytes.len() + 1];
    best[0] = 0;
    for (at, &literal) in bytes.iter().enumerate() {
        let here = best[at];
        let mut offer = |end: usize, cost: u64, token: Token| {
            if here + cost < best[end] {
                (best[end], last[end]) = (here + cost, token);
            }
        };
        offer(at + 1, costs.literal(literal), Token { length: 1, distance: 0, literal });
        // Inside a run of one pattern every length is possible at every place, and the longest ones serve.
        let left = bytes.len() - at;
        let longest = matches[at].last().map_or(0, |found| found.length).min(u16::try_from(left).unwrap_or(u16::MAX));
        let mut length = if longest >= LONG { longest } else { MIN_LENGTH as u16 };
        for found in matches[at] {
            let of_distance = costs.distance(found.distance);
            for length in length..=found.length.min(longest) {
                let token = Token { length, distance: found.distance, literal: 0 };
                offer(at + usize::from(length), of_distance + costs.length(length), token);
            }
            length = length.max(found.length + 1);
        }
    }
    let (mut tokens, mut end) = (Vec::new(), bytes.len());
    while end > 0 {
        tokens.push(last[end]);
        end -= usize::from(last[end].length);
    }
    tokens.reverse();
    tokens
}
