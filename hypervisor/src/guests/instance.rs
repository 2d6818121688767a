// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest that has been loaded: what its vCPUs share, from power-on to its end.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bundle::Pmu;
use handover::state;
use mitigations::Assessment;
use pmu::guest::{Filter, Vendor};
use spin::Mutex;
use vm::cpuid::{CpuidConfig, CpuidResult, CpuidTable, Speculation};
use vm::kvmclock::TscScale;
use vm::loader::{self, Module};
use vm::machine::{Cpu, Machine, MachineConfig, Stop};
use vm::memory::GuestMemory;
use vm::vcpu::{EntryState, VcpuState};
use vm::{acpi, layout, reset_vector};
use wire::{EventKind, VcpuRegisters, VmState};

use crate::arch::guest_memory::GuestRam;
use crate::arch::virt::{OutOfMemory, Virt};
use crate::arch::{clock, counters, cpu, machine_check, percpu, speculation, timer};
use crate::guests::events::record;
use crate::guests::guest::{Guest, Guests, Order};
use crate::guests::task::Task;
use crate::kernel::platform::{BOOT, FIRMWARE};
use crate::kernel::timeline::{self, Name};
use crate::kernel::{console, ledger};

/// One run of a guest. Its memory is given back when the last vCPU has let go of it.
pub struct Instance<V: Virt> {
    /// The guest.
    pub guest: &'static Guest,
    /// Its machine.
    pub machine: Machine<GuestRam>,
    is_paused: AtomicBool,
    is_ending: AtomicBool,
    ending: Mutex<Option<Ending>>,
    /// vCPUs that have not let go yet.
    tasks_left: AtomicU32,
    /// Of each vCPU, while it stands still.
    pub registers: Vec<Mutex<Option<VcpuRegisters>>>,
    /// The vCPUs' control blocks point into it.
    space: V::Space,
}

/// The reason for which a guest ends.
#[derive(Clone, Debug)]
pub enum Ending {
    /// Its own doing.
    Own(Stop),
    /// The operator stopped it.
    Stopped,
    /// The operator wants it to start again.
    Reset,
    /// Its kernel is not well, and the operator wants it stopped then.
    GivenUp,
    /// No CPU can hold another virtual one.
    Crowded,
    /// The hardware has lost some of its state or its memory: how.
    Damaged(String),
}

impl<V: Virt> Instance<V> {
    /// Loads a guest from the bundle; gives its vCPUs. The error has the reason and a hint.
    pub fn load(virt: V, guests: &Guests, guest: &'static Guest) -> Result<(Arc<Self>, Vec<Task<V>>), String> {
        let config = &guest.config;
        let _loading = timeline::span(Name::GuestLoad, guest.number);
        let checking = timeline::span(Name::GuestFiles, guest.number);
        let files = guests.bundle.verified_guest_files(config).map_err(|error| error.to_string())?;
        drop(checking);
        let taking = timeline::span(Name::GuestMemory, guest.number);
        let node = ledger::guests::node_of(guest.home(), &FIRMWARE.lock());
        let memory = GuestRam::allocate(&ledger::guests::FRAME_SOURCE, config.memory_bytes, node).map_err(|short| {
            format!(
                "it wants {} of memory, the host has {} in one piece: give it less or the host more",
                units::ByteSize(short.bytes),
                units::ByteSize(short.largest_bytes)
            )
        })?;
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
        reset_vector::write(&memory).map_err(|error| error.to_string())?;
        Self::power_on(virt, guest, memory, &entry)
    }

