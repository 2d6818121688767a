// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models of the hardware, for tests and for sizes no lab has.
//!
//! A model runs the real mechanism (the code of `bringup`, `pmu` or `uart`, word for word) against hardware that exists
//! only as numbers: how long a CPU takes to wake or a byte to leave, the cost of an access, the CPUs that never
//! answer. Every number states its source: measured in public, or assumed and why. Modelled results are called so
//! wherever they are shown.

pub mod pmu;
pub mod random;
pub mod serial;
pub mod wake;
