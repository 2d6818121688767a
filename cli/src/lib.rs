// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operator's tool as a library: what `baton` does, for its own tests and benches to reuse.
//!
//! | module | what |
//! |---|---|
//! | [`config`], [`bundle`] | `host.toml`, and the bundle made from it |
//! | [`image`], [`keys`] | images with their seals, as a Linux kernel or on a disc that boots by itself; the keys they are signed with |
//! | [`lab`] | Baton in an emulator: its lines with time stamps, its consoles, its control channel |
//! | [`client`] | a conversation with a running host |
//! | [`dump`] | a guest's memory and registers as a core file |
//! | [`symbols`] | addresses in the host's log to functions and lines |
//! | [`profile`] | samples of the hypervisor itself, by stack, as a flame graph |
//! | [`timeline`] | where a boot's time went, as bars, a page, a trace |
//! | [`bench`] | measurements: figures, goals, and the benches that make them |
//! | [`size`], [`suggest`] | small things |
//! | [`args`], [`commands`] | the command line |
#![warn(missing_docs)]

pub mod args;
pub mod bench;
pub mod bundle;
pub mod client;
pub mod commands;
pub mod config;
pub mod dump;
pub mod image;
pub mod keys;
pub mod lab;
pub mod profile;
pub mod size;
pub mod suggest;
pub mod symbols;
pub mod timeline;

/// The line by which the demo's guest shows that its userspace runs; printed by the guests' agent.
pub const GREETING: &str = "Hello from a guest of Baton";
