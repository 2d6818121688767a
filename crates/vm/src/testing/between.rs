// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way of a frame from one guest's memory to another's.

use std::vec;

use super::FakeMemory;
use crate::addr::Gpa;
use crate::devices::virtio::{Outside, Source, Unreachable};
use crate::memory::GuestMemory as _;

/// The memories of a sender and of a receiver, between which frames are copied.
pub struct Between<'a> {
    /// The sender's.
    pub from: &'a FakeMemory,
    /// The receiver's.
    pub to: &'a FakeMemory,
}

impl Source for Between<'_> {
    fn read(&self, from: u64, into: &mut [u8]) -> Result<(), Outside> {
        let bytes = into.len();
        self.from.read(Gpa(from), into).map_err(|_| Outside { address: from, bytes })
    }

    fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), Unreachable> {
        let mut all = vec![0; bytes];
        self.read(from, &mut all).map_err(Unreachable::Sender)?;
        let written = self.to.write(Gpa(to), &all);
        written.map_err(|_| Unreachable::Receiver(Outside { address: to, bytes }))
    }
}
