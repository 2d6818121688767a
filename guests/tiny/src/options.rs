// SPDX-License-Identifier: MIT OR Apache-2.0
//! `name=value` words of a command line.

/// The value of the last word of that name.
pub fn value<'text>(command_line: &'text str, name: &str) -> Option<&'text str> {
    command_line.split_ascii_whitespace().rev().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// The number that a word gives.
pub fn number(command_line: &str, name: &str) -> Option<usize> {
    value(command_line, name)?.parse().ok()
}
