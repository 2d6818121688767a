// SPDX-License-Identifier: MIT OR Apache-2.0
//! Making a run of a guest: loaded from the bundle, or adopted from another image.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use bundle::GuestConfig;
use handover::state;
use spin::Mutex;
use units::ByteSize;
use vm::machine::{Cpu, Machine};
use vm::memory::GuestMemory;
use vm::platform::loader::{self, Module};
use vm::platform::{acpi, layout, reset_vector, smbios};
use vm::vcpu::EntryState;

use super::Instance;
use super::config::{check_offered, counters_of, given_counters, lfence_serializes, machine_config, model_of};
use super::saving::Saving;
use crate::arch::guest_memory::GuestRam;
use crate::arch::virt::{OutOfMemory, Virt};
use crate::arch::{counters, cpu};
use crate::guests::assigned::{self, virtual_functions};
use crate::guests::balloon;
use crate::guests::configuration::Files;
use crate::guests::disks;
use crate::guests::guest::Guest;
use crate::guests::networks;
use crate::guests::sockets;
use crate::guests::task::Task;
use crate::guests::virtio;
use crate::kernel::ledger;
use crate::kernel::platform::firmware;
use crate::kernel::timeline::{self, Name};

impl Instance {
    /// Loads a guest from the bundle; gives its vCPUs. The error has the reason and a hint.
    #[inline(never)]
    pub fn load(virt: Virt, guest: &Arc<Guest>) -> Result<(Arc<Self>, Vec<Task>), String> {
        let config = &guest.config;
        let _loading = timeline::span(Name::GuestLoad, guest.number);
        // Before memory is taken and filled in vain.
        model_of(guest)?;
        let checking = timeline::span(Name::GuestFiles, guest.number);
        let kept = Files::now();
        let files = kept.of(config)?;
        drop(checking);
        let taking = timeline::span(Name::GuestMemory, guest.number);
        let memory = memory_for(guest)?;
        drop(taking);
        let placing = timeline::span(Name::GuestKernel, guest.number);
        let initrd = files.initrd.into_iter().map(|bytes| Module { bytes, command_line: b"" });
        let named = files.modules.iter().map(|(name, bytes)| Module { bytes, command_line: name.as_bytes() });
        let modules: Vec<Module<'_>> = initrd.chain(named).collect();
        let entry = loader::load(&memory, files.kernel, config.cmdline.as_bytes(), &modules)
            .map_err(|error| format!("{}: {error}", config.kernel))?;
        drop(placing);
        let _building = timeline::span(Name::GuestTables, guest.number);
        write_acpi_tables(&memory, config.vcpus)?;
        write_smbios_tables(&memory, config)?;
        reset_vector::write(&memory).map_err(|error| error.to_string())?;
        Self::power_on(virt, guest, memory, &entry)
    }

    fn power_on(
        virt: Virt,
        guest: &Arc<Guest>,
        memory: GuestRam,
        entry: &EntryState,
    ) -> Result<(Arc<Self>, Vec<Task>), String> {
        let exhausted = |OutOfMemory| "no host memory left for its tables: give the host more".to_string();
        let vcpus = guest.config.vcpus;
        let space = Arc::new(virt.create_space(&memory).map_err(exhausted)?);
        let mut machine = Machine::new(memory, machine_config(guest)?);
        machine.set_lfence_serializes(lfence_serializes());
        let offered = machine.speculation();
        let states = (0..vcpus).map(|_| space.create_vcpu(guest.number, entry, offered));
        let states = states.collect::<Result<Vec<_>, _>>().map_err(exhausted)?;
        virtio::attach(guest, &mut machine)?;
        let nics = networks::attach(guest, &mut machine)?;
        let socket = sockets::attach(guest, &mut machine)?;
        let disks = disks::attach(guest, &mut machine)?;
        let balloon = balloon::attach(guest, &mut machine, &space)?;
        let functions = assigned::give(guest, &space, &machine, virtual_functions::revoke)?;
        guest.health.reset();
        let instance = Arc::new(Self {
            guest: guest.clone(),
            machine,
            is_paused: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            ending: Mutex::new(None),
            tasks_left: AtomicU32::new(vcpus),
            registers: (0..vcpus).map(|_| Mutex::new(None)).collect(),
            saving: Saving::new(vcpus),
            space,
            functions,
            nics,
            socket,
            disks,
            balloon,
            flushed: (0..vcpus).map(|_| AtomicU64::new(0)).collect(),
        });
        instance.plug();
        let start = cpu::tsc();
        let counters_given = counters_of(guest);
        let tasks = states.into_iter().zip(guest.exits.iter()).enumerate().map(|(index, (mut vcpu, counters))| {
            let mut cpu = Cpu::new(index as u32, index == 0, start, 0, counters.clone());
            vcpu.set_tsc_offset(cpu.tsc_offset());
            if let Some(given) = &counters_given {
                cpu.set_counters(given, counters::source());
            }
            Task::new(instance.clone(), index, vcpu, cpu)
        });
        let tasks = tasks.collect();
        Ok((instance, tasks))
    }

