// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requests to a unit, in any order.

use proptest::prelude::*;
use units::PAGE_BYTES as PAGE;

use super::machine::INPUTS;

pub const FUNCTIONS: [u16; 4] = [0x10, 0x11, 0x108, 0x3f8];
pub const GUESTS: usize = 3;
const LARGE: u64 = 512 * PAGE;
/// Addresses at which domains are mapped.
pub const PLACES: [u64; 3] = [0, LARGE - 2 * PAGE, 0x40_0000_0000];
pub const MOST_INTERRUPTS: u16 = 4;

#[derive(Clone, Copy, Debug)]
pub enum Request {
    Create(usize),
    Map {
        guest: usize,
        place: usize,
        skip: u64,
        pages: u64,
        is_writable: bool,
    },
    Attach(usize, usize),
    Block(usize),
    Stop(usize),
    Free(usize),
    Open(usize, u16),
    Set(usize, u16, Option<u8>),
    /// An input of the I/O APIC sends a vector, or an NMI.
    Redirect(u16, Option<u8>),
    Update,
    /// All frames but this many are taken; none is freed before.
    Starve(usize),
    Relieve,
}

pub fn request() -> impl Strategy<Value = Request> {
    let pages = prop_oneof![4 => 1u64..4, 2 => Just(512u64), 1 => Just(1024u64)];
    let (function, guest) = (0..FUNCTIONS.len(), 0..GUESTS);
    prop_oneof![
        3 => guest.clone().prop_map(Request::Create),
        6 => (guest.clone(), 0..PLACES.len(), 0u64..4, pages, any::<bool>()).prop_map(
            |(guest, place, skip, pages, is_writable)| Request::Map { guest, place, skip, pages, is_writable }
        ),
        5 => (function.clone(), guest.clone()).prop_map(|(function, guest)| Request::Attach(function, guest)),
        3 => (function.clone(), any::<bool>()).prop_map(
            |(function, stops)| if stops { Request::Stop(function) } else { Request::Block(function) }
        ),
        2 => guest.prop_map(Request::Free),
        2 => (function.clone(), 1..=MOST_INTERRUPTS).prop_map(|(function, count)| Request::Open(function, count)),
        4 => (function, 0..MOST_INTERRUPTS, proptest::option::of(0x20u8..0x40)).prop_map(
            |(function, index, vector)| Request::Set(function, index, vector)
        ),
        2 => (0..INPUTS, proptest::option::of(0x20u8..0x40)).prop_map(
            |(input, vector)| Request::Redirect(input, vector)
        ),
        2 => Just(Request::Update),
        1 => prop_oneof![2 => (0..4usize).prop_map(Request::Starve), 1 => Just(Request::Relieve)],
    ]
}