    fn power_on(
        virt: V,
        guest: &'static Guest,
        memory: GuestRam,
        entry: &EntryState,
    ) -> Result<(Arc<Self>, Vec<Task<V>>), String> {
        let exhausted = |OutOfMemory| "no host memory left for its tables: give the host more".to_string();
        let vcpus = guest.config.vcpus;
        let space = virt.create_space(&memory).map_err(exhausted)?;
        let mut machine = Machine::new(memory, machine_config(guest)?);
        machine.set_lfence_serializes(lfence_serializes());
        let offered = machine.speculation();
        let states = (0..vcpus).map(|_| virt.create_vcpu(guest.number, &space, entry, offered));
        let states = states.collect::<Result<Vec<_>, _>>().map_err(exhausted)?;
        guest.health.reset();
        let instance = Arc::new(Self {
            guest,
            machine,
            is_paused: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            ending: Mutex::new(None),
            tasks_left: AtomicU32::new(vcpus),
            registers: (0..vcpus).map(|_| Mutex::new(None)).collect(),
            space,
        });
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
    /// restored before they run.
    ///
    /// # Errors
    /// Why there can be none.
    pub fn adopt(
        virt: V,
        guest: &'static Guest,
        memory: GuestRam,
        (policy, leaves): (&state::Policy, &[u8]),
    ) -> Result<(Arc<Self>, Vec<Task<V>>), String> {
        let exhausted = |OutOfMemory| "no memory for its tables".to_string();
        let space = virt.create_space(&memory).map_err(exhausted)?;
        let vcpus = guest.config.vcpus;
        let entry = EntryState::at_startup_page(0);
        let mut machine = Machine::adopt(memory, policy, leaves).map_err(|error| error.to_string())?;
        machine.set_lfence_serializes(lfence_serializes());
        let offered = machine.speculation();
        check_offered(offered)?;
        let states: Result<Vec<_>, _> =
            (0..vcpus).map(|_| virt.create_vcpu(guest.number, &space, &entry, offered)).collect();
        let instance = Arc::new(Self {
            guest,
            machine,
            is_paused: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            ending: Mutex::new(None),
            tasks_left: AtomicU32::new(vcpus),
            registers: (0..vcpus).map(|_| Mutex::new(None)).collect(),
            space,
        });
        let states = states.map_err(exhausted)?.into_iter().zip(guest.exits.iter()).enumerate();
        // Whatever a bundle states now: it goes on with what it was promised.
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

    /// Returns where its nested page tables begin.
    pub fn space_root(&self) -> u64 {
        V::space_root(&self.space)
    }

    /// It stands still from the moment at which it goes on.
    pub fn begin_paused(&self) {
        self.is_paused.store(true, Ordering::Release);
    }

    /// Ends the guest: every vCPU lets go at its next check. The first reason counts.
    pub fn end(&self, ending: Ending) {
        self.ending.lock().get_or_insert(ending);
        self.is_ending.store(true, Ordering::Release);
        self.guest.frozen.thaw();
        self.wake_cpus();
    }

    /// Returns whether it is ending.
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }

    /// Returns whether its vCPUs are to stand still.
    pub fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Acquire)
    }

    /// Lets its vCPUs stand still, or go on.
    pub fn set_paused(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::Release);
        self.wake_cpus();
    }

    /// A machine check has interrupted one of its vCPUs, on the calling CPU. Whether it has ended the guest; what it
    /// was about is left for the CPU's loop.
    #[cold]
    pub fn is_ended_by_machine_check(&self) -> bool {
        match machine_check::in_guest() {
            Ok(true) => {
                let reason = "a machine check interrupted it where it cannot resume; the log names the error";
                self.end(Ending::Damaged(reason.to_string()));
                true
            }
            Ok(false) => false,
            Err(fatal) => panic!("{fatal}"),
        }
    }

    fn wake_cpus(&self) {
        (0..self.guest.config.vcpus as usize).for_each(|vcpu| percpu::wake(self.guest.cpu_to_tell(vcpu)));
    }

    /// A vCPU lets go. After the last one the guest has ended.
    pub fn let_go(instance: Arc<Self>) {
        if instance.tasks_left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let guest = instance.guest;
        let ending = instance.ending.lock().take().unwrap_or(Ending::Stopped);
        guest.health.reset();
        // The memory goes before the guest counts as ended: the next start then finds it free.
        drop(instance);
        finish(guest, ending);
    }
}

