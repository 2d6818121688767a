// SPDX-License-Identifier: MIT OR Apache-2.0
//! Senders and receivers of messages.
use super::*;

/// Writes the interrupt command in xAPIC mode.
fn command(lapic: &mut Lapic, destination: u8, low: u32) -> Action {
    let _ = lapic.write_mmio(0x310, u32::from(destination) << 24, NOW);
    lapic.write_mmio(0x300, low, NOW)
}

fn command_x2(lapic: &mut Lapic, destination: u32, low: u64) -> Action {
    lapic.write_msr(0x830, u64::from(destination) << 32 | low, NOW).unwrap()
}

const fn sent(destination: Destination, mode: DeliveryMode, vector: u8) -> Action {
    Action::Send(InterruptMessage { destination, mode, vector, is_level: false })
}

#[test]
fn a_command_names_its_receiver() {
    let mut lapic = xapic(0);
    let vector = sent(Destination::Physical(3), DeliveryMode::Fixed, 0x41);
    assert_eq!(command(&mut lapic, 3, 0x41), vector);
    assert_eq!(command(&mut lapic, 3, 0x841), sent(Destination::Logical(3), DeliveryMode::Fixed, 0x41));
    assert_eq!(command(&mut lapic, 0, 0x8_0041), sent(Destination::All, DeliveryMode::Fixed, 0x41));
    assert_eq!(command(&mut lapic, 0, 0xc_0041), sent(Destination::AllButSelf, DeliveryMode::Fixed, 0x41));
    assert_eq!(command(&mut lapic, 0, 0xc_0402), sent(Destination::AllButSelf, DeliveryMode::Nmi, 2));
    assert_eq!(command(&mut lapic, 1, 0x141), sent(Destination::Physical(1), DeliveryMode::LowestPriority, 0x41));
}

#[test]
fn all_ones_mean_every_one_in_the_senders_width() {
    assert_eq!(command(&mut xapic(0), 0xff, 0x41), sent(Destination::Physical(u32::MAX), DeliveryMode::Fixed, 0x41));
    let mut lapic = x2apic(0);
    assert_eq!(command_x2(&mut lapic, 0xff, 0x41), sent(Destination::Physical(0xff), DeliveryMode::Fixed, 0x41));
    let everyone = sent(Destination::Physical(u32::MAX), DeliveryMode::Fixed, 0x41);
    assert_eq!(command_x2(&mut lapic, u32::MAX, 0x41), everyone);
}

#[test]
fn an_interrupt_to_oneself_is_taken_at_once() {
    let mut lapic = xapic(0);
    assert_eq!(command(&mut lapic, 0, 0x4_0041), Action::None);
    assert_eq!(lapic.pending(), Some(0x41));
    let mut lapic = x2apic(0);
    assert_eq!(lapic.write_msr(0x83f, 0x42, NOW), Ok(Action::None));
    assert_eq!(lapic.pending(), Some(0x42));
}

#[test]
fn a_sequence_that_starts_a_cpu_is_sent() {
    let mut lapic = xapic(0);
    assert_eq!(command(&mut lapic, 1, 0xc500), sent(Destination::Physical(1), DeliveryMode::Init, 0));
    assert_eq!(command(&mut lapic, 1, 0x8500), Action::None);
    assert_eq!(command(&mut lapic, 1, 0x69a), sent(Destination::Physical(1), DeliveryMode::Startup, 0x9a));
}

#[test]
fn what_has_no_meaning_is_not_sent() {
    let mut lapic = xapic(0);
    for low in [0x341, 0x741, 0x241, 0x4_0541, 0x8_0641, 0x4_0141] {
        assert_eq!(command(&mut lapic, 1, low), Action::None, "{low:#x}");
    }
    assert_eq!(lapic.pending(), None);
}

