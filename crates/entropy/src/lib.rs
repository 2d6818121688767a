// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random bytes for one guest: ChaCha20 keyed by the CPU's own source.
//!
//! ```text
//! RDSEED, else RDRAND ──► seed (checked) ──► ChaCha20 ──► a new key, and then the guest's bytes
//!                                              ▲ a fresh seed after every 1,024 requests
//! ```
//!
//! - **One generator for each guest**: no lock is shared, and no guest's bytes follow from another's.
//! - **The key is replaced before any byte leaves**, so that bytes that a guest has do not follow from the generator's
//!   later state. It is never handed over: the next image seeds its own.
//! - **A source that fails or repeats itself** is an error with a name. There is no fallback to clocks: a guest whose
//!   CPU has neither instruction gets no entropy device, since it would take the bytes for random.
//!
//! RDSEED has full entropy (NIST SP 800-90B and C). RDRAND's generator has 128 bits of strength (SP 800-90A); with it
//! alone, so has this one (Intel SDM vol. 1, section 7.3.17).
#![no_std]

#[cfg(test)]
extern crate std;

mod generator;
mod seed;

pub use generator::Generator;
pub use seed::{Seed, Source, Unavailable, seed};

#[cfg(test)]
mod tests;
