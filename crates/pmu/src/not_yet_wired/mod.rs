// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of Intel's CPUs. **No image uses any of this**: support of VMX, without which no guest runs on such a
//! CPU, will wire it in. Until then it is tested against models of the registers (`sim::pmu`).
//!
//! | module | what |
//! |---|---|
//! | `driver` | the architectural counters, as a backend |
//! | `pebs`, `lbr`, `topdown` | what else these CPUs count, record and sample, for one user at a time |
//! | `guest` | a guest's counters with these three |

pub mod driver;
pub mod guest;
pub mod lbr;
pub mod pebs;
pub mod topdown;
