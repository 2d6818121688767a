// SPDX-License-Identifier: MIT OR Apache-2.0
//! From acceptance to end.
use super::*;

#[test]
fn an_interrupt_is_requested_taken_and_ended() {
    let mut lapic = xapic(0);
    assert_eq!(lapic.accept(&fixed(0x41)), Acceptance::Requested);
    assert_eq!(lapic.pending(), Some(0x41));
    assert_eq!(lapic.acknowledge(), Some(0x41));
    assert_eq!((lapic.pending(), lapic.highest_in_service()), (None, Some(0x41)));
    assert_eq!(lapic.end_of_interrupt(), Action::None);
    assert_eq!(lapic.highest_in_service(), None);
}

#[test]
fn the_higher_vector_goes_first_and_the_lower_waits_for_its_end() {
    let mut lapic = xapic(0);
    assert_eq!(take(&mut lapic, &[0x41, 0xf2, 0x83]), Some(0xf2));
    assert_eq!(lapic.acknowledge(), None);
    let _ = lapic.end_of_interrupt();
    assert_eq!(lapic.acknowledge(), Some(0x83));
    let _ = lapic.end_of_interrupt();
    assert_eq!(lapic.acknowledge(), Some(0x41));
}

#[test]
fn a_higher_class_interrupts_a_lower_one_but_not_its_own() {
    let mut lapic = xapic(0);
    assert_eq!(take(&mut lapic, &[0x41]), Some(0x41));
    assert_eq!(take(&mut lapic, &[0x4f]), None);
    assert_eq!(take(&mut lapic, &[0x50]), Some(0x50));
    assert_eq!(lapic.processor_priority(), 0x50);
    let _ = lapic.end_of_interrupt();
    assert_eq!((lapic.highest_in_service(), lapic.pending()), (Some(0x41), None));
    let _ = lapic.end_of_interrupt();
    assert_eq!(lapic.pending(), Some(0x4f));
}

#[test]
fn every_vector_finds_its_way() {
    let mut lapic = xapic(0);
    for vector in 16..=255 {
        assert_eq!(take(&mut lapic, &[vector]), Some(vector));
        let _ = lapic.end_of_interrupt();
    }
    assert_eq!(lapic.pending(), None);
}

#[test]
fn a_vector_requested_twice_is_delivered_once() {
    let mut lapic = xapic(0);
    assert_eq!(take(&mut lapic, &[0x41, 0x41]), Some(0x41));
    let _ = lapic.end_of_interrupt();
    assert_eq!(lapic.pending(), None);
}

#[test]
fn a_vector_in_service_can_be_requested_again() {
    let mut lapic = xapic(0);
    take(&mut lapic, &[0x41]);
    assert_eq!(take(&mut lapic, &[0x41]), None);
    let _ = lapic.end_of_interrupt();
    assert_eq!(lapic.acknowledge(), Some(0x41));
}

#[test]
fn the_end_of_a_level_goes_to_the_ioapic() {
    let mut lapic = xapic(0);
    assert_eq!(lapic.accept(&level(0x41)), Acceptance::Requested);
    lapic.acknowledge();
    assert_eq!(lapic.write_mmio(0xb0, 0, NOW), Action::EndOfInterrupt(0x41));
    assert_eq!(take(&mut lapic, &[0x41]), Some(0x41));
    assert_eq!(lapic.end_of_interrupt(), Action::None);
}

#[test]
fn an_end_without_an_interrupt_does_nothing() {
    assert_eq!(xapic(0).end_of_interrupt(), Action::None);
}

#[test]
fn the_task_priority_holds_back_its_class_and_lower_ones() {
    let mut lapic = xapic(0);
    let _ = lapic.write_mmio(0x80, 0x45, NOW);
    assert_eq!(take(&mut lapic, &[0x4f]), None);
    assert_eq!((lapic.processor_priority(), lapic.task_priority()), (0x45, 4));
    assert_eq!(take(&mut lapic, &[0x51]), Some(0x51));
    lapic.set_task_priority(3);
    let _ = lapic.end_of_interrupt();
    assert_eq!(lapic.acknowledge(), Some(0x4f));
    assert_eq!((lapic.read_mmio(0x80, NOW), lapic.read_mmio(0xa0, NOW)), (0x30, 0x40));
}

