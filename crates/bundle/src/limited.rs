// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields that version 12 of the manifest adds: limits of disks.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::disk::DiskLimits;
use crate::guest::GuestConfig;
use crate::manifest::Manifest;

/// These fields, behind those of the versions before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limited {
    /// [`crate::DiskConfig::limits`] of each disk of each guest.
    pub disks: Vec<Vec<DiskLimits>>,
}

impl GuestConfig {
    pub(crate) fn disk_limits(&self) -> Vec<DiskLimits> {
        self.disks.iter().map(|disk| disk.limits).collect()
    }

    pub(crate) fn has_disk_limits(&self) -> bool {
        self.disks.iter().any(|disk| disk.limits != DiskLimits::default())
    }
}

impl Manifest {
    pub(crate) fn limited(&self) -> Limited {
        Limited { disks: self.guests.iter().map(GuestConfig::disk_limits).collect() }
    }

    /// Returns the manifest with these limits; `None` if they are of other disks.
    pub(crate) fn with_limited(mut self, limited: Limited) -> Option<Self> {
        if limited.disks.len() != self.guests.len() {
            return None;
        }
        for (guest, limits) in self.guests.iter_mut().zip(limited.disks) {
            if guest.disks.len() != limits.len() {
                return None;
            }
            guest.disks.iter_mut().zip(limits).for_each(|(disk, limits)| disk.limits = limits);
        }
        Some(self)
    }
}
