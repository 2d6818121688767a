// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPUs that hold a guest's vCPUs, and its home among them.

use alloc::vec::Vec;

use sched::CpuLocation;

use super::Guest;
use crate::arch::percpu::{self, BOOT_CPU};

impl Guest {
    /// Returns the CPU that starts it and carries out its orders.
    pub fn home(&self) -> u32 {
        self.home.now()
    }

    /// Makes another CPU its home. For the one that was.
    pub fn move_home(&self, cpu: u32) {
        self.home.move_to(cpu);
        percpu::wake(cpu);
    }

    /// Returns the own CPU of a vCPU: the vCPU is there whenever that CPU is online and has room.
    pub fn own_cpu(&self, vcpu: usize) -> u32 {
        self.own.get(vcpu).copied().unwrap_or(BOOT_CPU)
    }

    /// Returns the CPU that holds a vCPU.
    pub fn cpu_of(&self, vcpu: usize) -> u32 {
        self.placement.get(vcpu).map_or(BOOT_CPU, CpuLocation::now)
    }

    /// Returns the CPU to notify, for a sender that has just left a message for the vCPU.
    #[inline]
    pub fn cpu_to_notify(&self, vcpu: usize) -> u32 {
        self.placement.get(vcpu).map_or(BOOT_CPU, CpuLocation::after_message)
    }

    /// Returns the CPU of each vCPU.
    pub fn cpus(&self) -> Vec<u32> {
        (0..self.placement.len()).map(|vcpu| self.cpu_of(vcpu)).collect()
    }

    /// Notes that a vCPU is on this CPU from now on.
    pub fn place(&self, vcpu: usize, cpu: u32) {
        if let Some(at) = self.placement.get(vcpu) {
            at.move_to(cpu);
        }
    }

    /// Sets the own CPU of a vCPU, and the CPU that holds it, as another image has chosen them. Before the vCPU runs.
    pub fn set_placement(&mut self, vcpu: usize, own: u32, at: u32) {
        if let (Some(belongs), Some(place)) = (self.own.get_mut(vcpu), self.placement.get(vcpu)) {
            *belongs = own;
            place.move_to(at);
        }
    }
}
