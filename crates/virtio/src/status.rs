// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bits of the device status field (section 2.1).

/// The guest has found the device.
pub const ACKNOWLEDGE: u8 = 1;
/// The guest has a driver for it.
pub const DRIVER: u8 = 2;
/// The driver has set the device up.
pub const DRIVER_OK: u8 = 4;
/// The driver has chosen features, and the device accepts them.
pub const FEATURES_OK: u8 = 8;
/// The device has met an error from which only a reset leads.
pub const DEVICE_NEEDS_RESET: u8 = 64;
/// The driver has given the device up.
pub const FAILED: u8 = 128;
/// The bits that a driver sets.
pub const DRIVERS: u8 = ACKNOWLEDGE | DRIVER | DRIVER_OK | FEATURES_OK | FAILED;
