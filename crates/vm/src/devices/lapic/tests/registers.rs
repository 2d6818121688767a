// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modes and registers.
use super::*;
use crate::addr::Gpa;
use crate::devices::GeneralProtection;

const BASE: u64 = 0xfee0_0000;

#[test]
fn after_power_up_it_is_in_xapic_mode_and_disabled_by_software() {
    let mut lapic = Lapic::new(3, false);
    assert_eq!((lapic.apic_base(), lapic.mode()), (BASE | 0x800, Mode::XApic));
    assert_eq!(Lapic::new(0, true).apic_base(), BASE | 0x900);
    assert_eq!(lapic.register_page(), Gpa(BASE));
    let expected = [(0x20, 3 << 24), (0x30, 0x0005_0014), (0xf0, 0xff), (0xe0, u32::MAX), (0xd0, 0), (0x80, 0)];
    for (offset, value) in expected {
        assert_eq!(lapic.read_mmio(offset, NOW), value, "{offset:#x}");
    }
    assert!((0x320..=0x370).step_by(16).all(|offset| lapic.read_mmio(offset, NOW) == 0x1_0000));
}

#[test]
fn modes_change_along_the_architectures_arrows_only() {
    let (off, xapic_mode, x2apic_mode) = (BASE, BASE | ENABLE, BASE | ENABLE | X2APIC);
    let legal = [(off, off), (off, xapic_mode), (xapic_mode, off), (xapic_mode, x2apic_mode), (x2apic_mode, off)];
    for from in [off, xapic_mode, x2apic_mode] {
        for to in [off, xapic_mode, x2apic_mode, BASE | X2APIC] {
            let mut lapic = if from == x2apic_mode { x2apic(1) } else { xapic(1) };
            if from == off {
                let _ = lapic.set_apic_base(off).unwrap();
            }
            let is_legal = from == to || legal.contains(&(from, to));
            assert_eq!(lapic.set_apic_base(to).is_ok(), is_legal, "{from:#x} to {to:#x}");
            assert_eq!(lapic.apic_base(), if is_legal { to } else { from });
        }
    }
}

#[test]
fn reserved_bits_of_the_base_are_refused() {
    for bit in (0..8).chain([9]).chain(52..64) {
        assert_eq!(xapic(0).set_apic_base(BASE | ENABLE | 1 << bit), Err(GeneralProtection), "bit {bit}");
    }
}

#[test]
fn the_page_moves_and_the_bootstrap_flag_stays() {
    let mut lapic = xapic(0);
    assert_eq!(lapic.set_apic_base(0x1234_5000 | ENABLE), Ok(Action::None));
    assert_eq!((lapic.register_page(), lapic.apic_base()), (Gpa(0x1234_5000), 0x1234_5000 | 0x900));
}

#[test]
fn disabling_the_apic_resets_it() {
    let mut lapic = x2apic(1);
    take(&mut lapic, &[0x41, 0x51]);
    assert_eq!(lapic.set_apic_base(BASE), Ok(Action::TimerChanged));
    assert_eq!(lapic.set_apic_base(BASE | ENABLE), Ok(Action::TimerChanged));
    assert_eq!(lapic, Lapic::new(1, false));
}

#[test]
fn init_keeps_identifier_and_mode() {
    let mut lapic = x2apic(1);
    take(&mut lapic, &[0x41, 0x51]);
    lapic.reset_to_init();
    assert_eq!((lapic.id(), lapic.mode(), lapic.pending()), (1, Mode::X2Apic, None));
    assert_eq!((lapic.highest_in_service(), lapic.read_msr(0x80f, NOW)), (None, Ok(0xff)));
}

#[test]
fn entering_x2apic_mode_keeps_interrupts() {
    let mut lapic = xapic(1);
    assert_eq!(take(&mut lapic, &[0x31, 0x51]), Some(0x51));
    let _ = lapic.write_mmio(0xd0, 0x0200_0000, NOW);
    let _ = lapic.set_apic_base(lapic.apic_base() | X2APIC).unwrap();
    assert_eq!(lapic.read_msr(0x812, NOW), Ok(1 << 17));
    assert_eq!(lapic.read_msr(0x80d, NOW), Ok(2));
}

#[test]
fn each_mode_has_one_way_in() {
    let (mut memory, mut registers) = (xapic(1), x2apic(1));
    assert_eq!(memory.read_msr(0x802, NOW), Err(GeneralProtection));
    assert_eq!(memory.write_msr(0x80b, 0, NOW), Err(GeneralProtection));
    assert_eq!(registers.read_mmio(0x20, NOW), u32::MAX);
    assert_eq!(registers.write_mmio(0x80, 0xff, NOW), Action::None);
    assert_eq!(registers.task_priority(), 0);
    assert_eq!((registers.read_msr(0x802, NOW), memory.read_mmio(0x20, NOW)), (Ok(1), 1 << 24));
}

