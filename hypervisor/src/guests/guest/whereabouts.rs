// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPUs on which a guest's vCPUs are, and its home among them.

use alloc::vec::Vec;

use sched::Whereabouts;

use super::Guest;
use crate::arch::percpu::{self, BOOT_PROCESSOR};

impl Guest {
    /// The processor that starts it and carries out its orders.
    pub fn home(&self) -> u32 {
        self.home.now()
    }

    /// Another processor is its home from now on. For the one that was.
    pub fn move_home(&self, processor: u32) {
        self.home.move_to(processor);
        percpu::wake(processor);
    }

    /// The processor to which a virtual one belongs: it is there whenever that is online and has room.
    pub fn own_processor(&self, vcpu: usize) -> u32 {
        self.own.get(vcpu).copied().unwrap_or(BOOT_PROCESSOR)
    }

    /// The processor that holds a virtual one.
    pub fn processor_of(&self, vcpu: usize) -> u32 {
        self.placement.get(vcpu).map_or(BOOT_PROCESSOR, Whereabouts::now)
    }

    /// The same for one who has just left a message for it, and is about to tell that processor.
    #[inline]
    pub fn processor_to_tell(&self, vcpu: usize) -> u32 {
        self.placement.get(vcpu).map_or(BOOT_PROCESSOR, Whereabouts::after_message)
    }

    /// Where all virtual processors are.
    pub fn processors(&self) -> Vec<u32> {
        (0..self.placement.len()).map(|vcpu| self.processor_of(vcpu)).collect()
    }

    /// A virtual processor is on this processor from now on.
    pub fn place(&self, vcpu: usize, processor: u32) {
        if let Some(at) = self.placement.get(vcpu) {
            at.move_to(processor);
        }
    }

    /// Another image has found this place for a virtual processor, and had it on that one. Before anybody runs it.
    pub fn belongs(&mut self, vcpu: usize, own: u32, at: u32) {
        if let (Some(belongs), Some(place)) = (self.own.get_mut(vcpu), self.placement.get(vcpu)) {
            *belongs = own;
            place.move_to(at);
        }
    }
}
