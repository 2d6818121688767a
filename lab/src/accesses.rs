// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes to registers while guests stand still in an update, by the emulator's trace of all accesses.
//!
//! The guest `edu` (`do=blackout`) reads its device all the time, and the test image reads the local APIC's interrupt
//! request registers in each blackout (`selftest=update:wait:interrupt`, in xAPIC mode). So both are in the trace:
//!
//! ```text
//!  … edu-mmio read │ edu-mmio read    interrupt requests … interrupt requests │ edu-mmio read …
//!                  └── the guest's last ───────── no write here ─────────────── first one ──┘
//! ```
//!
//! Everything between these two reads counts as written in the blackout. It begins some microseconds before the guest's
//! last instruction, and ends with the first access of the interrupt's handler.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, BufRead};
use std::ops::Range;
use std::path::Path;

/// QEMU's names for registers of AMD-Vi and VT-d.
const IOMMUS: [&str; 2] = ["amdvi-mmio", "intel_iommu"];
/// Its names for configuration space, by ports and by memory.
const CONFIGURATION: [&str; 3] = ["pci-conf-idx", "pci-conf-data", "pcie-mmcfg-mmio"];
/// Its name for the device's registers.
const DEVICE: &str = "edu-mmio";
/// Its name for the local APIC's, and where the interrupt request registers are (Intel SDM vol. 3, section 11.4.1).
const LOCAL_APIC: &str = "apic-msi";
const REQUESTS: Range<u64> = 0xfee0_0200..0xfee0_0280;
/// Where messages that pass an IOMMU go.
const MESSAGES: [&str; 2] = ["amd_iommu_ir", "vtd-ir"];
/// Registers of the device that only a guest writes: those that acknowledge, and those of a transfer.
const GUESTS_OWN: Range<u64> = 0x64..0xa0;
const DEVICE_BYTES: u64 = 1 << 20;

/// Returns the emulator's arguments for a trace in this file.
pub fn arguments(trace: &Path) -> Vec<OsString> {
    let events = ["memory_region_ops_read", "memory_region_ops_write"];
    let traced = events.into_iter().flat_map(|event| ["-trace".into(), event.into()]);
    traced.chain(["-D".into(), trace.into()]).collect()
}

/// Writes by QEMU's name of what was written.
pub type Writes = BTreeMap<String, u64>;

/// Writes to registers of IOMMUs, to configuration space, and to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// To registers of IOMMUs.
    pub iommus: u64,
    /// To configuration space.
    pub configuration: u64,
    /// To the device's registers.
    pub device: u64,
}

impl Counts {
    fn of(writes: &Writes) -> Self {
        let sum = |names: &[&str]| names.iter().filter_map(|name| writes.get(*name)).sum();
        Self { iommus: sum(&IOMMUS), configuration: sum(&CONFIGURATION), device: sum(&[DEVICE]) }
    }

    /// Returns all of them together.
    pub fn sum(self) -> u64 {
        self.iommus + self.configuration + self.device
    }

    /// Returns whether there is one of each kind.
    pub fn are_all_there(self) -> bool {
        self.iommus > 0 && self.configuration > 0 && self.device > 0
    }
}

/// One blackout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blackout {
    /// Everything that CPUs wrote.
    pub writes: Writes,
    /// Interrupts that passed an IOMMU.
    pub messages: u64,
    /// The guest itself wrote to its device behind its last read, or before the first one: the bounds are not exact,
    /// and this blackout shows nothing.
    pub has_guests_own: bool,
}

impl Blackout {
    /// Returns the writes to IOMMUs and devices.
    pub fn counts(&self) -> Counts {
        Counts::of(&self.writes)
    }
}

/// All accesses of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// The blackouts, in their order.
    pub blackouts: Vec<Blackout>,
    /// Writes at all other times.
    pub outside: Writes,
}

impl Accesses {
    /// Returns the writes to IOMMUs and devices at all other times: the control, since a trace that shows none there
    /// shows nothing.
    pub fn control(&self) -> Counts {
        Counts::of(&self.outside)
    }

    /// Ends what came since the guest's last read.
    fn close(&mut self, since: &mut Blackout, is_blackout: bool) {
        let since = std::mem::take(since);
        if is_blackout {
            self.blackouts.push(since);
        } else {
            since.writes.into_iter().for_each(|(name, count)| *self.outside.entry(name).or_default() += count);
        }
    }
}

/// Reads a trace.
///
/// # Errors
/// The file's.
pub fn read(trace: impl BufRead) -> io::Result<Accesses> {
    let (mut found, mut since, mut is_blackout) = (Accesses::default(), Blackout::default(), false);
    for line in trace.lines() {
        let line = line?;
        let Some(access) = parse(&line) else { continue };
        if MESSAGES.contains(&access.name) {
            since.messages += u64::from(access.is_write);
        } else if access.cpu < 0 {
            // A device's own.
        } else if access.is_write {
            *since.writes.entry(access.name.to_owned()).or_default() += 1;
            since.has_guests_own |= access.name == DEVICE && GUESTS_OWN.contains(&(access.address % DEVICE_BYTES));
        } else if access.name == DEVICE {
            found.close(&mut since, is_blackout);
            is_blackout = false;
        } else if access.name == LOCAL_APIC && REQUESTS.contains(&access.address) {
            is_blackout = true;
        }
    }
    found.close(&mut since, false);
    Ok(found)
}

/// An access. `cpu` is -1 for a device's.
struct Access<'line> {
    is_write: bool,
    cpu: i64,
    address: u64,
    name: &'line str,
}

/// `memory_region_ops_write cpu 0 mr 0x55e7 addr 0xfed82008 value 0x0 size 8 name 'amdvi-mmio'`, whatever stands
/// before it.
fn parse(line: &str) -> Option<Access<'_>> {
    let (_, line) = line.split_once("memory_region_ops_")?;
    let word = |name: &str| line.split_once(name)?.1.split_whitespace().next();
    Some(Access {
        is_write: line.starts_with("write "),
        cpu: word(" cpu ")?.parse().ok()?,
        address: u64::from_str_radix(word(" addr ")?.strip_prefix("0x")?, 16).ok()?,
        name: line.split_once(" name '")?.1.strip_suffix('\'')?,
    })
}

#[cfg(test)]
#[path = "accesses_tests.rs"]
mod tests;
