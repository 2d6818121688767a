// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPUs that an interrupt reaches (Intel SDM vol. 3, sections 11.6.2 and 11.12.10; AMD APM vol. 2, section 16.5).

use tiny::apic::{LOGICAL, Register};
use tiny::{apic, smp};

use crate::answers::{Wrong, all, counts, expect, quiet, reaches, wait_with_interrupts};

const VECTOR: u8 = 0x51;
const SHORTHAND_SELF: u32 = 1 << 18;
const SHORTHAND_ALL: u32 = 2 << 18;
const SHORTHAND_OTHERS: u32 = 3 << 18;
const LOWEST_PRIORITY: u32 = 1 << 8;
const EVERYONE: u32 = u32::MAX;
/// Destination format: flat, and cluster (all other bits read as one).
const FLAT: u32 = 0xffff_ffff;
const CLUSTER: u32 = 0x0fff_ffff;

/// By identifier: that CPU gets it.
pub fn fixed(cpus: usize) -> Result<(), Wrong> {
    (0..cpus).try_for_each(|at| reaches("interrupt to CPU", VECTOR, at as u32, 0, 1 << at))
}

/// To itself, in each way.
pub fn itself(_cpus: usize) -> Result<(), Wrong> {
    reaches("interrupt by the shorthand for", VECTOR, 0, SHORTHAND_SELF, 1)?;
    reaches("interrupt to itself as", VECTOR, 0, 0, 1)
}

/// To all, and to all others; an identifier of all ones is everyone's.
pub fn broadcast(cpus: usize) -> Result<(), Wrong> {
    let all = all(cpus);
    reaches("interrupt by the shorthand for all", VECTOR, 0, SHORTHAND_ALL, all)?;
    reaches("interrupt by the shorthand for others", VECTOR, 0, SHORTHAND_OTHERS, all & !1)?;
    reaches("interrupt to everyone", VECTOR, EVERYONE, 0, all)
}

/// To sets: in x2APIC mode of a cluster of sixteen, in memory by one bit each (flat).
pub fn logical(cpus: usize) -> Result<(), Wrong> {
    set_logical(cpus, FLAT, |at| 1 << at)?;
    for set in [1, 2, 3, 5, 0xa, 0xf, 0xff] {
        reaches("interrupt to the set", VECTOR, set, LOGICAL, set & all(cpus))?;
    }
    reaches("interrupt to an empty set", VECTOR, 0, LOGICAL, 0)
}

/// To sets of a cluster. In memory each CPU is in a cluster of its own, so that number and bit both count.
pub fn cluster(cpus: usize) -> Result<(), Wrong> {
    if apic::is_x2apic() {
        // All of up to sixteen are in cluster 0; no CPU is in cluster 1.
        reaches("interrupt to the other cluster's", VECTOR, 1 << 16 | 0xffff, LOGICAL, 0)?;
        return reaches("interrupt to the cluster's", VECTOR, 0xffff, LOGICAL, all(cpus));
    }
    set_logical(cpus, CLUSTER, |at| (at as u8 % 8) << 4 | 1 << (at % 4))?;
    for at in 0..cpus.min(8) as u32 {
        reaches("interrupt to the cluster's", VECTOR, at << 4 | 1 << (at % 4), LOGICAL, 1 << at)?;
        reaches("interrupt to the cluster's other", VECTOR, at << 4 | (0xf & !(1 << (at % 4))), LOGICAL, 0)?;
    }
    let first_of_each = all(cpus) & 0x1111;
    reaches("interrupt to every cluster's", VECTOR, 0xf1, LOGICAL, first_of_each)?;
    set_logical(cpus, FLAT, |at| 1 << at)
}

/// One of them gets it, whichever that is.
pub fn lowest_priority(cpus: usize) -> Result<(), Wrong> {
    set_logical(cpus, FLAT, |at| 1 << at)?;
    for _ in 0..8 {
        let sum = || counts(VECTOR).iter().sum::<u32>();
        let before = sum();
        apic::send(all(cpus) & 0xff, LOGICAL | LOWEST_PRIORITY | u32::from(VECTOR));
        wait_with_interrupts(|| sum() != before);
        quiet();
        expect("CPUs with a lowest-priority interrupt of", cpus as u64, (sum() - before).into(), 1)?;
    }
    Ok(())
}

/// Interrupts to identifiers that no CPU has.
pub fn absent(cpus: usize) -> Result<(), Wrong> {
    for destination in [cpus as u32, 0x7f, 0xfe] {
        for command in [0, LOWEST_PRIORITY, apic::NMI, apic::INIT, apic::STARTUP] {
            reaches("interrupt to no CPU, identifier", VECTOR, destination, command, 0)?;
        }
    }
    everyone_answers(cpus)
}

/// Commands that mean nothing: the reserved mode, SMI and external interrupts (which this machine has none of), INIT
/// and start-up and lowest priority to oneself, the de-assertion of INIT, illegal vectors.
pub fn reserved(cpus: usize) -> Result<(), Wrong> {
    const DEASSERTED_INIT: u32 = 5 << 8 | 1 << 15;
    const TO_SELF: [u32; 3] = [LOWEST_PRIORITY, apic::INIT, apic::STARTUP];
    for mode in [3, 2, 7] {
        for shorthand in [0, SHORTHAND_SELF, SHORTHAND_ALL, SHORTHAND_OTHERS] {
            reaches("interrupt of the reserved mode", VECTOR, 1, mode << 8 | shorthand, 0)?;
        }
    }
    for mode in TO_SELF {
        reaches("interrupt to itself of the mode", VECTOR, 0, mode | SHORTHAND_SELF, 0)?;
    }
    reaches("the end of an INIT to", VECTOR, 1, DEASSERTED_INIT, 0)?;
    for vector in 0..16 {
        apic::send(1, vector);
    }
    everyone_answers(cpus)
}

/// Each CPU takes an interrupt still.
pub fn everyone_answers(cpus: usize) -> Result<(), Wrong> {
    fixed(cpus)
}

/// Gives each CPU a logical identifier; in x2APIC mode it has one that cannot be changed.
fn set_logical(cpus: usize, format: u32, identifier: fn(usize) -> u8) -> Result<(), Wrong> {
    if apic::is_x2apic() {
        return Ok(());
    }
    let set = |format: u32, identifier: u8| {
        apic::write(Register::DestinationFormat, format);
        apic::write(Register::LogicalDestination, u32::from(identifier) << 24);
    };
    set(format, identifier(0));
    for at in 1..cpus {
        // A function without captures: its value follows from the format and the CPU's number.
        smp::give(at, if format == FLAT { set_flat } else { set_cluster });
        let came = smp::wait_until(|| smp::is_done(at));
        expect("logical identifier of CPU", at as u64, came.into(), 1)?;
    }
    Ok(())
}

fn set_flat(at: usize) {
    apic::write(Register::DestinationFormat, FLAT);
    apic::write(Register::LogicalDestination, 1 << (24 + at as u32 % 8));
}

fn set_cluster(at: usize) {
    apic::write(Register::DestinationFormat, CLUSTER);
    apic::write(Register::LogicalDestination, (at as u32 % 8) << 28 | 1 << (24 + at as u32 % 4));
}
