// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of Intel's CPUs. **No image uses any of this.** Guests run on Intel's CPUs (`hypervisor/src/arch/vmx`), but
//! the hypervisor drives AMD's counters only ([`crate::amd`]): on any other CPU it refuses its option `pmu=hardware`,
//! and counts guests' events with [`crate::soft`]. Until it is wired in, this is tested against models of the registers
//! (`sim::pmu`).
//!
//! | module | contents |
//! |---|---|
//! | `driver` | the architectural counters, as a backend |
//! | `pebs`, `lbr`, `topdown` | precise samples, last branch records and top-down metrics, for one user at a time |
//! | `guest` | a guest's counters with these three |

pub mod driver;
pub mod guest;
pub mod lbr;
pub mod pebs;
pub mod topdown;