#[test]
fn exactly_the_x2apic_registers_of_the_manual_can_be_read() {
    let lapic = x2apic(1);
    let readable = (0x7f0..0x910).filter(|msr| lapic.read_msr(*msr, NOW).is_ok());
    let single = [0x802, 0x803, 0x808, 0x80a, 0x80d, 0x80f];
    let expected = single.into_iter().chain(0x810..=0x828).chain([0x830]).chain(0x832..=0x839).chain([0x83e]);
    assert!(readable.eq(expected));
}

#[test]
fn exactly_the_x2apic_registers_of_the_manual_can_be_written() {
    let is_writable = |msr: &u32| [0, 0x41].iter().any(|value| x2apic(1).write_msr(*msr, *value, NOW).is_ok());
    let expected = [0x808, 0x80b, 0x80f, 0x828, 0x830].into_iter().chain(0x832..=0x838).chain([0x83e, 0x83f]);
    assert!((0x7f0..0x910).filter(is_writable).eq(expected));
}

#[test]
fn reserved_bits_of_an_msr_are_refused_and_change_nothing() {
    let cases = [
        (0x808, 0x100),
        (0x80b, 1),
        (0x80f, 0x1400),
        (0x828, 1),
        (0x830, 0x2000),
        (0x830, 0x10_0041),
        (0x832, 0x8_0000),
        (0x835, 0x800),
        (0x837, 0x400),
        (0x838, 1 << 32),
        (0x83e, 4),
        (0x83f, 0x100),
    ];
    for (msr, value) in cases {
        let mut lapic = x2apic(1);
        assert_eq!(lapic.write_msr(msr, value, NOW), Err(GeneralProtection), "{msr:#x}");
        assert_eq!(lapic, x2apic(1));
    }
}

#[test]
fn reserved_bits_in_memory_are_dropped() {
    let mut lapic = xapic(1);
    let expected = [(0x320, 0x7_00ff), (0x330, 0x1_07ff), (0x340, 0x1_07ff), (0x350, 0x1_a7ff), (0x370, 0x1_00ff)];
    for (offset, value) in expected.into_iter().chain([(0x3e0, 0xb), (0xf0, 0x3ff), (0x80, 0xff)]) {
        let _ = lapic.write_mmio(offset, u32::MAX, NOW);
        assert_eq!(lapic.read_mmio(offset, NOW), value, "{offset:#x}");
    }
}

#[test]
fn an_access_to_no_register_is_an_error_in_memory() {
    for access in [0x00, 0x40, 0x90, 0xc0, 0x2f0, 0x3f0, 0x400, 0x84, 0xfff0] {
        let mut lapic = xapic(1);
        assert_eq!(lapic.read_mmio(access, NOW), 0, "{access:#x}");
        let _ = lapic.write_mmio(0x280, 0, NOW);
        assert_eq!(lapic.read_mmio(0x280, NOW), 0x80);
        let _ = lapic.write_mmio(access, 0, NOW);
        let _ = lapic.write_mmio(0x280, 0, NOW);
        assert_eq!(lapic.read_mmio(0x280, NOW), 0x80);
    }
}

#[test]
fn writing_what_can_only_be_read_is_no_error() {
    for offset in [0x20, 0x30, 0xa0, 0x100, 0x1f0, 0x270, 0x390] {
        let mut lapic = xapic(1);
        let _ = lapic.write_mmio(offset, u32::MAX, NOW);
        assert_eq!(lapic, xapic(1), "{offset:#x}");
    }
}

#[test]
fn the_vector_registers_show_their_sets() {
    let mut lapic = xapic(0);
    assert_eq!(lapic.accept(&level(0x95)), Acceptance::Requested);
    lapic.acknowledge();
    assert_eq!(lapic.accept(&fixed(0xff)), Acceptance::Requested);
    let (in_service, trigger_mode, requested) = (0x100 + 0x40, 0x180 + 0x40, 0x270);
    assert_eq!([in_service, trigger_mode, requested].map(|o| lapic.read_mmio(o, NOW)), [1 << 21, 1 << 21, 1 << 31]);
}

#[test]
fn disabling_by_software_masks_the_local_vectors_and_keeps_them_masked() {
    let mut lapic = xapic(0);
    let _ = lapic.write_mmio(0x350, 0x700, NOW);
    assert_eq!(lapic.write_mmio(0xf0, 0xff, NOW), Action::TimerChanged);
    assert_eq!(lapic.read_mmio(0x350, NOW), 0x1_0700);
    let _ = lapic.write_mmio(0x350, 0x400, NOW);
    assert_eq!(lapic.read_mmio(0x350, NOW), 0x1_0400);
    let _ = lapic.write_mmio(0xf0, 0x1ff, NOW);
    assert_eq!(lapic.read_mmio(0x350, NOW), 0x1_0400);
}
