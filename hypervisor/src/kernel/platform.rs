// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as the loader and the firmware describe it, and what the operator wants of it: plain data, read once at
//! boot.

use boot::BootInfo;
use boot::options::{MadtDamage, Options, SelfTest};
use firmware::Tables;
use firmware::damage::{Damage, Damaged};
use spin::{Mutex, Once};
use units::{PHYSICAL_LIMIT, PhysAddr};

use super::timeline::{self, Name};
use crate::arch::boot::BootMemory;
use crate::arch::cpu;

/// The loader's start info and the operator's options; of an image that replaces another, as that one handed them over.
pub static BOOT: Once<(BootInfo, Options)> = Once::new();
/// The firmware's tables.
pub static FIRMWARE: Mutex<Tables> = Mutex::new(Tables::new());

/// Reads the firmware's tables.
pub fn read_firmware(info: &BootInfo, options: &Options, tables: &mut Tables) {
    let _span = timeline::span(Name::Firmware, 0);
    let damage = options.self_tests.iter().find_map(|test| match test {
        SelfTest::Madt(MadtDamage::Missing) => Some(Damage::Missing),
        SelfTest::Madt(MadtDamage::Truncated) => Some(Damage::Truncated),
        SelfTest::Madt(MadtDamage::Duplicate) => Some(Damage::Duplicate),
        SelfTest::Madt(MadtDamage::Absurd) => Some(Damage::Absurd),
        _ => None,
    });
    let rsdp = info.rsdp.map(|address| address.0);
    let read = match damage {
        None => firmware::discover(&BootMemory, rsdp, tables),
        Some(damage) => firmware::discover(&Damaged::new(&BootMemory, damage), rsdp, tables),
    };
    if let Err(error) = read {
        log::warn!("firmware tables: {error}");
    }
    tables.check_power_registers(|address| may_be_register(info, address));
    tables.warnings.iter().for_each(|problem| log::warn!("firmware tables: {problem}"));
}

/// Returns whether a power register may be at this physical address: it is no usable memory.
fn may_be_register(info: &BootInfo, address: u64) -> bool {
    let end = 1_u64 << (cpu::cpuid(0x8000_0008, 0).eax & 0x3f);
    let is_memory = info.memory_map.usable().any(|usable| usable.contains(PhysAddr(address)));
    !is_memory && address < end.min(PHYSICAL_LIMIT)
}
