// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks of the guest's segment registers (section 27.3.1.2), but for virtual-8086 mode.

use vm::vcpu::{AccessRights, SegmentName};

use super::context::Context;
use super::rule::{Check, Rule, first};
use super::state::GuestSegment;

pub(super) const SECTION: &str = "27.3.1.2";
/// Code and data segments with their names, by [`SegmentName`].
pub(super) const NAMES: [&str; 6] = ["ES", "CS", "SS", "DS", "FS", "GS"];
const LDTR: usize = SegmentName::Ldtr as usize;
const TR: usize = SegmentName::Tr as usize;
const CS: usize = SegmentName::Cs as usize;
const SS: usize = SegmentName::Ss as usize;
/// A writable data segment that grows up and has been accessed, where code is expected: unrestricted guests only.
const DATA: u32 = 3;
const LOCAL_TABLE: u32 = 2;
const BUSY_TASK_16: u32 = 3;
const BUSY_TASK: u32 = 11;
/// Reserved access rights: bits 11:8 and 31:17.
const RESERVED: u32 = 0xfffe_0f00;
const UPPER_HALF: u64 = 0xffff_ffff << 32;

/// Code and data segments of a guest that is not in virtual-8086 mode.
pub(super) fn check(context: &Context<'_>) -> Result<(), Rule> {
    let segments = &context.state.segments;
    first(SECTION, code(context, &segments[CS], &segments[SS]))?;
    first(SECTION, stack(context, &segments[SS], &segments[CS]))?;
    for at in [0, 3, 4, 5] {
        first(SECTION, data(context, NAMES[at], &segments[at]))?;
    }
    NAMES.iter().enumerate().try_for_each(|(at, name)| first(SECTION, common(name, &segments[at], at == CS)))?;
    first(SECTION, bases(context))
}

/// TR and LDTR, in every mode.
pub(super) fn check_system(context: &Context<'_>) -> Result<(), Rule> {
    let segments = &context.state.segments;
    first(SECTION, task(context, &segments[TR]))?;
    match segments[LDTR].is_usable() {
        true => first(SECTION, local_table(context, &segments[LDTR])),
        false => Ok(()),
    }
}

fn code(context: &Context<'_>, cs: &GuestSegment, ss: &GuestSegment) -> [Check; 5] {
    let is_data = cs.kind() == DATA && context.is_unrestricted();
    let is_conforming = matches!(cs.kind(), 13 | 15);
    let is_plain = matches!(cs.kind(), 9 | 11);
    let has_both_sizes = context.is_long() && cs.has(AccessRights::LONG) && cs.has(AccessRights::DEFAULT_32);
    [
        ("CS", "has a type that no code segment has", !(is_plain || is_conforming || is_data)),
        ("CS", "is a data segment with a DPL above 0", is_data && cs.dpl() != 0),
        ("CS", "has a DPL unlike that of SS", is_plain && cs.dpl() != ss.dpl()),
        ("CS", "is conforming, and its DPL is above that of SS", is_conforming && cs.dpl() > ss.dpl()),
        ("CS", "is of 64 and of 32 bits", has_both_sizes),
    ]
}

fn stack(context: &Context<'_>, ss: &GuestSegment, cs: &GuestSegment) -> [Check; 4] {
    let is_restricted = !context.is_unrestricted();
    let is_kernel = cs.kind() == DATA || !context.is_protected();
    [
        ("SS", "has a type that no stack has", ss.is_usable() && !matches!(ss.kind(), 3 | 7)),
        ("SS", "has an RPL unlike that of CS", is_restricted && ss.rpl() != cs.rpl()),
        ("SS", "has a DPL unlike its RPL", is_restricted && ss.dpl() != ss.rpl()),
        ("SS", "has a DPL above 0 in real mode or with data as code", is_kernel && ss.dpl() != 0),
    ]
}

