// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configuration of a guest's machine: the CPU that it sees, its clock, its performance counters.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bundle::Pmu;
use mitigations::Assessment;
use pmu::guest::{Filter, Vendor};
use vm::cpu::cpuid::{CpuidConfig, CpuidResult, CpuidTable, Speculation};
use vm::cpu::kvmclock::TscScale;
use vm::cpu::models::Model;
use vm::machine::MachineConfig;

use crate::arch::{clock, cpu, speculation, timer};
use crate::guests::guest::Guest;
use crate::kernel::console;
use crate::kernel::platform::options;

/// Returns the host's CPUID, less what does not work of speculation.
pub(super) fn host_cpuid(leaf: u32, subleaf: u32) -> CpuidResult {
    let found = cpu::cpuid(leaf, subleaf);
    let registers = [found.eax, found.ebx, found.ecx, found.edx];
    // Of speculation a guest is shown what works.
    let works = speculation::assessment().map_or(registers, |assessment| assessment.leaf(leaf, registers));
    let [eax, ebx, ecx, edx] = works;
    CpuidResult { eax, ebx, ecx, edx }
}

/// The CPU model that a guest is to have; `None`: the host's CPU.
///
/// # Errors
/// The host's CPU lacks features of the model.
pub(super) fn model_of(guest: &Guest) -> Result<Option<Model>, String> {
    let Some(name) = guest.config.cpu.model() else { return Ok(None) };
    let model = Model::named(name).ok_or_else(|| format!("there is no CPU model {name}: update the host"))?;
    let missing: Vec<&str> = model.missing(&host_cpuid).collect();
    if missing.is_empty() {
        return Ok(Some(model));
    }
    Err(format!(
        "its CPU model {name} has {}, which this host's CPU lacks: choose another `cpu`, or \"host\"",
        missing.join(", ")
    ))
}

pub(super) fn machine_config(guest: &Guest) -> Result<MachineConfig, String> {
    timer::refine();
    console::log::set_clock();
    let tsc_hz = timer::tsc_hz();
    let khz = (tsc_hz / 1000) as u32;
    let model = model_of(guest)?;
    let shown = |leaf: u32, subleaf: u32| {
        let host = host_cpuid(leaf, subleaf);
        model.map_or(host, |model| model.mask(leaf, subleaf, host))
    };
    let vcpus = guest.config.vcpus;
    let mut cpuid = CpuidTable::new(&shown, &CpuidConfig { vcpus, tsc_khz: khz, apic_timer_khz: khz });
    if guest.config.is_paravirtual {
        cpuid.show_paravirtual();
    }
    if let Some(counters) = counters_of(guest) {
        cpuid.show_counters(counters.vendor);
    }
    Ok(MachineConfig {
        vcpus,
        cpuid,
        scale: TscScale::from_hz(tsc_hz).ok_or("the host's TSC rate is outside the range of the guest's clock")?,
        boot_unix_ns: clock::unix_ns(),
        has_debug_exit: guest.config.devices.debug_exit,
    })
}

/// Returns whether LFENCE serializes here.
pub(super) fn lfence_serializes() -> bool {
    speculation::assessment().is_some_and(Assessment::lfence_serializes)
}

/// A guest goes on only where what it was informed of speculation holds.
pub(super) fn check_offered(offered: Speculation) -> Result<(), String> {
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
pub(super) fn counters_of(guest: &Guest) -> Option<pmu::guest::Config> {
    match guest.config.pmu {
        Pmu::Off => None,
        Pmu::Intel => Some(given_counters(guest, Vendor::Intel)),
        Pmu::Amd => Some(given_counters(guest, Vendor::Amd)),
    }
}

pub(super) fn given_counters(guest: &Guest, vendor: Vendor) -> pmu::guest::Config {
    let mut filter = Filter::ALL;
    if let Some(events) = &guest.config.pmu_events {
        filter = Filter::NONE;
        // A bundle that names more than there is room for has been refused.
        events.iter().for_each(|event| filter.allow(event.select, event.unit));
    }
    let policy = options().map_or(pmu::Policy::Direct, |options| options.vpmu);
    pmu::guest::Config { vendor, policy, filter }
}
