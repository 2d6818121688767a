// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's memory at boot and after an update: the ledger, the page tables, the heap.

use arrayvec::ArrayVec;
use boot::BootInfo;
use boot::options::Options;
use firmware::Tables;
use firmware::power::Power;
use units::{PageSize, PhysRange};

use super::interrupts::choose_apic;
use super::platform::{boot_info, firmware, keep_firmware, options, read_firmware};
use crate::arch::address::DIRECT_MAP;
use crate::arch::boot::BootMemory;
use crate::arch::cpu_local;
use crate::arch::ending;
use crate::arch::heap::{self, HEAP_BYTES};
use crate::arch::memory::{self, DevicePage, FRAMES};
use crate::arch::percpu::MAX_CPUS;
use crate::arch::{apic, ioapic, power, stack, switch_pages, timer};
use crate::kernel::timeline::{self, Name};
use crate::kernel::{inherited, iommu, ledger};

/// Opens the ledger of all memory, enters this image's own page tables, and goes on with the timelines.
pub fn build_memory(info: &BootInfo, options: &Options) {
    let (mut tables, mut iommus) = (Tables::new(), iommu::Table::new());
    read_firmware(info, &mut tables);
    iommus.read(&BootMemory, &tables);
    choose_apic(options.apic);
    let has_epitaph = ledger::open(info, options, inherited::record().as_ref());
    enter_address_space(info, &tables, None);
    keep(tables, &iommus);
    if has_epitaph {
        ending::allow_epitaph();
    }
    timeline::adopt(inherited::timelines());
    ledger::furnish(info, options, firmware(), inherited::is_update());
}

/// The memory of an image on trial: what it was given in advance is free, nothing else. It is still on the switch
/// pages.
pub fn build_memory_on_trial(info: &BootInfo, options: &Options, staging_memory: PhysRange, switch_pages: PhysRange) {
    let (mut tables, mut iommus) = (Tables::new(), iommu::Table::new());
    read_firmware(info, &mut tables);
    iommus.read(&BootMemory, &tables);
    choose_apic(options.apic);
    ledger::open_on_trial(staging_memory);
    enter_address_space(info, &tables, Some(switch_pages));
    keep(tables, &iommus);
}

/// Firmware's tables are on the boot stack until there is a heap.
fn keep(tables: Tables, iommus: &iommu::Table) {
    keep_firmware(tables);
    iommus.keep();
}

/// An image that has taken over owns all memory, but for what guests have and what is still to be read. `on_demand` is
/// the memory that guests have on demand.
pub fn take_all_memory(on_demand: &[PhysRange]) {
    let (Some(info), Some(options)) = (boot_info(), options()) else { return };
    let Ok((staging_memory, switch_frames)) = inherited::on_trial() else { return };
    if ledger::take_all(info, options, staging_memory, inherited::record().as_ref(), on_demand) {
        ending::allow_epitaph();
    }
    switch_pages::hide(switch_frames.bytes());
    stack::give_back_boot_memory();
}

/// An image that has taken over keeps account of memory as the operator wants it.
pub fn furnish_memory() {
    let (Some(info), Some(options)) = (boot_info(), options()) else { return };
    ledger::furnish(info, options, firmware(), inherited::is_update());
    ledger::background::guest_starts();
}

fn enter_address_space(info: &BootInfo, tables: &Tables, switch_pages: Option<PhysRange>) {
    let devices = device_pages(tables);
    let mapping = timeline::span(Name::PageTables, 0);
    let show = |tables: &mut _, frames: &mut _| match switch_pages {
        Some(switch_pages) => switch_pages::show_inherited(tables, frames, switch_pages),
        None => Ok(()),
    };
    let shown = info.memory_map.usable().chain(info.modules_beside_memory());
    if let Err(error) = memory::enter(shown, &devices, show) {
        panic!("the host's address space cannot be built: {error:?}; give the machine more memory");
    }
    drop(mapping);
    let _heaping = timeline::span(Name::Heap, 0);
    let heap = FRAMES.lock().allocate(HEAP_BYTES, PageSize::Kib4);
    match heap {
        Ok(range) => heap::claim(DIRECT_MAP + range.leak().start().0, HEAP_BYTES),
        Err(error) => panic!("no memory for the heap: {error}; give the machine more memory"),
    }
    // The boot CPU's area is part of the image. Whether it is among those that the firmware names is known only once
    // its local APIC is enabled.
    let named = tables.cpus.iter().filter(|cpu| cpu.enabled).count().min(MAX_CPUS - 1);
    assert!(cpu_local::add_areas(named as u32), "no memory for per-CPU data; give the machine more memory");
}

fn device_pages(tables: &Tables) -> ArrayVec<DevicePage, 21> {
    let mut pages = ArrayVec::new();
    pages.push((apic::MAPPED_AT, apic::physical()));
    pages.extend(tables.hpet_address.map(|address| (timer::HPET_MAPPED_AT, address)));
    pages.extend(power::pages(&Power::new(tables)));
    for (number, io_apic) in tables.io_apics.iter().enumerate() {
        pages.push((ioapic::MAPPED_AT + number as u64 * 4096, io_apic.address));
    }
    pages
}
