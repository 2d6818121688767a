// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers.
#![allow(missing_docs)]

pub const LEGACY_SELECT: u32 = 0xc001_0000;
pub const LEGACY_COUNTER: u32 = 0xc001_0004;
pub const SELECT: u32 = 0xc001_0200;
pub const COUNTER: u32 = 0xc001_0201;
pub const GLOBAL_STATUS: u32 = 0xc000_0300;
pub const GLOBAL_CONTROL: u32 = 0xc000_0301;
pub const GLOBAL_CLEAR: u32 = 0xc000_0302;
