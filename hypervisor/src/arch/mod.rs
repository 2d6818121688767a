// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine: the only room with `unsafe` in it. What it offers to the rest of the hypervisor is safe.
//!
//! | module | touches |
//! |---|---|
//! | [`boot`] | the entry point, the first page tables |
//! | [`cpu`] | single instructions: HLT, RDTSC, MSRs, flags |
//! | [`address`], [`memory`], [`lock`], [`stack`], [`heap`] | where everything is mapped, the page tables, stacks, the allocator |
//! | [`trap`], [`descriptor`] | IDT and stubs, GDT and TSS |
//! | [`percpu`], [`figures`] | the data of each CPU, found through GS; how other CPUs read its counters |
//! | [`apic`], [`ioapic`], [`timer`], [`clock`] | interrupts, the CPU's timer, the wall clock |
//! | [`hooks`] | nothing: the calls to the code above |
//! | [`port`], [`serial`], [`power`] | I/O ports, UARTs, power-off |
//! | [`pci`] | PCI configuration space |
//! | [`smp`], [`switch_pages`] | starting the other CPUs; leaving for the next image |
//! | [`ending`] | stopping them, resting, pvpanic, the memory that outlasts a reset |
//! | [`watchdog`], [`sampling`] | an NMI by the HPET; samples for a profile |
//! | [`nmi`], [`strays`] | what the chipset reports of NMIs; NMIs and interrupts that no one claims |
//! | [`reminder`] | when an interrupt that was not answered is sent once more |
//! | [`guest_memory`], [`virt`], [`svm`] | a guest's memory; the trait of a virtualization extension; AMD's |
//! | [`counters`] | the CPU's performance counters, for guests |
//! | [`probe`], [`speculation`] | MSRs that may be refused; those that control speculation |
//! | [`sha256`] | XMM registers, for an image's digest |
//! | [`vector`] | the vector registers of the vCPU that is loaded, for emulated instructions |
#![allow(unsafe_code, reason = "the machine is driven here, and nowhere else")]

pub mod address;
pub mod apic;
pub mod boot;
pub mod clock;
pub mod counters;
pub mod cpu;
pub mod descriptor;
pub mod ending;
pub mod figures;
pub mod guest_memory;
pub mod heap;
pub mod hooks;
pub mod ioapic;
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
pub mod svm;
pub mod switch_pages;
pub mod timer;
pub mod trap;
pub mod tsc;
pub mod vector;
pub mod virt;
pub mod watchdog;
