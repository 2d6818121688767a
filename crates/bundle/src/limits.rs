// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits on the content of a bundle.

/// Guests.
pub const GUESTS: usize = 64;
/// Files.
pub const FILES: usize = 1024;
/// Bytes of an entry's name.
pub const FILE_NAME_BYTES: usize = 255;
/// Bytes of a guest's name: letters, digits, `-`, `_` and `.`.
pub const GUEST_NAME_BYTES: usize = 32;
/// Bytes of a guest's command line.
pub const CMDLINE_BYTES: usize = 4095;
/// Keys that a host trusts.
pub const TRUSTED_KEYS: usize = 16;
/// Keys of the control channel.
pub const CONTROL_KEYS: usize = 16;
/// Guests that may send requests to the host over their sockets.
pub const CONTROL_GUESTS: usize = 8;
/// Modules of one guest.
pub const MODULES: usize = 16;
/// vCPUs of one guest.
pub const VCPUS: u32 = 512;
/// The largest weight of a guest; the least is 1.
pub const WEIGHT_MOST: u32 = 1024;
/// The largest upper limit of a guest, in percent of one CPU's time: that of all its vCPUs.
pub const CAP_MOST: u32 = 100 * VCPUS;
/// The longest that a vCPU may spin with interrupts off before the guest counts as hung, in seconds.
pub const HUNG_MOST_S: u32 = 3600;
/// PCI functions of the host that one guest gets.
pub const FUNCTIONS: usize = 16;
/// Virtual functions of one of them: functions 1 to 7 of a device.
pub const VIRTUAL_FUNCTIONS: u8 = 7;
/// Bytes of the selector of such a function.
pub const SELECTOR_BYTES: usize = 64;
/// The highest global system interrupt of a function's line: 16 I/O APICs of 256 inputs.
pub const GSI_MOST: u32 = 4095;
/// Networks.
pub const NETWORKS: usize = 64;
/// Bytes of a network's name: letters, digits, `-`, `_` and `.`.
pub const NETWORK_NAME_BYTES: usize = 32;
/// Network devices of one guest.
pub const NICS: usize = 8;
/// Network devices on one network.
pub const PORTS: usize = 64;
/// Pairs of queues of one network device: one to receive, one to send.
pub const QUEUE_PAIRS: u16 = 16;
/// VLANs of one network device.
pub const VLANS: usize = 64;
/// The highest number of a VLAN (IEEE 802.1Q-2018, table 9-2).
pub const VLAN_MOST: u16 = 4094;
/// The least and the most bytes of a packet (virtio 1.3, section 5.1.4.1: 68 is the least).
pub const MTU: core::ops::RangeInclusive<u16> = 68..=65_535;
/// The identifiers of guests' sockets (virtio 1.3, section 5.10.4): those around them are reserved.
pub const CIDS: core::ops::RangeInclusive<u32> = 3..=u32::MAX - 1;
/// Bytes of a guest's serial number.
pub const SERIAL_BYTES: usize = 255;
/// OEM strings of a guest.
pub const OEM_STRINGS: usize = 64;
/// Bytes of one of them.
pub const OEM_STRING_BYTES: usize = 4095;
/// Bytes of all of them.
pub const OEM_STRINGS_BYTES: usize = 8192;
/// Disks of one guest.
pub const DISKS: usize = 4;
/// Bytes of the name of a disk's export, and of its serial number.
pub const EXPORT_BYTES: usize = 128;
/// See [`EXPORT_BYTES`].
pub const DISK_SERIAL_BYTES: usize = 20;
/// The ports of servers that disks can be at: all but the one that stands for any.
pub const PORTS_OF_SERVERS: core::ops::RangeInclusive<u32> = 1..=u32::MAX - 1;
/// Seconds that a disk's request may take.
pub const DISK_TIMEOUTS_S: core::ops::RangeInclusive<u32> = 1..=3600;
/// Events that a guest may count, where they are named.
pub const PMU_EVENTS: usize = 16;
/// Memory of a guest is a multiple of this many bytes.
pub const MEMORY_GRANULE_BYTES: u64 = 1 << 20;
/// Memory on demand is a multiple of this many bytes.
pub const BLOCK_BYTES: u64 = 2 << 20;
/// The least memory of a guest in bytes.
pub const MEMORY_LEAST_BYTES: u64 = 1 << 20;
/// The most memory of a guest in bytes: what 48 bits address, halved for device holes.
pub const MEMORY_MOST_BYTES: u64 = 1 << 47;
/// Bytes of the manifest entry.
pub const MANIFEST_BYTES: usize = 1 << 20;
