// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests' output, to each client that follows it.

use wire::MAX_CONSOLE_BYTES;

use super::guest_lines::GuestLine;
use super::outgoing::Outgoing;
use crate::guests::console::ControlEnds;
use crate::guests::slots::GUESTS;

/// Console output kept while no client listens; the rest of the queue is room for what comes before the next turn.
const KEPT_CONSOLE_BYTES: usize = 8 * 1024;

/// Queues guests' output for those who follow it. Without any, the newest is kept for the next one. COM2 is waited for;
/// a client in a guest that reads more slowly loses some. Returns whether there was any, or may be.
pub fn pump(com2: &mut Outgoing, lines: &mut [GuestLine]) -> bool {
    let mut was_any = false;
    for guest in GUESTS.all() {
        let Some(mut ends) = guest.free_control_ends() else {
            was_any = true;
            continue;
        };
        let name = guest.config.name.as_str();
        let is_followed = com2.follows(name) || followers(lines, name).next().is_some();
        if !is_followed {
            while ends.waiting() > KEPT_CONSOLE_BYTES {
                ends.next_byte();
            }
            continue;
        }
        let mut chunk = [0; MAX_CONSOLE_BYTES];
        while has_room(com2, lines, name) {
            let count = take(&mut ends, &mut chunk);
            if count == 0 {
                break;
            }
            was_any = true;
            let bytes = &chunk[..count];
            if com2.follows(name) {
                com2.push_console(name, bytes);
            }
            followers(lines, name).for_each(|outgoing| outgoing.push_console(name, bytes));
        }
    }
    was_any
}

/// The clients in guests that follow this guest's console.
fn followers<'a>(lines: &'a mut [GuestLine], name: &'a str) -> impl Iterator<Item = &'a mut Outgoing> {
    lines.iter_mut().filter_map(GuestLine::outgoing).filter(move |outgoing| outgoing.follows(name))
}

fn has_room(com2: &Outgoing, lines: &mut [GuestLine], name: &str) -> bool {
    match com2.follows(name) {
        true => com2.has_room(),
        false => followers(lines, name).any(|outgoing| outgoing.has_room()),
    }
}

fn take(from: &mut ControlEnds, into: &mut [u8]) -> usize {
    let mut count = 0;
    while count < into.len()
        && let Some(byte) = from.next_byte()
    {
        into[count] = byte;
        count += 1;
    }
    count
}
