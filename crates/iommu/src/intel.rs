// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intel VT-d units. Sections are those of "Intel Virtualization Technology for Directed I/O", rev 4.1.
//!
//! ```text
//!   RTADDR ─► root table ─► context table of a bus ─► second-stage tables of a domain     what a function reaches
//!   IRTA ───► interrupt remapping table                                                   where its interrupts go
//!   IQA ────► invalidation queue: what the unit is to drop from its caches, and the word that reports that it has
//! ```
//!
//! A unit runs in legacy mode with second-stage tables, which every unit but those for first-stage translation only
//! has. One of those reports no width in CAP.SAGAW and is refused ([`Problem::Lacks`](crate::Problem::Lacks)): its
//! functions would need scalable mode with tables in the CPU's own format.
//!
//! Device TLBs (ATS) stay off: a context entry's type 00 blocks translation requests. Snoop control (bit 11 of a page's
//! entry) stays clear, as it is reserved where ECAP.SC is: Enable No Snoop in a function's Device Control is cleared
//! instead.
//!
//! | module | content | section |
//! |---|---|---|
//! | `registers`, `capabilities` | a unit's capabilities and commands | 11.4 |
//! | `tables`, `format` | root, context and second-stage tables | 9.1, 9.3, 9.8 |
//! | `coherence` | units that do not snoop caches | 11.4.3 |
//! | `queue` | queued invalidation | 6.5.2 |
//! | `faults` | fault recording | 7 |
//! | `interrupts`, `spare` | interrupt remapping | 5.1, 9.10 |
//! | `start`, `adopt`, `unit`, `domains`, `remapping`, `inputs` | one unit: taken over, adopted, changed, left | 6, 11.4.4 |

mod adopt;
mod capabilities;
mod coherence;
mod domains;
mod faults;
mod format;
mod inputs;
mod interrupts;
mod queue;
mod registers;
mod remapping;
mod spare;
mod start;
mod tables;
mod unit;

pub use adopt::Left;
pub use coherence::WrittenBack;
pub use format::SecondStage;
pub use spare::{Spare, SpareWrite};
pub use start::Place;
pub use unit::Unit;

#[cfg(test)]
pub(crate) mod model;
#[cfg(test)]
mod tests;
