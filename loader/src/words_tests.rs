// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

fn texts(line: &str) -> Vec<String> {
    words(line).into_iter().map(|word| word.text).collect()
}

#[test]
fn quotes_hold_words_together_and_comments_are_left_out() {
    assert_eq!(
        texts(r#"  menuentry 'Debian GNU/Linux' --class "a b" { # all"#),
        ["menuentry", "Debian GNU/Linux", "--class", "a b", "{"]
    );
    assert_eq!(texts(r#"a\ b "c\"d" 'e\f' g#h"#), ["a b", "c\"d", r"e\f", "g#h"]);
    assert_eq!(texts("if [ x ] ; then"), ["if", "[", "x", "]", "then"]);
    assert_eq!(texts(" # nothing"), <[&str; 0]>::default());
}

#[test]
fn an_empty_word_in_quotes_is_a_word() {
    assert_eq!(texts("set ''"), ["set", ""]);
    assert!(words("'{'")[0].is_quoted && !words("'{'")[0].is("{"));
}

proptest::proptest! {
    #[test]
    fn any_line_has_words(line in ".{0,200}") {
        proptest::prop_assert!(words(&line).len() <= line.chars().count());
    }
}
