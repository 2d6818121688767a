// SPDX-License-Identifier: MIT OR Apache-2.0
//! Feature bits of network devices (section 5.1.3).

pub const CSUM: u64 = 1 << 0;
pub const GUEST_CSUM: u64 = 1 << 1;
pub const MTU: u64 = 1 << 3;
pub const MAC: u64 = 1 << 5;
pub const GUEST_TSO4: u64 = 1 << 7;
pub const GUEST_TSO6: u64 = 1 << 8;
pub const GUEST_ECN: u64 = 1 << 9;
pub const HOST_TSO4: u64 = 1 << 11;
pub const HOST_TSO6: u64 = 1 << 12;
pub const HOST_ECN: u64 = 1 << 13;
pub const MRG_RXBUF: u64 = 1 << 15;
pub const STATUS: u64 = 1 << 16;
pub const CTRL_VQ: u64 = 1 << 17;
pub const MQ: u64 = 1 << 22;

/// Those of every device.
pub const OFFERED: u64 = CSUM
    | GUEST_CSUM
    | MTU
    | MAC
    | GUEST_TSO4
    | GUEST_TSO6
    | GUEST_ECN
    | HOST_TSO4
    | HOST_TSO6
    | HOST_ECN
    | MRG_RXBUF
    | STATUS;
