// SPDX-License-Identifier: MIT OR Apache-2.0
//! A profile's samples as pictures and text.
//!
//! ```text
//! samples ─▶ stacks (names by the image's symbols) ─┬─▶ boilerplate left out ─▶ flame   an SVG picture with a script
//!                                                   ├─▶ folded  a line for each stack
//!                                                   └─▶ JSON
//! ```

mod boilerplate;
mod flame;
mod stacks;

pub use flame::draw;
pub use stacks::{Stack, Stacks};
