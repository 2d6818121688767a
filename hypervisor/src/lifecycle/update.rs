// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replacing the running image while guests run.
//!
//! ```text
//! old image  stage, pack ─▶ lend the boot CPU, in slices ─▶ blackout: stop, save ─┐            ┌─▶ back, and on as
//! before new image                  prepare                                               └▶ restore ──┤
//! └─▶ commit, enter, finish
//! ```
//!
//! | module | side | content |
//! |---|---|---|
//! | [`hand_over_state`] | old | the guests' share of the hand-over state, and memory for it |
//! | [`drafts`] | old | guests saved once while they run, to rehearse with |
//! | [`departing`] | old | a CPU leaves its guests, saves them, and goes |
//! | [`preparing`] | old | slices, limits, the new image's messages and faults |
//! | [`blackout`] | old | the state that all CPUs share while they stop, save and go, or stay |
//! | [`machine`] | both | the machine as the protocol (`crates/update`) sees it on a CPU |
//! | [`problem`] | old | the first problem of a CPU, as text |
//! | [`packing`], [`guest_state`] | old | guests packed for the new image |
//! | [`block`], [`blocks`] | old | where guests are saved |
//! | [`on_trial`] | new | it makes everything that it will need |
//! | [`adoption`] | new | guests made ready, and restored |
//! | [`arriving`] | new | a CPU restores its vCPUs, waits for the others, and enters |
//! | [`leaving`] | new | a CPU goes back to the old image for good |
//! | [`faults`] | new | failures on purpose |
//! | [`picture`] | new | the blackout on the timeline |
//! | [`finishing`] | new | the remaining work once guests run |
//!
//! Until every CPU has restored its guests the old image is whole, and every trap in the new one leads back to
//! it.

pub mod adoption;
mod arriving;
mod blackout;
mod block;
mod blocks;
mod departing;
mod drafts;
mod finishing;
mod guest_state;
pub mod hand_over_state;
mod held;
pub mod leaving;
pub mod machine;
mod on_demand;
pub mod on_trial;
mod packing;
mod picture;
mod preparing;
mod problem;

pub use arriving::take_over;
pub use blackout::{
    close as close_blackout, current as current_blackout, is_open as is_blackout_open, open as open_blackout, takes_nmi,
};
pub use departing::{draft, switch_over};
pub use drafts::is_wanted as is_draft_wanted;
pub use finishing::Finishing;
pub use preparing::Preparing;
pub use problem::take as take_problem;
