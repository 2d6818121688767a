// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine: the only module with `unsafe` code. Its interface to the rest of the hypervisor is safe.
//!
//! | module | touches |
//! |---|---|
//! | [`boot`], [`image`] | the entry point, the first page tables; where the image lies |
//! | [`cpu`] | single instructions: HLT, RDTSC, MSRs, flags |
//! | [`address`], [`memory`], [`lock`], [`stack`], [`heap`] | where everything is mapped, the page tables, stacks, the allocator |
//! | [`trap`], [`descriptor`] | IDT and stubs, GDT and TSS |
//! | [`cpu_local`] | per-CPU variables, found through GS |
//! | [`percpu`], [`figures`] | per-CPU structures; how other CPUs read a CPU's counters |
//! | [`apic`], [`ioapic`], [`timer`], [`clock`] | interrupts, the CPU's timer, the wall clock |
//! | [`hooks`] | nothing: the calls to the code above |
//! | [`fault`], `faults`, `edu` | fault points; in the test image, their effects on the machine, and a device that writes |
//! | [`port`], [`serial`], [`power`] | I/O ports, UARTs, power-off |
//! | [`pci`] | PCI configuration space |
//! | [`device_memory`], [`device_vectors`], [`line_inputs`] | address ranges and interrupts of PCI functions that guests have |
//! | [`iommu`] | IOMMUs: their registers, the memory of their tables |
//! | [`smp`], [`switch_pages`] | starting the other CPUs; leaving for the next image |
//! | [`ending`] | stopping them, resting, pvpanic, the memory that outlasts a reset |
//! | [`watchdog`], [`sampling`] | an NMI by the HPET; samples for a profile |
//! | [`nmi`], [`strays`] | the chipset's reports of NMIs; NMIs and interrupts that no one claims |
//! | [`reminder`] | repetition of an interrupt that was not answered |
//! | [`guest_memory`], [`guest_tables`] | a guest's memory, and the tables that show it to the guest |
//! | [`virt`], [`unavailable`] | the virtualization extension, whichever vendor's; why guests cannot run |
//! | [`svm`], [`vmx`] | AMD's, Intel's |
//! | [`extended`] | a guest's registers that stay in the CPU across exits |
//! | [`counters`] | the CPU's performance counters, for guests |
//! | [`probe`], [`speculation`] | MSRs that may be refused; those that control speculation |
//! | [`sha256`] | XMM registers, for an image's digest |
//! | [`vector`] | the vector registers of the vCPU that is loaded, for emulated instructions |
#![allow(unsafe_code, reason = "the machine is driven here, and nowhere else")]

pub mod address;
pub mod apic;
pub mod boot;
pub mod calls;
pub mod clock;
pub mod counters;
pub mod cpu;
pub mod cpu_local;
pub mod descriptor;
pub mod device_memory;
pub mod device_vectors;
pub mod dma_memory;
#[cfg(feature = "faults")]
pub mod edu;
pub mod ending;
pub mod entropy;
mod extended;
pub mod fault;
#[cfg(feature = "faults")]
pub mod faults;
pub mod figures;
pub mod guest_memory;
mod guest_tables;
pub mod heap;
pub mod hooks;
pub mod image;
pub mod ioapic;
pub mod iommu;
pub mod line_inputs;
pub mod lock;
pub mod machine_check;
pub mod memory;
pub mod nmi;
pub mod pci;
pub mod percpu;
pub mod port;
pub mod power;
pub mod probe;
pub mod reminder;
pub mod sampling;
pub mod serial;
pub mod sha256;
pub mod smp;
pub mod speculation;
pub mod stack;
pub mod strays;
mod svm;
pub mod switch_pages;
pub mod timer;
pub mod trap;
pub mod tsc;
pub mod unavailable;
pub mod vector;
pub mod virt;
#[cfg(feature = "intel")]
mod vmx;
pub mod watchdog;
