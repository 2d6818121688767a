// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tool of a checkout: every command of `cargo baton …`.
//!
//! | commands | of |
//! |---|---|
//! | `up`, `demo` | the lab: hosts in emulators |
//! | `bench` | the benches |
//! | all others | `baton`, the operator's tool |
#![warn(missing_docs)]

pub mod args;
pub mod commands;
