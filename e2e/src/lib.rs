// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole machines under test: Baton's image, the tool and real guests, in an emulator.
//!
//! | module | contents |
//! |---|---|
//! | [`place`] | this machine's equipment: emulators, kernels, guests |
//! | [`recipe`] | a host and its guests, in a few words; made into a bundle and started |
//! | [`host`] | a running host: wait for its output, give it orders; bounded in time |
//! | [`stock`] | stock Linux with drivers, as a guest and without Baton |
//! | [`transcript`] | all output of a host and its guests |
//! | [`dmesg`] | parts of a Linux guest's messages that report a fault |
//! | [`alone`] | a test guest without Baton |
//! | [`bare`] | a host without the broker, for those that speak no protocol |
//! | [`gdb`], [`crash`] | the output of debuggers on guests' core files |
//! | [`code`] | guests of a few bytes |
//! | [`frames`] | frames that no sender of ours would send |
//! | [`tool`] | the tool, as a program |
//! | [`serial`] | a host at a serial port of this machine, and a terminal server |
//! | [`old_image`] | images with notes that claim less than the images support |
//! | [`lanes`] | emulators at a time |
//! | [`relay`] | a host's control line, shared by the tools of several releases |
//!
//! The tests are in `tests/boots`: one boot each. A boot may take [`host::BOOT_LIMIT`]; then, and when its test ends,
//! the emulator is ended by its own process id.
#![warn(missing_docs)]

pub mod alone;
pub mod bare;
pub mod code;
pub mod crash;
pub mod dmesg;
pub mod frames;
pub mod gdb;
pub mod guest_tool;
pub mod host;
pub mod keyboard;
pub mod lanes;
pub mod old_image;
pub mod place;
pub mod recipe;
pub mod relay;
pub mod serial;
pub mod small_image;
pub mod stock;
pub mod tool;
pub mod transcript;
