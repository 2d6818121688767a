// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fields that version 11 of the manifest adds: what guests see of their machine by its tables.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::cpu::CpuModel;
use crate::manifest::Manifest;
use crate::smbios::SmbiosConfig;

/// These fields, behind those of the versions before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tables {
    /// [`crate::GuestConfig::smbios`] of each guest.
    pub smbios: Vec<String>,
    /// [`crate::GuestConfig::cpu`] of each guest, by its number.
    pub cpus: Vec<u32>,
}

impl Manifest {
    pub(crate) fn tables(&self) -> Tables {
        Tables {
            smbios: self.guests.iter().map(|guest| guest.smbios.0.clone()).collect(),
            cpus: self.guests.iter().map(|guest| guest.cpu.number()).collect(),
        }
    }

    /// Returns the manifest with these; `None` if they are of other guests, or a CPU model is unknown.
    pub(crate) fn with_tables(mut self, tables: Tables) -> Option<Self> {
        if [tables.smbios.len(), tables.cpus.len()] != [self.guests.len(); 2] {
            return None;
        }
        for (guest, (text, cpu)) in self.guests.iter_mut().zip(tables.smbios.into_iter().zip(tables.cpus)) {
            guest.smbios = SmbiosConfig(text);
            guest.cpu = CpuModel::from_number(cpu)?;
        }
        Some(self)
    }
}
