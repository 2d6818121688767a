// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as the loader and the firmware describe it, and what the operator wants of it: plain data, read once at
//! boot.

use alloc::boxed::Box;

use boot::BootInfo;
use boot::options::{Complaints, Options};
use firmware::Tables;
use spin::Once;
use units::{PHYSICAL_LIMIT, PhysAddr};

use super::timeline::{self, Name};
use crate::arch::{cpu, fault};

/// The loader's start info and the operator's options; of an image that replaces another, as that one handed them over.
static BOOT: Once<Box<(BootInfo, Options)>> = Once::new();
static FIRMWARE: Once<Box<Tables>> = Once::new();

/// The loader's start info, once there is a heap.
pub fn boot_info() -> Option<&'static BootInfo> {
    BOOT.get().map(|boot| &boot.0)
}

/// The operator's options, once there is a heap.
pub fn options() -> Option<&'static Options> {
    BOOT.get().map(|boot| &boot.1)
}

/// The firmware's tables.
///
/// # Panics
/// They have not been read: there is no heap yet.
pub fn firmware() -> &'static Tables {
    FIRMWARE.get().expect("the host's memory is built from firmware's tables")
}

/// Keeps what the loader and the operator have stated.
pub fn keep_boot(info: BootInfo, options: Options) {
    BOOT.call_once(|| Box::new((info, options)));
}

/// Keeps the firmware's tables.
pub fn keep_firmware(tables: Tables) {
    FIRMWARE.call_once(|| Box::new(tables));
}

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
