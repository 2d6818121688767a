// SPDX-License-Identifier: MIT OR Apache-2.0
//! Baton: a hypervisor that can be replaced while its guests run.
//!
//! The boot, in order: console → memory map → frames → own page tables → interrupts and clock → processors → bundle →
//! guests. What need not happen before the first guest instruction happens after it.
//!
//! An image that replaces another one takes the same way; what the other knew, it need not find out ([`restart`]).
#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod console;
mod control;
mod end;
mod events;
mod executive;
mod figures;
mod freeze;
mod guest;
mod health;
mod info;
mod instance;
mod ledger;
mod panic;
mod pci;
mod places;
mod processors;
mod restart;
mod selftest;
mod start;
mod storm;
mod task;
mod timeline;
mod update;
mod virt;
mod watching;

use units::PhysAddr;

/// Who started this image.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A boot loader.
    Loader {
        /// The magic number of the protocol that it speaks.
        protocol: u32,
        /// Where what it left lies.
        start_info: PhysAddr,
    },
    /// The image that ran before.
    Predecessor {
        /// Where its hand-over record lies.
        record: PhysAddr,
    },
    /// The image that runs, which may replace itself by this one.
    Judge {
        /// Where its hand-over record lies.
        record: PhysAddr,
        /// Where the way back is.
        page: u64,
    },
}

/// First safe code: on the boot stack, on the boot page tables, one processor, interrupts off. The image's first instruction was
/// at `entered_at`, in ticks of the time stamp counter.
fn main(source: Source, entered_at: u64) -> ! {
    timeline::start(entered_at);
    // Apart from the other way, whose large values would take half of the boot stack.
    if let Source::Judge { record, page } = source {
        update::candidate::prepare(record, page, entered_at);
    }
    start::start(source, entered_at)
}
