// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules for the guest's segment registers, each violated.

use super::{Broken, clear, set};
use crate::control::Control;
use crate::entry::{GuestSegment, State};

const SECTION: &str = "27.3.1.2";
const NOT_CANONICAL: &str = "has a base that is not canonical";
const TOO_HIGH: &str = "has a base above 4 GiB";
const NOT_PRESENT: &str = "is not present";
const RESERVED: &str = "has a reserved access right";
const GRANULARITY: &str = "has a granularity that contradicts its limit";
const WILD: u64 = 1 << 47;
const HIGH: u64 = 1 << 32;
const LEVEL_3: u32 = 3 << 5;
const USABLE_DATA: GuestSegment = GuestSegment { selector: 0x18, rights: 0xc093, limit: u32::MAX, base: 0 };

pub const ALL: &[Broken] = &[
    (|it| it.segments[1].rights = 0xa098, SECTION, "CS", "has a type that no code segment has"),
    (|it| it.segments[1].rights = 0xa093 | LEVEL_3, SECTION, "CS", "is a data segment with a DPL above 0"),
    (|it| it.segments[1].rights |= LEVEL_3, SECTION, "CS", "has a DPL unlike that of SS"),
    (|it| it.segments[1].rights = 0xa09f | LEVEL_3, SECTION, "CS", "is conforming, and its DPL is above that of SS"),
    (|it| it.segments[1].rights |= 1 << 14, SECTION, "CS", "is of 64 and of 32 bits"),
    (|it| it.segments[2].rights = 0xc091, SECTION, "SS", "has a type that no stack has"),
    (
        |it| {
            restrict(it);
            it.segments[2].selector |= 1;
        },
        SECTION,
        "SS",
        "has an RPL unlike that of CS",
    ),
    (
        |it| {
            restrict(it);
            it.segments[1].selector |= 3;
            it.segments[2].selector |= 3;
        },
        SECTION,
        "SS",
        "has a DPL unlike its RPL",
    ),
    (
        |it| {
            it.segments[1].rights = 0xa093;
            it.segments[2].rights |= LEVEL_3;
        },
        SECTION,
        "SS",
        "has a DPL above 0 in real mode or with data as code",
    ),
    (|it| plain(it, 0).rights = 0xc092, SECTION, "ES", "has not been accessed"),
    (|it| plain(it, 3).rights = 0xc099, SECTION, "DS", "is code that cannot be read"),
    (
        |it| {
            restrict(it);
            plain(it, 4).selector |= 3;
        },
        SECTION,
        "FS",
        "has a DPL below its RPL",
    ),
    (|it| plain(it, 5).rights &= !(1 << 4), SECTION, "GS", "is a system segment"),
    (|it| it.segments[1].rights &= !(1 << 7), SECTION, "CS", NOT_PRESENT),
    (|it| plain(it, 3).rights &= !(1 << 7), SECTION, "DS", NOT_PRESENT),
    (|it| it.segments[2].rights |= 1 << 9, SECTION, "SS", RESERVED),
    (|it| plain(it, 0).rights |= 1 << 17, SECTION, "ES", RESERVED),
    (|it| it.segments[1].limit &= !1, SECTION, "CS", GRANULARITY),
    (|it| plain(it, 3).rights &= !(1 << 15), SECTION, "DS", GRANULARITY),
    (|it| it.segments[1].base = HIGH, SECTION, "CS", TOO_HIGH),
    (|it| it.segments[2].base = HIGH, SECTION, "SS", TOO_HIGH),
    (|it| plain(it, 3).base = HIGH, SECTION, "DS", TOO_HIGH),
    (|it| plain(it, 0).base = HIGH, SECTION, "ES", TOO_HIGH),
    (|it| it.segments[4].base = WILD, SECTION, "FS", NOT_CANONICAL),
    (|it| it.segments[5].base = WILD, SECTION, "GS", NOT_CANONICAL),
    (|it| it.segments[7].rights |= GuestSegment::UNUSABLE, SECTION, "TR", "is unusable"),
    (|it| it.segments[7].selector |= 4, SECTION, "TR", "is of the local table"),
    (|it| it.segments[7].base = WILD, SECTION, "TR", NOT_CANONICAL),
    (|it| it.segments[7].rights = 0x83, SECTION, "TR", "is no busy task state segment"),
    (|it| it.segments[7].rights |= 1 << 4, SECTION, "TR", "is no system segment"),
    (|it| it.segments[7].rights = 0xb, SECTION, "TR", NOT_PRESENT),
    (|it| it.segments[7].rights |= 1 << 8, SECTION, "TR", RESERVED),
    (|it| it.segments[7].limit = 0x10_0000, SECTION, "TR", GRANULARITY),
    (|it| it.segments[6].selector |= 4, SECTION, "LDTR", "is of the local table"),
    (|it| it.segments[6].base = WILD, SECTION, "LDTR", NOT_CANONICAL),
    (|it| it.segments[6].rights = 0x83, SECTION, "LDTR", "is no local descriptor table"),
    (|it| it.segments[6].rights |= 1 << 4, SECTION, "LDTR", "is no system segment"),
    (|it| it.segments[6].rights = 2, SECTION, "LDTR", NOT_PRESENT),
    (|it| it.segments[6].rights |= 1 << 11, SECTION, "LDTR", RESERVED),
    (|it| it.segments[6].limit = 1 << 20, SECTION, "LDTR", GRANULARITY),
    (|it| virtual_8086(it).base = 1, SECTION, "ES", "has a base that is not its selector times 16"),
    (|it| virtual_8086(it).limit = 0xfffe, SECTION, "ES", "has a limit other than FFFFH in virtual-8086 mode"),
    (|it| virtual_8086(it).rights = 0x93, SECTION, "ES", "has access rights other than F3H in virtual-8086 mode"),
    (
        |it| {
            virtual_8086(it);
            set(it, Control::Ia32eModeGuest);
            (it.guest.efer, it.guest.rip) = (0x500, 0);
        },
        "27.3.1.4",
        "RFLAGS",
        "has VM set in IA-32e mode or in real mode",
    ),
];

/// The guest is not unrestricted.
fn restrict(state: &mut State) {
    clear(state, Control::UnrestrictedGuest);
    (state.segments[1].selector, state.segments[2].selector) = (0x10, 0x18);
}

/// A segment, usable.
fn plain(state: &mut State, at: usize) -> &mut GuestSegment {
    state.segments[at] = USABLE_DATA;
    &mut state.segments[at]
}

/// ES of a guest that is in virtual-8086 mode.
fn virtual_8086(state: &mut State) -> &mut GuestSegment {
    clear(state, Control::Ia32eModeGuest);
    state.guest.efer = 0;
    state.guest.rflags |= 1 << 17;
    let segment = GuestSegment { selector: 0x1000, rights: 0xf3, limit: 0xffff, base: 0x1_0000 };
    state.segments[..6].fill(segment);
    &mut state.segments[0]
}
