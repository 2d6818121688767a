// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as the loader and the firmware describe it, and what the operator wants of it: plain data, read once at
//! boot.

use boot::BootInfo;
use boot::options::{Complaints, Options};
use firmware::Tables;
use spin::{Mutex, Once};
use units::{PHYSICAL_LIMIT, PhysAddr};

use super::timeline::{self, Name};
use crate::arch::{cpu, fault};

/// The loader's start info and the operator's options; of an image that replaces another, as that one handed them over.
pub static BOOT: Once<(BootInfo, Options)> = Once::new();
/// The firmware's tables.
pub static FIRMWARE: Mutex<Tables> = Mutex::new(Tables::new());

/// Parses the operator's options.
pub fn parse_options(command_line: &str) -> (Options, Complaints<'_>) {
    fault::point!(crate::kernel::faults::parse_options(command_line), else Options::parse(command_line))
}

/// Reads the firmware's tables.
pub fn read_firmware(info: &BootInfo, tables: &mut Tables) {
    let _span = timeline::span(Name::Firmware, 0);
    let rsdp = info.rsdp.map(|address| address.0);
    let read = fault::point!(
        crate::kernel::faults::discover(rsdp, tables),
        else firmware::discover(&crate::arch::boot::BootMemory, rsdp, tables)
    );
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