#[test]
fn cr8_has_four_bits() {
    let mut lapic = xapic(0);
    lapic.set_task_priority(0xff);
    assert_eq!((lapic.task_priority(), lapic.pending()), (15, None));
    assert_eq!(take(&mut lapic, &[0xff]), None);
}

#[test]
fn vectors_below_sixteen_are_an_error() {
    let mut lapic = xapic(0);
    let _ = lapic.write_mmio(0x370, 0xfe, NOW);
    assert_eq!(lapic.accept(&fixed(15)), Acceptance::Ignored);
    assert_eq!(lapic.pending(), Some(0xfe));
    assert_eq!(lapic.read_mmio(0x280, NOW), 0);
    let _ = lapic.write_mmio(0x280, 0, NOW);
    assert_eq!(lapic.read_mmio(0x280, NOW), 0x40);
    let _ = lapic.write_mmio(0x280, 0, NOW);
    assert_eq!(lapic.read_mmio(0x280, NOW), 0);
}

#[test]
fn an_illegal_error_vector_is_one_more_error_and_no_interrupt() {
    let mut lapic = xapic(0);
    let _ = lapic.write_mmio(0x370, 0x05, NOW);
    let _ = lapic.write_mmio(0x300, 0x4_0001, NOW);
    let _ = lapic.write_mmio(0x280, 0, NOW);
    assert_eq!((lapic.read_mmio(0x280, NOW), lapic.pending()), (0x60, None));
}

#[test]
fn nmi_init_and_startup_are_the_cpus() {
    let mut lapic = Lapic::new(1, false);
    assert_eq!(lapic.accept(&of_mode(DeliveryMode::Nmi, 2)), Acceptance::Nmi);
    assert_eq!(lapic.accept(&of_mode(DeliveryMode::Init, 0)), Acceptance::Init);
    assert_eq!(lapic.accept(&of_mode(DeliveryMode::Startup, 0x9a)), Acceptance::Startup(0x9a));
    assert_eq!(lapic.accept(&of_mode(DeliveryMode::Smi, 0)), Acceptance::Ignored);
    assert_eq!(lapic.accept(&of_mode(DeliveryMode::ExternalInterrupt, 0)), Acceptance::Ignored);
}

#[test]
fn disabled_by_software_it_takes_no_vectors_and_holds_those_it_has() {
    let mut lapic = xapic(0);
    assert_eq!(lapic.accept(&fixed(0x41)), Acceptance::Requested);
    let _ = lapic.write_mmio(0xf0, 0xff, NOW);
    assert_eq!(lapic.accept(&fixed(0x51)), Acceptance::Ignored);
    assert_eq!((lapic.pending(), lapic.acknowledge()), (None, None));
    let _ = lapic.write_mmio(0xf0, 0x1ff, NOW);
    assert_eq!(lapic.pending(), Some(0x41));
}

#[test]
fn the_end_may_be_skipped_of_a_lone_edge_only() {
    let mut lapic = xapic(0);
    assert!(!lapic.eoi_may_be_skipped());
    take(&mut lapic, &[0x41]);
    assert!(lapic.eoi_may_be_skipped());
    assert_eq!(lapic.accept(&fixed(0x31)), Acceptance::Requested);
    assert!(!lapic.eoi_may_be_skipped());

    let mut nested = xapic(0);
    take(&mut nested, &[0x41]);
    take(&mut nested, &[0x51]);
    assert!(!nested.eoi_may_be_skipped());
    let _ = nested.end_of_interrupt();
    assert!(nested.eoi_may_be_skipped());

    let mut of_level = xapic(0);
    assert_eq!(of_level.accept(&level(0x41)), Acceptance::Requested);
    of_level.acknowledge();
    assert!(!of_level.eoi_may_be_skipped());
}

#[test]
fn a_performance_interrupt_follows_its_entry() {
    let mut lapic = xapic(0);
    assert_eq!(lapic.raise_performance_interrupt(false), Acceptance::Ignored);
    let _ = lapic.write_mmio(0x340, 0x400, NOW);
    assert_eq!(lapic.raise_performance_interrupt(false), Acceptance::Nmi);
    assert_eq!(lapic.raise_performance_interrupt(true), Acceptance::Nmi);
    assert_eq!(lapic.raise_performance_interrupt(true), Acceptance::Ignored);
    let _ = lapic.write_mmio(0x340, 0x41, NOW);
    assert_eq!(lapic.raise_performance_interrupt(false), Acceptance::Requested);
    assert_eq!(lapic.pending(), Some(0x41));
}
