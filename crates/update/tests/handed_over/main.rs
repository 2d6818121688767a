// SPDX-License-Identifier: MIT OR Apache-2.0
//! The new image's side of a hand-over, on hand-over blocks as the old image writes them: guests that are adopted, CPUs
//! that were parked, and memory that becomes free.

mod adoption;
mod chain;
mod image;
mod parked;
mod record;
mod release;
mod whole;
