// SPDX-License-Identifier: MIT OR Apache-2.0
//! The console of the log: COM1.
//!
//! Early in the boot, and at the host's end, the CPU that logs prints, polling. In between the logger only raises its
//! own CPU's flag. CPUs' loops print the records: an idle CPU all of them, else a FIFO's fill at a time when the UART
//! interrupts for more. Interrupts are open between two fills.

mod last_words;
pub mod log;
mod opening;
mod output;

pub use last_words::{emergency, first_record_from, flush_for_the_end, keys, log_lines, print_log_again};
pub use opening::{BEFORE_OPTIONS, start, start_silently};
pub use output::{Step, flush, hand_over, is_done, next_poll, print_ahead, report, run, step, take_due_poll};
