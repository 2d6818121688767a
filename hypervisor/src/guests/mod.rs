// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests and their vCPUs: from loading a guest to its end, and the exit loop of each CPU.
//!
//! | module | subject |
//! |---|---|
//! | [`configuration`] | the host's configuration and its files |
//! | [`slots`] | the guests that there are |
//! | [`guest`], [`console`] | a guest: its status, its orders, its console |
//! | [`instance`] | one run of a guest, shared by its vCPUs |
//! | [`task`] | a vCPU: the loop from entry to exit and back |
//! | [`executive`] | the vCPUs of one CPU, and its work for the guests that have it as their home |
//! | [`placement`] | sending vCPUs to CPUs |
//! | [`watching`], [`health`] | vCPUs that spin; the health of a guest's kernel, and the policy that applies |
//! | [`freeze`], [`leases`] | paused guests: memory and registers for a reader, and for how long it has them |
//! | [`staged`] | a guest that is to go on from what was saved of it |
//! | [`machine_checks`] | errors of the hardware, and the guests with damaged memory |
//! | [`assigned`], [`device_interrupts`] | physical PCI functions that guests have, and their interrupts |
//! | [`networks`], [`sockets`], [`forwarding`] | networks and sockets between guests, and their common part |
//! | [`disks`] | disks behind servers in other guests |
//! | [`pci`] | the host's PCI functions, probed while guests run |
//! | [`virtio`] | virtio devices that the host gives to guests |
//! | [`power_button`] | pressing a guest's power button |
//! | [`events`] | events of guests and host, for the control channel |
//! | `faults` | in the test image, a device that writes to memory |

pub mod assigned;
pub mod balloon;
pub mod configuration;
pub mod console;
pub mod control_keys;
pub mod device_interrupts;
pub mod disks;
pub mod events;
pub mod executive;
#[cfg(feature = "faults")]
pub mod faults;
pub mod forwarding;
pub mod freeze;
pub mod guest;
pub mod health;
pub mod instance;
pub mod leases;
pub mod machine_checks;
pub mod networks;
pub mod pci;
pub mod placement;
pub mod power_button;
pub mod slots;
pub mod sockets;
pub mod staged;
pub mod task;
pub mod virtio;
pub mod watching;
