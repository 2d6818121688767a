// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bodies of the fuzz targets: each takes any bytes and must neither panic nor find one of its own assertions wrong.
//!
//! They are plain functions, so that libFuzzer runs them (`libfuzzer/`) and so does an ordinary test
//! (`tests/targets.rs`). Where checksums or magic numbers would stop nearly every input at the door, a body builds a
//! frame in which those are right and lets the input fill in the rest; the first byte chooses.
//!
//! | module | input |
//! |---|---|
//! | `files` | bundles, manifests, kernels |
//! | `boot_time` | boot information of three loader protocols, options, ACPI tables, hand-over records and images |
//! | `tables` | frames, page tables, the log, the timeline |
//! | `messages` | the wire |
//! | `sessions` | requests at a host that takes signed ones only |
//! | `serial` | the registers of a UART |
//! | `functions` | the configuration space of PCI functions |
//! | `iommus` | ACPI tables that describe IOMMUs |
//! | `endings` | the memory that a host leaves, the bytes it receives after its end |
//! | `instructions` | instruction fetch, decoding and emulation |
//! | `devices`, `device_states` | a device's registers; the state it is restored from |
//! | `assigned` | physical functions that belong to a guest, the hardware and the guest |
//! | `networks` | guests that send each other frames over the switch |
//! | `sockets` | guests that send each other packets of virtio sockets |
//! | `guest_states` | a whole guest that another image hands over |
//! | `counters` | a guest's performance counters |
//! | `virtio` | virtqueues, and drivers of virtio devices |
//! | `disks` | NBD servers that lie, and drivers of virtio disks |
//! | `machine` | a whole machine's exits |
//! | `vmx` | capability MSRs, exits and entries of a CPU with VMX |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod archive;
mod assigned;
mod balloon;
mod boot_time;
mod counters;
mod device_states;
mod devices;
mod disks;
mod endings;
mod files;
mod functions;
mod guest_states;
mod images;
mod input;
mod instructions;
mod iommus;
mod kernels;
mod machine;
mod messages;
mod networks;
mod serial;
mod sessions;
mod sockets;
mod tables;
mod virtio;
mod vmx;

pub use self::virtio::{virtio_console, virtio_rng, virtqueue};
pub use self::vmx::vmx;
pub use assigned::assigned;
pub use balloon::virtio_balloon;
pub use boot_time::{firmware, handover, linux, multiboot2, options, pvh};
pub use counters::counters;
pub use device_states::device_states;
pub use devices::devices;
pub use disks::{nbd, virtio_blk};
pub use endings::{epitaph, questions};
pub use files::{bundle, loaders, manifest};
pub use functions::pci;
pub use guest_states::guest_states;
pub use images::seal;
pub use input::Input;
pub use instructions::instruction;
pub use iommus::iommu_tables;
pub use machine::machine;
pub use messages::wire;
pub use networks::networks;
pub use serial::uart;
pub use sessions::sessions;
pub use sockets::sockets;
pub use tables::{frames, klog, klog_foreign, paging, timeline};

/// A target's body.
pub type Body = fn(&[u8]);

/// Every target with its name.
pub const TARGETS: [(&str, Body); 38] = [
    ("bundle", bundle),
    ("manifest", manifest),
    ("loaders", loaders),
    ("instruction", instruction),
    ("wire", wire),
    ("sessions", sessions),
    ("devices", devices),
    ("device_states", device_states),
    ("assigned", assigned),
    ("networks", networks),
    ("sockets", sockets),
    ("guest_states", guest_states),
    ("machine", machine),
    ("pvh", pvh),
    ("multiboot2", multiboot2),
    ("linux", linux),
    ("options", options),
    ("firmware", firmware),
    ("handover", handover),
    ("seal", seal),
    ("paging", paging),
    ("frames", frames),
    ("klog", klog),
    ("klog_foreign", klog_foreign),
    ("timeline", timeline),
    ("uart", uart),
    ("epitaph", epitaph),
    ("questions", questions),
    ("pci", pci),
    ("iommu_tables", iommu_tables),
    ("counters", counters),
    ("virtqueue", virtqueue),
    ("virtio_rng", virtio_rng),
    ("virtio_console", virtio_console),
    ("virtio_balloon", virtio_balloon),
    ("nbd", nbd),
    ("virtio_blk", virtio_blk),
    ("vmx", vmx),
];
