// SPDX-License-Identifier: MIT OR Apache-2.0
//! Return addresses up a chain of frame pointers, as far as the chain can be believed.

use core::ops::Range;

/// Bytes of a frame's link: the caller's frame pointer and the return address.
const LINK_BYTES: u64 = 16;

/// Writes return addresses into `into`, nearest first, and says how many. `read` gives a quadword of the stack; it is asked for
/// nothing that is outside of `stack` or not aligned.
///
/// Frame pointers are believed only inside `stack`, rising and aligned, so that a wrecked stack ends the walk instead of who walks.
pub fn walk(mut frame_pointer: u64, stack: Range<u64>, read: impl Fn(u64) -> u64, into: &mut [u64]) -> usize {
    let mut count = 0;
    while count < into.len() && is_link(frame_pointer, &stack) {
        let (next, return_address) = (read(frame_pointer), read(frame_pointer + 8));
        if return_address == 0 {
            break;
        }
        into[count] = return_address;
        count += 1;
        if next <= frame_pointer {
            break;
        }
        frame_pointer = next;
    }
    count
}

fn is_link(at: u64, stack: &Range<u64>) -> bool {
    at.is_multiple_of(8) && stack.contains(&at) && stack.end - at >= LINK_BYTES
}

/// How far above the stack pointer the return address is, where the chain does not know the caller yet, or not any more: at a
/// function's first two instructions and at its last, told by the code's bytes from there on (`push rbp`, `mov rbp, rsp`, `ret`).
pub fn caller_above(code: &[u8]) -> Option<u64> {
    match code {
        [0x55 | 0xc3, ..] => Some(0),
        [0x48, 0x89, 0xe5, ..] => Some(8),
        _ => None,
    }
}
