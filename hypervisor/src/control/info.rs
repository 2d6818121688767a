// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's report of itself.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use handover::image::SECURITY_VERSION;
use wire::{ApicMode, HostInfo, Virtualization, Vulnerability};

use crate::arch::boot::{BUILD, newest_version};
use crate::arch::memory::FRAMES;
use crate::arch::strays;
use crate::arch::{apic, speculation, stack, timer};
use crate::guests::guest::Guest;
use crate::guests::instance::Instance;
use crate::guests::slots::GUESTS;
use crate::kernel::cpus::{self, VIRTUALIZATION};
use crate::kernel::inherited;
use crate::kernel::platform::boot_info;
use crate::lifecycle::restart::trust;

/// The host, now.
pub fn host() -> HostInfo {
    let (virtualization, features) = match VIRTUALIZATION.get() {
        Some((kind, features)) => (*kind, features.iter().map(ToString::to_string).collect()),
        None => (Virtualization::None, Vec::<String>::new()),
    };
    let total = boot_info().map_or(0, |boot| boot.memory_map.usable_bytes());
    let free = FRAMES.lock().free_bytes();
    let (unclaimed_nmis, unexpected_interrupts, last_unexpected_vector) = strays::counts();
    HostInfo {
        version: env!("CARGO_PKG_VERSION").to_string(),
        image_bytes: stack::image_bytes(),
        cpus: cpus::online().len() as u32,
        memory_total_bytes: total,
        memory_free_bytes: free,
        host_overhead_bytes: total.saturating_sub(free + guest_bytes() + module_bytes()),
        uptime_ns: timer::uptime_ns(),
        virtualization,
        features,
        apic_mode: match apic::mode() {
            apic::Mode::Xapic => ApicMode::XApic,
            apic::Mode::X2apic => ApicMode::X2Apic,
        },
        tsc_hz: timer::tsc_hz(),
        generation: inherited::generation(),
        build: BUILD.to_string(),
        security_version: SECURITY_VERSION,
        permits_downgrade: trust::floor().permits_downgrade,
        oldest_handover: handover::OLDEST_VERSION,
        newest_handover: newest_version(),
        trusted_keys: trust::keys().iter().map(ToString::to_string).collect(),
        unclaimed_nmis,
        unexpected_interrupts,
        last_unexpected_vector,
        signer: inherited::signer(),
    }
}

/// Returns the host's state for each speculation vulnerability.
pub fn vulnerabilities() -> Vec<Vulnerability> {
    let Some(assessment) = speculation::assessment() else { return Vec::new() };
    let rows = mitigations::TABLE.iter().zip(&assessment.statuses);
    rows.map(|(row, status)| Vulnerability { name: row.name.to_string(), status: status.to_string() }).collect()
}

/// Memory that loaded guests hold.
fn guest_bytes() -> u64 {
    use wire::VmState::{Failed, Stopped};
    let loaded = GUESTS.all().filter(|guest| !matches!(guest.status().state, Stopped | Failed));
    loaded.map(|guest| resident_bytes(&guest).unwrap_or(guest.config.memory_bytes)).sum()
}

/// Memory that a guest has now, if it gets it on demand and runs.
pub fn resident_bytes(guest: &Guest) -> Option<u64> {
    Some(guest.run::<Instance>()?.machine.memory().blocks()?.resident_bytes())
}

/// Memory that the loader's modules (the bundle) hold: the guests' files, not the host's.
fn module_bytes() -> u64 {
    let Some(boot) = boot_info() else { return 0 };
    let page_bytes =
        |range: units::PhysRange| range.aligned_outwards(units::PAGE_BYTES).map_or(0, |range| range.bytes());
    boot.modules.iter().map(|module| page_bytes(module.range)).sum()
}
