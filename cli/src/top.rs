// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contents of `baton top`: the use of a host's CPUs, and its guests, between two readings.
//!
//! | module | responsibility |
//! |---|---|
//! | [`reading`] | one reading of a host |
//! | [`rates`] | shares and rates between two of them |
//! | [`ticks`] | ticks of a CPU by their user, between two readings |
//! | [`text`] | their form in cells |
//! | [`screen`] | a terminal's picture of them, and its keys |

mod rates;
mod reading;
#[cfg(test)]
mod samples;
mod screen;
mod text;
mod ticks;

pub use rates::{CpuRow, GuestRow, HostRow, Sort, View, between};
pub use reading::{Reading, read};
pub use screen::{Flow, Screen};
pub use text::tables;
pub use ticks::Ticks;
