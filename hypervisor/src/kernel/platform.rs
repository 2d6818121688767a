// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as the loader and the firmware describe it, and what the operator wants of it: plain data, read once at
//! boot.

use boot::BootInfo;
use boot::options::Options;
use firmware::Tables;
use spin::{Mutex, Once};

/// The loader's start info and the operator's options; of an image that replaces another, as that one handed them over.
pub static BOOT: Once<(BootInfo, Options)> = Once::new();
/// The firmware's tables.
pub static FIRMWARE: Mutex<Tables> = Mutex::new(Tables::new());
