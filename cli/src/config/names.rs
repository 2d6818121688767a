// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of guests and of control keys.

use bundle::limits;

/// Returns whether a guest, or a control key, can be called so.
pub(super) fn is_possible_name(name: &str) -> bool {
    let is_possible = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=limits::GUEST_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_possible)
}
