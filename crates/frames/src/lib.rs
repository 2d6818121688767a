// SPDX-License-Identifier: MIT OR Apache-2.0
//! Physical memory: the owner of each frame.
//!
//! The ledger ([`Frames`]) keeps memory as *extents*: sorted, disjoint ranges that never touch (two that would are
//! one), in sets by owner. Cost depends on how scattered memory is, never on how much there is: a machine of 512
//! GB starts as fast as one of 512 MB. A part of an extent gets a record of its own when it is split off.
//!
//! The caller of `allocate` holds a [`FrameRange`], which cannot be copied: a range has one owner, and giving it back
//! consumes the proof of owning it. A range that is dropped is leaked, never handed out twice.
//!
//! ```text
//! memory map ── add_free ──▶ ┌──────────┐ ── allocate, allocate_below, claim ──▶ FrameRange ── free ──┐
//! image, modules ─ reserve ─▶│   free   │ ◀───────────────────────────────────────────────────────────┘
//! damage ──────── retire ───▶│          │ ── allocate_for_guest ──▶ GuestFrames ── free_from_guest ──┐
//!          set_aside ──┐     │  tainted │ ◀───────────────────────────────────────────────────────────┘
//!                      └────▶│   huge   │ ── begin_scrub ──▶ ScrubPiece ── end_scrub ──▶ clean
//!                            └──────────┘
//! ```
//!
//! | module | content |
//! |---|---|
//! | `frames`, `extents`, `range` | the ledger, its sets, what an owner holds |
//! | `allocate` | memory for the host, and back |
//! | `place` | where a request is placed |
//! | `guests` | memory for guests: set aside in huge frames, on one node, clean |
//! | `scrub` | an idle CPU clears memory that guests have left |
//! | `retire` | damaged memory |
//! | `state`, `owner` | the kinds of owners; the owner of a frame |
//! | `room` | the memory that the ledger itself is kept in |
//! | [`nodes`] | which memory is on which NUMA node |
//! | [`records`] | a record of 64 bytes for each frame: the baselines, all written at once or deferred |
//!
//! A request is placed at the end of an extent where it breaks the fewest whole 1 GiB and 2 MiB frames, then in
//! the smallest such extent, so that small requests use up the crumbs and huge frames stay whole for guests; below 1
//! MiB only when nothing above it fits, since CPUs start there and little of it exists.
#![no_std]

#[cfg(test)]
extern crate std;

mod allocate;
mod error;
mod extents;
mod frames;
mod guests;
pub mod nodes;
mod owner;
mod place;
mod range;
pub mod records;
mod retire;
mod room;
mod scrub;
mod state;
mod sync;

pub use error::{AddError, ClaimError, FreeError, FreeReason, OutOfMemory, TooManyExtents};
pub use frames::{Frames, LEDGER_BYTES, LEDGER_SLOTS, MAXIMUM_EXTENTS};
pub use guests::{GuestFrames, HugeShortage, MAXIMUM_DIRTY_PARTS};
pub use nodes::{Node, NodeMap};
pub use range::FrameRange;
pub use room::find_room;
pub use scrub::ScrubPiece;
pub use state::FrameState;
pub use units::{PageSize, PhysAddr, PhysRange};

#[cfg(test)]
mod tests;
