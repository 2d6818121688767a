// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models of the hardware, for tests and for sizes no lab has.
//!
//! A model runs the real mechanism (the code of `bringup`, `pmu` or `uart`, word for word) against hardware that exists
//! only as numbers: how long a CPU takes to wake or a byte to leave, what an access costs, who never answers.
//! Every number says where it comes from: measured in public, or assumed and why. What is modelled is called so
//! wherever it is shown.

pub mod pmu;
pub mod random;
pub mod serial;
pub mod wake;