#[test]
fn sending_an_illegal_vector_is_an_error() {
    for (msr, value) in [(0x830, 0x0f), (0x83f, 3)] {
        let mut lapic = x2apic(0);
        assert_eq!(lapic.write_msr(msr, value, NOW), Ok(Action::None));
        assert_eq!(lapic.write_msr(0x828, 0, NOW), Ok(Action::None));
        assert_eq!(lapic.read_msr(0x828, NOW), Ok(0x20));
    }
}

#[test]
fn a_command_reads_back() {
    let mut lapic = xapic(0);
    let _ = command(&mut lapic, 3, 0x1841);
    assert_eq!((lapic.read_mmio(0x300, NOW), lapic.read_mmio(0x310, NOW)), (0x841, 3 << 24));
    let mut lapic = x2apic(0);
    let _ = command_x2(&mut lapic, 0x1234_5678, 0x1841);
    assert_eq!(lapic.read_msr(0x830, NOW), Ok(0x1234_5678_0000_0841));
}

#[test]
fn shorthands_know_the_sender() {
    let lapic = xapic(2);
    assert!(lapic.matches(Destination::Itself, 2) && !lapic.matches(Destination::Itself, 1));
    assert!(lapic.matches(Destination::AllButSelf, 1) && !lapic.matches(Destination::AllButSelf, 2));
    assert!(lapic.matches(Destination::All, 1) && lapic.matches(Destination::All, 2));
}

#[test]
fn a_physical_destination_is_an_identifier_or_every_one() {
    for lapic in [xapic(2), x2apic(2)] {
        assert!(lapic.matches(Destination::Physical(2), 0));
        assert!(!lapic.matches(Destination::Physical(3), 0));
        assert!(lapic.matches(Destination::Physical(u32::MAX), 0));
    }
    assert!(xapic(2).matches(Destination::Physical(0xff), 0));
    assert!(!x2apic(2).matches(Destination::Physical(0xff), 0));
}

#[test]
fn flat_logical_destinations_share_a_bit() {
    let mut lapic = xapic(2);
    let _ = lapic.write_mmio(0xd0, 0x04ff_ffff, NOW);
    assert_eq!(lapic.read_mmio(0xd0, NOW), 0x0400_0000);
    assert!(lapic.matches(Destination::Logical(0x06), 0));
    assert!(!lapic.matches(Destination::Logical(0x03), 0));
    assert!(lapic.matches(Destination::Logical(0xff), 0));
}

#[test]
fn clustered_logical_destinations_share_the_cluster_and_a_bit() {
    let mut lapic = xapic(2);
    let _ = lapic.write_mmio(0xe0, 0, NOW);
    let _ = lapic.write_mmio(0xd0, 0x2400_0000, NOW);
    assert_eq!(lapic.read_mmio(0xe0, NOW), 0x0fff_ffff);
    assert!(lapic.matches(Destination::Logical(0x26), 0));
    assert!(!lapic.matches(Destination::Logical(0x23), 0));
    assert!(!lapic.matches(Destination::Logical(0x34), 0));
    assert!(lapic.matches(Destination::Logical(0xf4), 0));
}

#[test]
fn x2apic_logical_destinations_come_from_the_identifier() {
    let lapic = x2apic(0x25);
    assert_eq!(lapic.read_msr(0x80d, NOW), Ok(0x0002_0020));
    assert!(lapic.matches(Destination::Logical(0x0002_0021 | 0x20), 0));
    assert!(!lapic.matches(Destination::Logical(0x0002_0010), 0));
    assert!(!lapic.matches(Destination::Logical(0x0003_0020), 0));
    assert!(lapic.matches(Destination::Logical(u32::MAX), 0));
}

#[test]
fn a_disabled_apic_hears_nothing() {
    let mut lapic = xapic(2);
    let _ = lapic.set_apic_base(lapic.apic_base() & !ENABLE).unwrap();
    assert!(!lapic.matches(Destination::Physical(2), 0) && !lapic.matches(Destination::All, 0));
    assert_eq!(lapic.accept(&of_mode(DeliveryMode::Init, 0)), Acceptance::Ignored);
}
