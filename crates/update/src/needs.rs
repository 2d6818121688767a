// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requirements of a restart or an update, checked before anything stops, so that it is refused while guests run:
//! memory, and a hand-over block that everything fits into.

/// The purpose for which a new image prepares itself while the old one owns the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Bytes of its heap.
    pub heap_bytes: u64,
    /// CPUs that take part.
    pub cpus: u64,
    /// Guests, and vCPUs of all of them.
    pub guests: u64,
    /// vCPUs.
    pub vcpus: u64,
}

impl Needs {
    /// Returns the number of bytes of staging memory: tables, heap, stacks, and the new image's side of each guest.
    #[must_use]
    pub fn staging_bytes(&self) -> u64 {
        const BASE_BYTES: u64 = 2 << 20;
        const CPU_BYTES: u64 = 128 << 10;
        const VCPU_BYTES: u64 = 32 << 10;
        const GUEST_BYTES: u64 = 64 << 10;
        let own = self.heap_bytes + BASE_BYTES + self.cpus * CPU_BYTES;
        own + self.vcpus * VCPU_BYTES + self.guests * GUEST_BYTES
    }
}

/// Returns how many mailboxes the switch pages need for CPUs with these numbers: one for each number, which is its
/// index.
pub fn mailboxes(cpus: impl Iterator<Item = u32>) -> usize {
    cpus.map(|index| index as usize + 1).max().unwrap_or(1)
}

/// Returns whether a hand-over block of `bytes` still fits into `most` when it is written for good. It may grow by
/// `growth` until then: memory may be found damaged.
#[must_use]
pub fn will_fit(bytes: usize, growth: usize, most: usize) -> bool {
    bytes.saturating_add(growth) <= most
}

/// Returns the version of the pages between the images in which they meet: the newest that both know.
#[must_use]
pub fn common_trial_version(of_next: u32) -> u32 {
    of_next.min(crate::trial::VERSION)
}
