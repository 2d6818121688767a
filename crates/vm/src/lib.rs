// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's machine: all that a vCPU can meet outside itself.
//!
//! The hypervisor turns a CPU's exit into an [`exit::Exit`]; this crate answers it. Nothing here knows which
//! virtualization extension runs the guest, touches hardware or needs `unsafe`: a whole machine can be built, driven
//! and fuzzed on a laptop.
//!
//! | module | area | contents |
//! |---|---|---|
//! | [`cpu`] | the CPU model | the CPU that the guest is shown: CPUID, MSRs, clocks |
//! | [`platform`] | the platform | where everything is, ACPI tables, loaders |
//! | [`devices`] | devices | the bus, PCI, and each device; the local APIC |
//! | [`machine`] | the exit loop | the answer to every exit, emulation, interrupts, saved state |
//! | [`addr`], [`memory`], [`exit`], [`vcpu`] | all | addresses, guest memory, why a vCPU left, its architectural state |
#![no_std]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(any(test, feature = "testing"))]
extern crate std;

pub mod addr;
pub mod cpu;
pub mod devices;
pub mod exit;
pub mod machine;
pub mod memory;
pub mod platform;
pub mod vcpu;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
