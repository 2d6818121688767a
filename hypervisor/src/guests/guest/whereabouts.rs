// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPUs on which a guest's vCPUs are, and its home among them.

use alloc::vec::Vec;

use sched::Whereabouts;

use super::Guest;
use crate::arch::percpu::{self, BOOT_CPU};

impl Guest {
    /// The CPU that starts it and carries out its orders.
    pub fn home(&self) -> u32 {
        self.home.now()
    }

    /// Another CPU is its home from now on. For the one that was.
    pub fn move_home(&self, cpu: u32) {
        self.home.move_to(cpu);
        percpu::wake(cpu);
    }

    /// The CPU to which a virtual one belongs: it is there whenever that is online and has room.
    pub fn own_cpu(&self, vcpu: usize) -> u32 {
        self.own.get(vcpu).copied().unwrap_or(BOOT_CPU)
    }

    /// The CPU that holds a virtual one.
    pub fn cpu_of(&self, vcpu: usize) -> u32 {
        self.placement.get(vcpu).map_or(BOOT_CPU, Whereabouts::now)
    }

    /// The same for a sender that has just left a message for it, and is about to notify that CPU.
    #[inline]
    pub fn cpu_to_tell(&self, vcpu: usize) -> u32 {
        self.placement.get(vcpu).map_or(BOOT_CPU, Whereabouts::after_message)
    }

    /// Returns the CPU of each vCPU.
    pub fn cpus(&self) -> Vec<u32> {
        (0..self.placement.len()).map(|vcpu| self.cpu_of(vcpu)).collect()
    }

    /// A vCPU is on this CPU from now on.
    pub fn place(&self, vcpu: usize, cpu: u32) {
        if let Some(at) = self.placement.get(vcpu) {
            at.move_to(cpu);
        }
    }

    /// Another image has found this place for a vCPU, and had it on that one. Before anybody runs it.
    pub fn set_placement(&mut self, vcpu: usize, own: u32, at: u32) {
        if let (Some(belongs), Some(place)) = (self.own.get_mut(vcpu), self.placement.get(vcpu)) {
            *belongs = own;
            place.move_to(at);
        }
    }
}
