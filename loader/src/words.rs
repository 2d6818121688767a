// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words of a line of GRUB's language (GNU GRUB manual 2.12, section 6.2).

/// A word of a line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Its text, without quotes. Variables are not replaced.
    pub text: String,
    /// True if a part of it was in quotes.
    pub is_quoted: bool,
}

impl Word {
    /// Returns whether it is this text, not in quotes.
    pub fn is(&self, text: &str) -> bool {
        !self.is_quoted && self.text == text
    }
}

/// Splits a line into words, and leaves out a comment.
pub fn words(line: &str) -> Vec<Word> {
    let (mut found, mut word, mut is_begun) = (Vec::new(), Word::default(), false);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '#' if !is_begun => break,
            ' ' | '\t' | ';' => {
                if std::mem::take(&mut is_begun) {
                    found.push(std::mem::take(&mut word));
                }
                continue;
            }
            '\'' => {
                word.is_quoted = true;
                word.text.extend(letters.by_ref().take_while(|&inner| inner != '\''));
            }
            '"' => {
                word.is_quoted = true;
                quoted(&mut letters, &mut word.text);
            }
            '\\' => word.text.extend(letters.next()),
            other => word.text.push(other),
        }
        is_begun = true;
    }
    if is_begun {
        found.push(word);
    }
    found
}

/// Takes the rest of a text in double quotes.
fn quoted(letters: &mut impl Iterator<Item = char>, text: &mut String) {
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return,
            '\\' => text.extend(letters.next()),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
