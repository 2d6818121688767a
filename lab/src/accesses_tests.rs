// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces, and what counts as written in a blackout.

use super::*;

fn line((kind, cpu, address, name): (&str, i64, u64, &str)) -> String {
    format!(
        "42@1.000002:memory_region_ops_{kind} cpu {cpu} mr 0x55 addr 0x{address:x} value 0x1 size 4 name '{name}'\n"
    )
}

fn found(accesses: &[(&str, i64, u64, &str)]) -> Accesses {
    read(accesses.iter().copied().map(line).collect::<String>().as_bytes()).expect("text")
}

const GUEST_READS: (&str, i64, u64, &str) = ("read", 1, 0xc800_0098, DEVICE);
const GUEST_STARTS: (&str, i64, u64, &str) = ("write", 1, 0xc800_0098, DEVICE);
const IN_BLACKOUT: (&str, i64, u64, &str) = ("read", 0, 0xfee0_0240, LOCAL_APIC);
const MESSAGE: (&str, i64, u64, &str) = ("write", -1, 0xfee0_0000, "vtd-ir");

#[test]
fn writes_between_the_guests_reads_count_where_the_blackout_is() {
    let iommu = ("write", 0, 0xfed8_0018, "amdvi-mmio");
    let found = found(&[
        ("write", 0, 0xcf8, "pci-conf-idx"),
        iommu,
        GUEST_STARTS,
        GUEST_READS,
        iommu,
        IN_BLACKOUT,
        MESSAGE,
        IN_BLACKOUT,
        ("write", 0, 0xfee0_0380, LOCAL_APIC),
        GUEST_READS,
        iommu,
        GUEST_READS,
    ]);
    let [blackout] = found.blackouts.as_slice() else { panic!("{found:?}") };
    assert_eq!(blackout.counts(), Counts { iommus: 1, ..Counts::default() });
    assert_eq!((blackout.messages, blackout.has_guests_own, blackout.writes[LOCAL_APIC]), (1, false, 1));
    assert_eq!(found.control(), Counts { iommus: 2, configuration: 1, device: 1 });
    assert!(found.control().are_all_there() && blackout.counts().sum() == 1);
}

#[test]
fn every_kind_of_register_counts() {
    let kinds = [
        ("amdvi-mmio", Counts { iommus: 1, ..Counts::default() }),
        ("intel_iommu", Counts { iommus: 1, ..Counts::default() }),
        ("pci-conf-data", Counts { configuration: 1, ..Counts::default() }),
        ("pcie-mmcfg-mmio", Counts { configuration: 1, ..Counts::default() }),
        (DEVICE, Counts { device: 1, ..Counts::default() }),
        ("hpet", Counts::default()),
    ];
    for (name, counts) in kinds {
        let found = found(&[GUEST_READS, IN_BLACKOUT, ("write", 0, 4, name), GUEST_READS]);
        assert_eq!(found.blackouts[0].counts(), counts, "{name}");
        assert!(!found.blackouts[0].has_guests_own && !found.control().are_all_there(), "{name}");
    }
}

#[test]
fn a_blackout_that_begins_right_behind_a_write_of_the_guests_shows_nothing() {
    let blackouts = found(&[GUEST_READS, GUEST_STARTS, IN_BLACKOUT, GUEST_READS]).blackouts;
    assert!(blackouts.len() == 1 && blackouts[0].has_guests_own, "{blackouts:?}");
}

#[test]
fn lines_of_other_kinds_and_halves_of_lines_are_passed_over() {
    let text = format!("qemu: a warning\n{}42@1.2:memory_region_ops_write cpu 0 mr", line(GUEST_READS));
    assert_eq!(read(text.as_bytes()).expect("text"), Accesses::default());
}
