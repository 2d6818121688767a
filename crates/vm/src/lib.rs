// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's machine: what a virtual processor can meet outside itself.
//!
//! The hypervisor turns a processor's exit into an [`exit::Exit`]; this crate answers it. Nothing here knows which
//! virtualization extension runs the guest, touches hardware or needs `unsafe`: a whole machine can be built, driven
//! and fuzzed on a laptop.
//!
//! | module | what |
//! |---|---|
//! | [`addr`], [`memory`], [`layout`] | guest-physical addresses, access to guest memory, where everything is |
//! | [`exit`], [`vcpu`] | why a processor left the guest; the architectural state handlers may read and change |
//! | [`devices`] | local APIC, IOAPIC, UART, clock, PCI host bridge, pvpanic, power, debug exit |
//! | [`cpuid`], [`msr`] | what the guest is told of its processor, as pure tables |
//! | [`kvmclock`], [`steal_time`] | what the guest is told of time, in its own memory |
//! | [`loader`], [`acpi`], [`reset_vector`] | how a kernel is put into memory, and what it finds of the machine there |
#![no_std]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(any(test, feature = "testing"))]
extern crate std;

pub mod acpi;
pub mod addr;
pub mod cpuid;
pub mod cr4;
pub mod devices;
pub mod emulate;
pub mod exit;
pub mod instruction;
pub mod kvmclock;
pub mod layout;
pub mod loader;
pub mod machine;
pub mod memory;
pub mod msr;
pub mod reset_vector;
pub mod steal_time;
pub mod vcpu;
pub mod walk;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
