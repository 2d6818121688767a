// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's CPUs: which there are, bringing them up, sending each into its loop, and taking them offline again.
//!
//! | module | subject |
//! |---|---|
//! | `table` | which CPUs there are, and the state of each |
//! | [`threads`] | which of them run guests |
//! | `virtualization` | the extension that runs guests |
//! | `crews` | the plans by which CPUs come up |
//! | `entry` | a CPU's way to its loop, and out of the host |
//! | `bring_up` | all CPUs at boot |
//! | `changes` | a CPU that leaves the running host, or comes back |
//! | `handed_over` | CPUs that come from the image before, running |

mod bring_up;
mod changes;
mod crews;
mod entry;
mod handed_over;
mod table;
pub mod threads;
mod virtualization;

pub use bring_up::{Others, prepare_cpu};
pub use changes::{join, leave_order, online_again, park};
pub use crews::reset_others;
pub use entry::take_over;
pub use handed_over::{adopt_running, expect_others};
pub use table::{Member, apic_id, clocks_agree, count, init_absent, members, online, online_apic_ids, state};
pub use virtualization::{VIRTUALIZATION, clear_guest_state, detect_virtualization, virt};
