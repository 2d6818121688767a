// SPDX-License-Identifier: MIT OR Apache-2.0
//! Return addresses up a chain of frame pointers, as far as the chain can be believed.

use core::ops::Range;

use crate::sample::MOST_FRAMES;

/// Bytes of a frame's link: the caller's frame pointer and the return address.
const LINK_BYTES: u64 = 16;

/// Writes return addresses into `into`, nearest first, and returns how many. `read` gives a quadword of the stack; it
/// is asked for nothing that is outside of `stack` or not aligned.
///
/// Frame pointers are believed only inside `stack`, rising and aligned, so that a corrupt stack ends the walk and
/// causes no fault in it.
pub fn walk(mut frame_pointer: u64, stack: Range<u64>, read: &dyn Fn(u64) -> u64, into: &mut [u64]) -> usize {
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

/// Point at which code was interrupted.
#[derive(Clone, Copy, Debug)]
pub struct Interrupted<'a> {
    /// The address of the next instruction.
    pub at: u64,
    /// The bytes of code from there on.
    pub bytes: &'a [u8],
    /// The stack pointer.
    pub stack_pointer: u64,
    /// The frame pointer.
    pub frame_pointer: u64,
}

/// The addresses of a sample ([`crate::Sample::Host`]), up to the first that is not in `code`; returns how many they
/// are. For `stack` and `read` see [`walk`].
pub fn frames(
    interrupted: &Interrupted<'_>,
    code: Range<u64>,
    stack: Range<u64>,
    read: &dyn Fn(u64) -> u64,
    into: &mut [u32; MOST_FRAMES],
) -> usize {
    let mut addresses = [interrupted.at; MOST_FRAMES];
    let mut count = 1;
    let caller = caller_above(interrupted.bytes).and_then(|above| interrupted.stack_pointer.checked_add(above));
    if let Some(at) = caller.filter(|at| at.is_multiple_of(8) && stack.contains(at) && stack.end - at >= 8) {
        addresses[1] = read(at);
        count = 2;
    }
    count += walk(interrupted.frame_pointer, stack, read, &mut addresses[count..]);
    let known = addresses[..count].iter().take_while(|address| code.contains(address));
    into.iter_mut().zip(known).map(|(place, address)| *place = (address - code.start) as u32).count()
}

/// Returns how far above the stack pointer the return address is, where the chain does not hold the caller yet, or not
/// any more: at a function's first two instructions and at its last, recognised by the code's bytes from there on
/// (`push rbp`, `mov rbp, rsp`, `ret`).
fn caller_above(code: &[u8]) -> Option<u64> {
    match code {
        [0x55 | 0xc3, ..] => Some(0),
        [0x48, 0x89, 0xe5, ..] => Some(8),
        _ => None,
    }
}
