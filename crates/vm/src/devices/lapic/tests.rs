// SPDX-License-Identifier: MIT OR Apache-2.0
mod addressing;
mod delivery;
mod properties;
mod registers;
mod timer;

use super::*;
use crate::devices::{DeliveryMode, Destination, GuestTsc, InterruptMessage};

const NOW: GuestTsc = GuestTsc(1_000_000);
const X2APIC: u64 = 1 << 10;
const ENABLE: u64 = 1 << 11;

/// A local APIC as Linux leaves it: enabled by software, in xAPIC mode.
fn xapic(id: u32) -> Lapic {
    let mut lapic = Lapic::new(id, id == 0);
    let _ = lapic.write_mmio(0xf0, 0x1ff, NOW);
    lapic
}

/// The same in x2APIC mode.
fn x2apic(id: u32) -> Lapic {
    let mut lapic = xapic(id);
    let _ = lapic.set_apic_base(lapic.apic_base() | X2APIC).unwrap();
    lapic
}

fn fixed(vector: u8) -> InterruptMessage {
    InterruptMessage { destination: Destination::All, mode: DeliveryMode::Fixed, vector, is_level: false }
}

fn level(vector: u8) -> InterruptMessage {
    InterruptMessage { is_level: true, ..fixed(vector) }
}

fn of_mode(mode: DeliveryMode, vector: u8) -> InterruptMessage {
    InterruptMessage { mode, ..fixed(vector) }
}

/// Requests every vector and takes the first that is pending.
fn take(lapic: &mut Lapic, vectors: &[u8]) -> Option<u8> {
    for vector in vectors {
        assert_eq!(lapic.accept(&fixed(*vector)), Acceptance::Requested);
    }
    lapic.acknowledge()
}
