// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operator's tool as a library, which tests, lab and benches reuse.
//!
//! | module | responsibility |
//! |---|---|
//! | [`config`], [`bundle`] | `host.toml`, and the bundle made from it |
//! | [`image`], [`keys`] | images with their seals, as a Linux kernel or on a disc that boots by itself; the keys they are signed with |
//! | [`running`], [`connection`], [`client`] | running hosts by their names, lines to hosts, and a client of one |
//! | [`dump`] | a guest's memory and registers as a core file |
//! | [`save`], [`saved`] | a guest that is saved in a file, and goes on from there |
//! | [`symbols`] | addresses in the host's log to functions and lines |
//! | [`profile`] | samples of the hypervisor itself, by stack, as a flame graph |
//! | [`pcapng`] | frames between guests as a file for Wireshark |
//! | [`timeline`] | the phases of a boot and their times, as bars, a page, a trace |
//! | [`top`] | the use of a host's CPUs and its guests between two readings, and a terminal's picture of it |
//! | [`options`] | the host's command line, checked before a host boots with it |
//! | [`consent`] | the question before an order that ends guests |
//! | [`program`], [`output`] | a program's panics, errors and exit status; its standard output |
//! | [`paths`], [`size`], [`suggest`] | default paths, sizes of memory, suggestions for misspelt words |
//! | [`args`], [`commands`] | the command line |
#![warn(missing_docs)]

pub mod args;
pub mod bundle;
pub mod client;
pub mod clock;
pub mod commands;
pub mod config;
pub mod connection;
pub mod consent;
mod disk_boot;
pub mod drivers;
pub mod dump;
pub mod image;
pub mod keys;
pub mod migrate;
pub mod options;
pub mod output;
pub mod paths;
pub mod pcapng;
pub mod profile;
pub mod program;
pub mod running;
pub mod save;
pub mod saved;
pub mod size;
pub mod suggest;
pub mod symbols;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod timeline;
pub mod top;
