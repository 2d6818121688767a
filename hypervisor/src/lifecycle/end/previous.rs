// SPDX-License-Identifier: MIT OR Apache-2.0
//! The epitaph that the host before this one left in memory.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use endstate::epitaph::{Damage, Epitaph};
use spin::Once;

use crate::arch::{ending, timer};
use crate::kernel::inherited;

/// Its lines; none where it left nothing.
static PREVIOUS: Once<Vec<String>> = Once::new();

/// Reads what is there, and clears it: it is reported by one host only.
pub fn collect() {
    let read = ending::with_epitaph(|page| {
        let lines = Epitaph::read(page).map(|epitaph| lines_of(&epitaph));
        page.fill(0);
        lines
    });
    match read {
        Some(Ok(lines)) => {
            lines.iter().take(2).for_each(|line| log::warn!("before this host: {line}"));
            log::warn!("before this host: `baton log --previous` has registers, backtrace and the log's end");
            PREVIOUS.call_once(|| lines);
        }
        Some(Err(Damage::None)) | None => {}
        Some(Err(damage)) => log::warn!("before this host: {damage}"),
    }
}

/// The epitaph's lines, each short enough for a frame.
pub fn lines() -> &'static [String] {
    PREVIOUS.get().map_or(&[], |lines| lines)
}

/// Returns when the image that this one replaced has left: what the log holds from before that, this image has not
/// reported.
pub fn log_until_ns() -> Option<u64> {
    let left = inherited::known()?.stamps?.left.get();
    Some(timer::ticks_to_ns(left.wrapping_sub(timer::origin())))
}

fn lines_of(epitaph: &Epitaph<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    epitaph.lines(&mut |line| lines.push(wire::bounded(&line.to_string(), wire::MAX_TEXT_BYTES).to_string()));
    lines
}
