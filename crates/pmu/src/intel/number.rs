// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers.
#![allow(missing_docs)]

pub const COUNTER: u32 = 0xc1;
pub const SELECT: u32 = 0x186;
pub const FIXED_COUNTER: u32 = 0x309;
pub const CAPABILITIES: u32 = 0x345;
pub const FIXED_CONTROL: u32 = 0x38d;
pub const GLOBAL_STATUS: u32 = 0x38e;
pub const GLOBAL_CONTROL: u32 = 0x38f;
pub const GLOBAL_CLEAR: u32 = 0x390;
pub const FULL_WIDTH_COUNTER: u32 = 0x4c1;
