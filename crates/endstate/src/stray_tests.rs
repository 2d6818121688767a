// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn the_chipset_names_an_nmis_source() {
    for (status, source) in [
        (0x00, NmiSource::Unknown),
        (0x30, NmiSource::Unknown),
        (0x80, NmiSource::Serr),
        (0xb0, NmiSource::Serr),
        (0x40, NmiSource::IoCheck),
        (0x4f, NmiSource::IoCheck),
        (0xc0, NmiSource::SerrAndIoCheck),
        (0xfe, NmiSource::SerrAndIoCheck),
    ] {
        assert_eq!(NmiSource::of(status), source, "{status:#x}");
    }
}

#[test]
fn a_port_that_no_device_answers_at_names_no_source() {
    assert_eq!(NmiSource::of(0xff), NmiSource::Unknown);
}

#[test]
fn a_source_that_has_interrupted_is_disabled_and_nothing_else_is() {
    for status in 0..=u8::MAX {
        let source = NmiSource::of(status);
        let disabled = source.disabled(status);
        assert_eq!(disabled.is_none(), source == NmiSource::Unknown, "{status:#x}");
        let Some(written) = disabled else { continue };
        // The speaker's bits stay, read-only bits are written as zeros.
        assert_eq!(written & 0b0011, status & 0b0011, "{status:#x}");
        assert_eq!(written & 0xf0, 0, "{status:#x}");
        let expected = (status & 0x80 != 0, status & 0x40 != 0);
        let before = (status & 0b0100 != 0, status & 0b1000 != 0);
        assert_eq!(written & 0b0100 != 0, expected.0 || before.0, "{status:#x}");
        assert_eq!(written & 0b1000 != 0, expected.1 || before.1, "{status:#x}");
    }
}

#[test]
fn every_stray_is_counted_and_one_in_an_interval_is_logged() {
    let strays = Strays::new();
    assert_eq!((strays.count(), strays.last_vector()), (0, None));
    let noted: [Option<Notice>; 5] = core::array::from_fn(|at| strays.note(0x50 + at as u8, 100 + at as u64, 3));
    assert_eq!(
        noted,
        [Some(Notice { count: 1, unlogged: 0 }), None, None, Some(Notice { count: 4, unlogged: 2 }), None]
    );
    assert_eq!((strays.count(), strays.last_vector()), (5, Some(0x54)));
    assert_eq!(strays.note(0x20, u64::MAX, 3), Some(Notice { count: 6, unlogged: 1 }));
}

#[test]
fn a_storm_on_many_cpus_loses_no_count_and_fills_no_log() {
    const EACH: u64 = 10_000;
    let strays = Strays::new();
    let logged: u64 = std::thread::scope(|scope| {
        let cpus: std::vec::Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..EACH).filter_map(|_| strays.note(0x60, 1, 1_000)).count() as u64))
            .collect();
        cpus.into_iter().map(|cpu| cpu.join().expect("a count")).sum()
    });
    assert_eq!((strays.count(), logged), (4 * EACH, 1));
}
