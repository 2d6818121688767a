// SPDX-License-Identifier: MIT OR Apache-2.0
//! A number by which descriptions of guests are compared.

use alloc::vec::Vec;

use serde::Serialize;

use crate::guest::GuestConfig;
use crate::oldest::OldGuest;

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x100_0000_01b3;

impl GuestConfig {
    /// Returns a number that differs where the bundle's entry for a guest differs: FNV-1a over its encoding as of
    /// version 4 of the manifest, and over each entry that is newer and stated, with its name. So it is the number that
    /// release 0.1.0 computes where that release has all entries, and stays the same where a later one adds some.
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.add_bytes(&postcard::to_allocvec(&OldGuest::lossy(self)).unwrap_or_default());
        digest.add("functions", &self.functions);
        digest.add("virtio", &self.virtio);
        digest.add("nics", &self.nics);
        digest.add("vsock", &self.vsock);
        digest.add("cpu", &self.cpu);
        digest.add("smbios", &self.smbios);
        digest.add("disks", &self.disks);
        digest.add("paravirtual", &self.is_paravirtual);
        digest.add("assured", &self.assured_bytes);
        digest.value()
    }
}

/// FNV-1a, 64 bits.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(OFFSET)
    }
}

impl Digest {
    /// Adds these bytes.
    fn add_bytes(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    }

    /// Adds an entry and its name, unless it has its default.
    fn add<T: Serialize + Default + PartialEq>(&mut self, name: &str, entry: &T) {
        if *entry == T::default() {
            return;
        }
        let mut bytes = Vec::from(name);
        // All kinds of values that a manifest has are encoded.
        let _ = cbor::append(entry, &mut bytes);
        self.add_bytes(&bytes);
    }

    /// Returns the number.
    fn value(&self) -> u64 {
        self.0
    }
}
