// SPDX-License-Identifier: MIT OR Apache-2.0
//! The life of the host: its boot, its restart and its update by another image, and its end.
//!
//! | module | subject |
//! |---|---|
//! | [`start`] | from the loader's hand-over to a host that can run guests |
//! | [`boot_bundle`] | the bundle that the loader gives, and its guests |
//! | [`restart`] | replacing the image, guests end |
//! | [`update`] | replacing the image while guests run |
//! | [`shutdown`] | leaving the machine with the log printed first |
//! | [`panic`], [`end`] | failures of the host, and everything that follows one |
//! | [`exceptions`] | names of exceptions |
//! | [`measure`] | the host's measurements of itself for the benches |
//! | `faults` | failures on purpose, in the test image |

pub mod boot_bundle;
pub mod end;
mod exceptions;
#[cfg(feature = "faults")]
pub mod faults;
pub mod measure;
pub mod panic;
pub mod restart;
pub mod shutdown;
pub mod start;
pub mod update;