fn machine_config(guest: &Guest) -> Result<MachineConfig, String> {
    timer::refine();
    console::log::set_clock();
    let tsc_hz = timer::tsc_hz();
    let khz = (tsc_hz / 1000) as u32;
    let host_cpuid = |leaf: u32, subleaf: u32| {
        let found = cpu::cpuid(leaf, subleaf);
        let registers = [found.eax, found.ebx, found.ecx, found.edx];
        // Of speculation a guest is shown what works.
        let works = speculation::assessment().map_or(registers, |assessment| assessment.leaf(leaf, registers));
        let [eax, ebx, ecx, edx] = works;
        CpuidResult { eax, ebx, ecx, edx }
    };
    let vcpus = guest.config.vcpus;
    let mut cpuid = CpuidTable::new(&host_cpuid, &CpuidConfig { vcpus, tsc_khz: khz, apic_timer_khz: khz });
    if let Some(counters) = counters_of(guest) {
        cpuid.show_counters(counters.vendor);
    }
    Ok(MachineConfig {
        vcpus,
        cpuid,
        scale: TscScale::from_hz(tsc_hz).ok_or("the host's clock runs at a rate no guest can be told")?,
        boot_unix_ns: clock::unix_ns(),
        has_debug_exit: guest.config.devices.debug_exit,
    })
}

/// Returns whether LFENCE serializes here.
fn lfence_serializes() -> bool {
    speculation::assessment().is_some_and(Assessment::lfence_serializes)
}

/// A guest goes on only where what it was informed of speculation holds.
fn check_offered(offered: Speculation) -> Result<(), String> {
    let has = speculation::assessment().map(|assessment| assessment.cpu).unwrap_or_default();
    let missing = offered.spec_ctrl & !has.spec_ctrl_bits();
    if missing != 0 || offered.has_ibpb && !has.has_ibpb() {
        return Err(format!(
            "its CPUID shows SPEC_CTRL bits {:#x} or an IBPB that this CPU does not have",
            offered.spec_ctrl
        ));
    }
    Ok(())
}

/// The vendor of the performance counters that a guest is to have.
fn counters_of(guest: &Guest) -> Option<pmu::guest::Config> {
    match guest.config.pmu {
        Pmu::Off => None,
        Pmu::Intel => Some(given_counters(guest, Vendor::Intel)),
        Pmu::Amd => Some(given_counters(guest, Vendor::Amd)),
    }
}

fn given_counters(guest: &Guest, vendor: Vendor) -> pmu::guest::Config {
    let mut filter = Filter::ALL;
    if let Some(events) = &guest.config.pmu_events {
        filter = Filter::NONE;
        // A bundle that names more than there is room for has been refused.
        events.iter().for_each(|event| filter.allow(event.select, event.unit));
    }
    let policy = BOOT.get().map_or(pmu::Policy::Direct, |(_, options)| options.vpmu);
    pmu::guest::Config { vendor, policy, filter }
}

fn write_acpi_tables(memory: &GuestRam, vcpus: u32) -> Result<(), String> {
    let tables = acpi::build(&acpi::AcpiConfig { vcpus }).map_err(|error| error.to_string())?;
    memory.write(layout::ACPI_TABLES, &tables).map_err(|error| error.to_string())
}

/// The guest has ended and holds nothing any more.
fn finish(guest: &'static Guest, ending: Ending) {
    let name = guest.config.name.clone();
    let reason = match ending {
        Ending::Reset | Ending::Own(Stop::Reset) => {
            guest.set_state(VmState::Loading, None);
            record(EventKind::VmReset { name });
            return guest.order(Order::Start);
        }
        Ending::Own(stop @ (Stop::Fault(_) | Stop::TripleFault)) => return fail(guest, stop.to_string()),
        Ending::Damaged(reason) => return fail(guest, reason),
        Ending::Crowded => {
            let reason = "each CPU that is online holds as many vCPUs as it can: give the host more";
            return fail(guest, reason.to_string());
        }
        Ending::Own(Stop::DebugExit(code)) => {
            record(EventKind::VmDebugExit { name: name.clone(), code });
            Stop::DebugExit(code).to_string()
        }
        Ending::Own(stop) => stop.to_string(),
        Ending::Stopped => "stopped by the operator".to_string(),
        Ending::GivenUp => format!("stopped as on_panic says: {}", guest.status().reason.unwrap_or_default()),
    };
    guest.note_end(VmState::Stopped, Some(reason.clone()), EventKind::VmStopped { name, reason });
}

/// The guest could not be started or go on.
pub fn fail(guest: &Guest, reason: String) {
    log::error!("guest {}: {reason}", guest.config.name);
    let event = EventKind::VmFailed { name: guest.config.name.clone(), reason: reason.clone() };
    guest.note_end(VmState::Failed, Some(reason), event);
}
