// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn a_word_that_changed_is_found() {
    let mut words: Vec<u64> = (0..100).map(|word| pattern(3, word)).collect();
    assert_eq!(wrong_words(3, &words), 0);
    words[42] ^= 1;
    assert_eq!(wrong_words(3, &words), 1);
}

#[test]
fn a_piece_in_anothers_place_is_found() {
    let words: Vec<u64> = (0..100).map(|word| pattern(3, word)).collect();
    assert_eq!(wrong_words(4, &words), 100);
}

#[test]
fn a_counted_heartbeat_ends() {
    heartbeat(Duration::from_millis(1), Some(3));
}