fn data(context: &Context<'_>, name: &'static str, segment: &GuestSegment) -> [Check; 3] {
    let is_usable = segment.is_usable();
    let is_code = segment.has(AccessRights::CODE);
    let is_readable = segment.has(AccessRights::READABLE_OR_WRITABLE);
    let is_conforming = segment.kind() >= 12;
    let is_below = !context.is_unrestricted() && !is_conforming && segment.dpl() < segment.rpl();
    [
        (name, "has not been accessed", is_usable && !segment.has(AccessRights::ACCESSED)),
        (name, "is code that cannot be read", is_usable && is_code && !is_readable),
        (name, "has a DPL below its RPL", is_usable && is_below),
    ]
}

/// Checks that CS and every usable data segment have in common.
fn common(name: &'static str, segment: &GuestSegment, is_code: bool) -> [Check; 4] {
    let is_checked = is_code || segment.is_usable();
    [
        (name, "is a system segment", is_checked && !segment.has(AccessRights::CODE_OR_DATA)),
        (name, "is not present", is_checked && !segment.has(AccessRights::PRESENT)),
        (name, "has a reserved access right", is_checked && segment.rights & RESERVED != 0),
        (name, GRANULARITY, is_checked && !is_granularity_right(segment)),
    ]
}

const GRANULARITY: &str = "has a granularity that contradicts its limit";

/// In pages, the limit's low 12 bits are all ones; in bytes, it is below 1 MiB.
fn is_granularity_right(segment: &GuestSegment) -> bool {
    match segment.has(AccessRights::GRANULAR) {
        true => segment.limit & 0xfff == 0xfff,
        false => segment.limit >> 20 == 0,
    }
}

fn bases(context: &Context<'_>) -> [Check; 6] {
    const TOO_HIGH: &str = "has a base above 4 GiB";
    const NOT_CANONICAL: &str = "has a base that is not canonical";
    let [es, cs, ss, ds, fs, gs, ..] = &context.state.segments;
    let is_high = |segment: &GuestSegment| segment.is_usable() && segment.base & UPPER_HALF != 0;
    [
        ("CS", TOO_HIGH, cs.base & UPPER_HALF != 0),
        ("SS", TOO_HIGH, is_high(ss)),
        ("DS", TOO_HIGH, is_high(ds)),
        ("ES", TOO_HIGH, is_high(es)),
        ("FS", NOT_CANONICAL, !context.is_canonical(fs.base)),
        ("GS", NOT_CANONICAL, !context.is_canonical(gs.base)),
    ]
}

fn task(context: &Context<'_>, tr: &GuestSegment) -> [Check; 8] {
    let is_narrow = tr.kind() == BUSY_TASK_16 && !context.is_long();
    [
        ("TR", "is unusable", !tr.is_usable()),
        ("TR", "is of the local table", tr.is_local()),
        ("TR", "has a base that is not canonical", !context.is_canonical(tr.base)),
        ("TR", "is no busy task state segment", tr.kind() != BUSY_TASK && !is_narrow),
        ("TR", "is no system segment", tr.has(AccessRights::CODE_OR_DATA)),
        ("TR", "is not present", !tr.has(AccessRights::PRESENT)),
        ("TR", "has a reserved access right", tr.rights & RESERVED != 0),
        ("TR", GRANULARITY, !is_granularity_right(tr)),
    ]
}

fn local_table(context: &Context<'_>, ldtr: &GuestSegment) -> [Check; 7] {
    [
        ("LDTR", "is of the local table", ldtr.is_local()),
        ("LDTR", "has a base that is not canonical", !context.is_canonical(ldtr.base)),
        ("LDTR", "is no local descriptor table", ldtr.kind() != LOCAL_TABLE),
        ("LDTR", "is no system segment", ldtr.has(AccessRights::CODE_OR_DATA)),
        ("LDTR", "is not present", !ldtr.has(AccessRights::PRESENT)),
        ("LDTR", "has a reserved access right", ldtr.rights & RESERVED != 0),
        ("LDTR", GRANULARITY, !is_granularity_right(ldtr)),
    ]
}
