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

/// The hexadecimal numbers that a word gives, separated by commas.
pub fn addresses<'text>(command_line: &'text str, name: &str) -> impl Iterator<Item = u64> + use<'text> {
    let list = value(command_line, name).unwrap_or_default();
    list.split(',').filter_map(|number| u64::from_str_radix(number.trim_start_matches("0x"), 16).ok())
}
