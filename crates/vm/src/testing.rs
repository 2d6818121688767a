// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fakes for tests: memory that is a vector, a CPU and a hypervisor that are plain data.

mod between;
mod devices;
mod events;
mod host;
mod memory;
mod physical;
mod vcpu;
mod virtio;

pub use between::Between;
pub use devices::{FakeWorld, Probe};
pub use host::FakeHost;
pub use memory::FakeMemory;
pub use physical::{FakeAddressSpace, FakePhysical};
pub use vcpu::FakeVcpu;
pub use virtio::VirtioDriver;
