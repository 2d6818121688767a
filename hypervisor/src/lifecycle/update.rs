// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replacing the running image while guests run.
//!
//! ```text
//! old image  stage, pack ─▶ lend the boot CPU, in slices ─▶ blackout: stop, save ─┐            ┌─▶ back, and on as
//! before new image                  prepare                                               └▶ restore ──┤
//! └─▶ commit, enter, settle
//! ```
//!
//! | module | side | what |
//! |---|---|---|
//! | [`hand_over_state`] | old | the guests' share of the hand-over state, and memory for it |
//! | [`drafts`] | old | guests saved once while they run, to rehearse with |
//! | [`departing`] | old | a CPU leaves its guests, saves them, and goes |
//! | [`preparing`] | old | slices, limits, what the new image states or does wrong |
//! | [`blackout`] | old | what all CPUs share while they stop, save and go, or stay |
//! | [`machine`] | both | the machine as the protocol (`crates/update`) sees it on a CPU |
//! | [`on_trial`] | new | it makes everything that it will need |
//! | [`adoption`] | new | guests made ready, and restored |
//! | [`arriving`] | new | a CPU restores its vCPUs, waits for the others, and enters |
//! | [`picture`] | new | the blackout on the timeline |
//! | [`settling`] | new | what is left to do once guests run |
//!
//! Until every CPU has restored its guests the old image is whole, and every trap in the new one leads back to
//! it.

pub mod adoption;
mod arriving;
mod blackout;
mod departing;
mod drafts;
mod hand_over_state;
pub mod machine;
pub mod on_trial;
mod picture;
mod preparing;
mod settling;

use alloc::format;
use alloc::string::{String, ToString};

use ::update::trial::{REASON_BYTES, TrialPage};
use spin::Mutex;

use crate::arch::switch_pages::trial::{Exception, Return};

pub use arriving::take_over;
pub use blackout::{
    close as close_blackout, current as current_blackout, is_open as is_blackout_open, limit_us, open as open_blackout,
    takes_nmi,
};
pub use departing::{draft, switch_over};
pub use drafts::{Blocks, is_wanted as is_draft_wanted};
pub use hand_over_state::HandOverState;
pub use preparing::{Preparing, guests_have_changed};
pub use settling::Settling;

/// The reason for which the first CPU failed in the blackout.
static PROBLEM: Mutex<Option<String>> = Mutex::new(None);

/// A CPU cannot switch over.
fn note_problem(index: u32, problem: &str) {
    PROBLEM.lock().get_or_insert_with(|| format!("CPU {index}: {problem}"));
}

/// A CPU came back from the new image for this reason.
fn note_failure(index: u32, back: Option<Return>, page: Option<&TrialPage>) {
    note_problem(index, &reason_of(back, page));
}

/// The first problem since this was last asked for.
pub fn take_problem() -> Option<String> {
    PROBLEM.lock().take()
}

/// Returns why the new image came back, in words.
fn reason_of(back: Option<Return>, page: Option<&TrialPage>) -> String {
    match back {
        Some(Return::Word(::update::trial::word::GIVES_UP, _)) => {
            let mut bytes = [0; REASON_BYTES];
            let text = page.map_or(&[][..], |page| page.reason(&mut bytes));
            String::from_utf8_lossy(text).into_owned()
        }
        Some(Return::Word(word, _)) => format!("it says {word}, which means nothing here"),
        Some(Return::Exception(Exception { vector, error_code, rip, fault_address })) => {
            let name = crate::lifecycle::panic::exception_name(vector);
            format!(
                "exception {vector} {name} at {rip:#x}, error code {error_code:#x}, fault address {fault_address:#x}"
            )
        }
        Some(Return::Interrupt(vector)) => format!("it was interrupted by vector {vector:#x}"),
        None => "it has no page".to_string(),
    }
}
