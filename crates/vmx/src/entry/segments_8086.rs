// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of the guest's segment registers in virtual-8086 mode (section 27.3.1.2).

use super::context::Context;
use super::rule::{Rule, first};
use super::segments::{NAMES, SECTION};

/// A present data segment of privilege level 3: expand-up, writable, accessed.
const RIGHTS: u32 = 0xf3;

pub(super) fn check(context: &Context<'_>) -> Result<(), Rule> {
    NAMES.iter().zip(&context.state.segments).try_for_each(|(name, segment)| {
        let checks = [
            (*name, "has a base that is not its selector times 16", segment.base != u64::from(segment.selector) << 4),
            (*name, "has a limit other than FFFFH in virtual-8086 mode", segment.limit != 0xffff),
            (*name, "has access rights other than F3H in virtual-8086 mode", segment.rights != RIGHTS),
        ];
        first(SECTION, checks)
    })
}
