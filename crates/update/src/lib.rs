// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the image is replaced while the machine runs: what both images agree on, and what each CPU does when.
//!
//! | module | contents |
//! |---|---|
//! | [`takeover`] | the words by which all CPUs switch to the new image, or all stay |
//! | [`trial`] | a CPU's page between two images while the new one runs on trial |
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod sync;
pub mod takeover;
pub mod trial;
