// SPDX-License-Identifier: MIT OR Apache-2.0
//! NMIs and interrupts that no handler claims ([`endstate::stray`]). They end nothing: they are counted for
//! `baton info`, named, and logged, at most one of a kind a second. All of it may be done in an NMI's handler: the log
//! takes no lock.

use core::sync::atomic::{AtomicBool, Ordering};

use endstate::stray::{NmiSource, Strays};

use super::percpu::my_number;
use super::trap::vector;
use super::{cpu, nmi, timer};

/// True once the host is up. Before that, an interrupt can be one that a local APIC still held from the software that
/// had the machine before: an operating system that left by kexec masks its devices, but does not empty its APICs
/// (Intel SDM vol. 3, section 11.8.4, "IRR").
static IS_UP: AtomicBool = AtomicBool::new(false);

/// One line of a kind for so long.
const LINE_INTERVAL_US: u64 = 1_000_000;

static NMIS: Strays = Strays::new();
static INTERRUPTS: Strays = Strays::new();

/// Notes an NMI to the calling CPU that no handler claims.
pub fn note_nmi() {
    let status = nmi::status();
    let source = NmiSource::of(status);
    source.disabled(status).into_iter().for_each(nmi::set_control);
    if let Some(notice) = NMIS.note(vector::NMI, cpu::tsc(), timer::us_to_ticks(LINE_INTERVAL_US)) {
        log::warn!(
            "cpu{}: unclaimed NMI, source {} (port 0x61 reads {status:#04x}); {} since boot, the last {} not logged",
            my_number(),
            source.name(),
            notice.count,
            notice.unlogged
        );
    }
}

/// Notes that the host is up: from here on every interrupt of an unassigned vector is unexpected.
pub fn host_is_up() {
    IS_UP.store(true, Ordering::Relaxed);
}

/// Notes an interrupt of an unassigned vector to the calling CPU.
pub fn note_interrupt(vector: u8) {
    if !IS_UP.load(Ordering::Relaxed) {
        log::info!("cpu{}: dropped an interrupt that was pending before this host, vector {vector:#04x}", my_number());
        return;
    }
    if let Some(notice) = INTERRUPTS.note(vector, cpu::tsc(), timer::us_to_ticks(LINE_INTERVAL_US)) {
        log::warn!(
            "cpu{}: unexpected interrupt, vector {vector:#04x}; {} since boot, the last {} not logged",
            my_number(),
            notice.count,
            notice.unlogged
        );
    }
}

/// Returns how many NMIs, and how many interrupts, and the last one's vector.
pub fn counts() -> (u64, u64, Option<u8>) {
    (NMIS.count(), INTERRUPTS.count(), INTERRUPTS.last_vector())
}