    /// A guest that another image has started, with the memory that it has there. Its vCPUs are to be
    /// restored before they run, and it is to be [plugged in](Self::plug).
    ///
    /// # Errors
    /// Why there can be none.
    pub fn adopt(
        virt: Virt,
        guest: &Arc<Guest>,
        memory: GuestRam,
        (policy, leaves): (&state::Policy, &[u8]),
        functions: &[u8],
    ) -> Result<(Arc<Self>, Vec<Task>), String> {
        let exhausted = |OutOfMemory| "no memory for its tables".to_string();
        let space = Arc::new(virt.create_space(&memory).map_err(exhausted)?);
        let vcpus = guest.config.vcpus;
        let entry = EntryState::at_startup_page(0);
        let mut machine = Machine::adopt(memory, policy, leaves).map_err(|error| error.to_string())?;
        machine.set_lfence_serializes(lfence_serializes());
        let functions = functions.chunks_exact(size_of::<state::AssignedFunction>());
        let functions = assigned::adopt(guest, &space, &machine, functions)?;
        virtio::attach(guest, &mut machine)?;
        let nics = networks::attach(guest, &mut machine)?;
        let socket = sockets::attach(guest, &mut machine)?;
        let disks = disks::attach(guest, &mut machine)?;
        let balloon = balloon::attach(guest, &mut machine, &space)?;
        let offered = machine.speculation();
        check_offered(offered)?;
        let states: Result<Vec<_>, _> = (0..vcpus).map(|_| space.create_vcpu(guest.number, &entry, offered)).collect();
        let instance = Arc::new(Self {
            guest: guest.clone(),
            machine,
            is_paused: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            ending: Mutex::new(None),
            tasks_left: AtomicU32::new(vcpus),
            registers: (0..vcpus).map(|_| Mutex::new(None)).collect(),
            saving: Saving::new(vcpus),
            space,
            functions,
            nics,
            socket,
            disks,
            balloon,
            flushed: (0..vcpus).map(|_| AtomicU64::new(0)).collect(),
        });
        let states = states.map_err(exhausted)?.into_iter().zip(guest.exits.iter()).enumerate();
        // Whatever the bundle has now: it goes on with what it was promised.
        let counters_given = instance.machine.counters().map(|vendor| given_counters(guest, vendor));
        let tasks = states.map(|(index, (vcpu, counters))| {
            let mut cpu = Cpu::new(index as u32, index == 0, 0, 0, counters.clone());
            if let Some(given) = &counters_given {
                cpu.set_counters(given, counters::source());
            }
            Task::new(instance.clone(), index, vcpu, cpu)
        });
        let tasks = tasks.collect();
        Ok((instance, tasks))
    }
}

/// The memory of a guest that starts.
fn memory_for(guest: &Guest) -> Result<GuestRam, String> {
    let config = &guest.config;
    let node = ledger::guests::node_of(guest.home(), firmware());
    let source = &ledger::guests::FRAME_SOURCE;
    match config.assured_bytes {
        None => GuestRam::allocate(source, config.memory_bytes, node).map_err(|short| {
            format!(
                "it needs {} of memory, the host has {} in one piece: give it less or the host more",
                ByteSize(short.bytes),
                ByteSize(short.largest_bytes)
            )
        }),
        Some(assured_bytes) => {
            let memory = GuestRam::on_demand(source, (config.memory_bytes, assured_bytes), node);
            memory.map_err(|short| {
                format!(
                    "it is to be assured {} of memory, the host has {} that no guest is assured: assure it less",
                    ByteSize(short.bytes),
                    ByteSize(short.free_bytes)
                )
            })
        }
    }
}

fn write_acpi_tables(memory: &GuestRam, vcpus: u32) -> Result<(), String> {
    let address_bits = cpu::cpuid(0x8000_0008, 0).eax as u8;
    let config = acpi::AcpiConfig { vcpus, memory_bytes: memory.size_bytes(), address_bits };
    let tables = acpi::build(&config).map_err(|error| error.to_string())?;
    memory.write(layout::ACPI_TABLES, &tables).map_err(|error| error.to_string())
}

#[inline(never)]
fn write_smbios_tables(memory: &GuestRam, config: &GuestConfig) -> Result<(), String> {
    let uuid = config.smbios.uuid_of(&config.name);
    let (text, oem_strings) = (uuid.to_string(), config.smbios.oem_strings().collect::<Vec<_>>());
    let serial = config.smbios.serial().unwrap_or(&text);
    let system = smbios::System { uuid: uuid.bytes(), serial, oem_strings: &oem_strings };
    let tables = smbios::build(&system).map_err(|error| error.to_string())?;
    memory.write(layout::SMBIOS_TABLES, &tables).map_err(|error| error.to_string())
}
