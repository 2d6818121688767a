// SPDX-License-Identifier: MIT OR Apache-2.0
mod hosts;
mod properties;

use std::fmt::Write;
use std::string::String;
use std::vec::Vec;

use super::features::{Feature, Show};
use super::*;
use hosts::{Leaves, everything, nothing};

const CONFIG: CpuidConfig = CpuidConfig { vcpus: 1, tsc_khz: 3_000_000, apic_timer_khz: 1_000_000 };
const RESET: CpuidView = CpuidView { apic_id: 0, cr4: 0, xcr0: 1, has_no_apic: false };

fn table(host: &Leaves, vcpus: u32) -> CpuidTable {
    CpuidTable::new(host, &CpuidConfig { vcpus, ..CONFIG })
}

fn shown_to(table: &CpuidTable, leaf: u32, subleaf: u32) -> CpuidResult {
    table.lookup(leaf, subleaf, &RESET)
}

/// Every leaf that is not zero, one per line.
fn listing(table: &CpuidTable, view: &CpuidView) -> String {
    let mut text = String::new();
    for leaf in [0..=0x20, 0x4000_0000..=0x4000_0120, 0x8000_0000..=0x8000_0030].into_iter().flatten() {
        // Only these have subleaves; the others return the same for each.
        let subleaves = if matches!(leaf, 4 | 7 | 0xb | 0xd | 0x8000_001d) { 0..=9 } else { 0..=0 };
        for subleaf in subleaves {
            let CpuidResult { eax, ebx, ecx, edx } = table.lookup(leaf, subleaf, view);
            if [eax, ebx, ecx, edx] != [0; 4] {
                writeln!(text, "{leaf:08x}.{subleaf}  {eax:08x} {ebx:08x} {ecx:08x} {edx:08x}").unwrap();
            }
        }
    }
    text
}

#[test]
fn a_guest_sees_these_leaves_of_a_host_that_has_everything() {
    let view = CpuidView { apic_id: 2, cr4: cr4::OSXSAVE, xcr0: 0xe7, has_no_apic: false };
    let expected: Vec<_> = include_str!("tests/everything.txt").lines().filter(|line| !line.starts_with('#')).collect();
    let table = table(&everything(), 4);
    assert_eq!(listing(&table, &view).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_guest_sees_these_leaves_of_a_host_that_has_nothing() {
    let expected: Vec<_> = include_str!("tests/nothing.txt").lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(listing(&table(&nothing(), 1), &RESET).lines().collect::<Vec<_>>(), expected);
}

fn every_table() -> Vec<&'static [Feature]> {
    let mut tables = std::vec![
        features::LEAF_1_ECX,
        features::LEAF_1_EDX,
        features::LEAF_D_1_EAX,
        features::KVM,
        features::LEAF_8000_0001_ECX,
        features::LEAF_8000_0001_EDX,
        features::LEAF_8000_0008_EBX,
        features::LEAF_8000_0021_EAX,
        features::LEAF_8000_0021_ECX,
    ];
    tables.extend(features::LEAF_7_0);
    tables.extend(features::LEAF_7_1);
    tables
}

#[test]
fn each_bit_is_named_once_in_order() {
    for table in every_table() {
        assert!(table.windows(2).all(|pair| pair[0].0 < pair[1].0), "{table:?}");
        assert!(table.iter().all(|&(bit, name, _)| bit < 32 && !name.is_empty()));
    }
}

#[test]
fn a_bit_is_shown_as_the_host_has_it_always_or_never() {
    let policy = [(0, "host", Show::AsHost), (1, "always", Show::Always), (2, "never", Show::Never)];
    assert_eq!(shown(&policy, 0), 0b010);
    assert_eq!(shown(&policy, u32::MAX), 0b011);
}

#[test]
fn virtualization_and_performance_counters_are_hidden() {
    let table = table(&everything(), 1);
    assert_eq!(shown_to(&table, 1, 0).ecx & (1 << 3 | 1 << 5 | 1 << 6), 0);
    assert_eq!(shown_to(&table, 0x8000_0001, 0).ecx & (1 << 2 | 1 << 23 | 1 << 29), 0);
    for leaf in [5, 9, 0xa, 0xf, 0x10, 0x12, 0x14, 0x8000_000a, 0x8000_001b, 0x8000_001c, 0x8000_001f, 0x8000_0022] {
        assert_eq!(shown_to(&table, leaf, 0), CpuidResult::default(), "{leaf:#x}");
    }
}

#[test]
fn what_the_monitor_provides_is_there_on_any_host() {
    let leaf = shown_to(&table(&nothing(), 1), 1, 0);
    assert_eq!((leaf.ecx, leaf.edx), (1 << 21 | 1 << 24 | 1 << 31, 1 << 9));
}

#[test]
fn kvms_leaves_name_what_it_offers_and_the_frequencies() {
    let table = table(&nothing(), 1);
    let signature = shown_to(&table, 0x4000_0000, 0);
    let name = [signature.ebx, signature.ecx, signature.edx].map(u32::to_le_bytes);
    assert_eq!((signature.eax, name.as_flattened()), (0x4000_0010, &b"KVMKVMKVM\0\0\0"[..]));
    assert_eq!(shown_to(&table, 0x4000_0001, 0).eax, 1 << 24 | 1 << 6 | 1 << 5 | 1 << 3 | 1 << 1 | 1);
    let timing = shown_to(&table, 0x4000_0010, 0);
    assert_eq!((timing.eax, timing.ebx), (3_000_000, 1_000_000));
}

#[test]
fn osxsave_follows_cr4() {
    let table = table(&everything(), 1);
    let ecx = |cr4| table.lookup(1, 0, &CpuidView { cr4, ..RESET }).ecx & OSXSAVE;
    assert_eq!((ecx(0), ecx(cr4::OSXSAVE)), (0, OSXSAVE));
}

#[test]
fn topology_is_one_package_of_one_thread_cores() {
    let table = table(&everything(), 6);
    let view = CpuidView { apic_id: 5, ..RESET };
    let leaf = |leaf, subleaf| table.lookup(leaf, subleaf, &view);
    assert_eq!((leaf(1, 0).ebx >> 16, leaf(1, 0).edx >> 28 & 1), (0x0506, 1));
    let [threads, cores, end] = [0, 1, 2].map(|subleaf| leaf(0xb, subleaf));
    assert_eq!((threads.eax, threads.ebx, threads.ecx, threads.edx), (0, 1, 0x100, 5));
    assert_eq!((cores.eax, cores.ebx, cores.ecx, cores.edx), (3, 6, 0x201, 5));
    assert_eq!((end.eax, end.ebx, end.ecx, end.edx), (0, 0, 2, 5));
    assert_eq!(leaf(0x8000_0008, 0).ecx, 3 << 12 | 5);
    assert_eq!((leaf(0x8000_001e, 0).eax, leaf(0x8000_001e, 0).ebx), (5, 5));
}

#[test]
fn only_the_last_cache_is_shared() {
    let table = table(&everything(), 6);
    let sharing = |leaf| [0, 2, 3].map(|subleaf| shown_to(&table, leaf, subleaf).eax >> 14 & 0xfff);
    assert_eq!((sharing(4), sharing(0x8000_001d)), ([0, 0, 7], [0, 0, 7]));
    assert_eq!(shown_to(&table, 4, 0).eax >> 26, 7);
}

#[test]
fn one_cpu_is_no_multiprocessor() {
    let table = table(&everything(), 1);
    assert_eq!((shown_to(&table, 1, 0).edx >> 28 & 1, shown_to(&table, 0x8000_0001, 0).ecx & 2), (0, 0));
    assert_eq!((shown_to(&table, 0xb, 1).eax, shown_to(&table, 0x8000_0008, 0).ecx), (0, 0));
}

#[test]
fn state_sizes_follow_xcr0() {
    let table = table(&everything(), 1);
    let sizes = |xcr0| {
        let leaf = |subleaf| table.lookup(0xd, subleaf, &CpuidView { xcr0, ..RESET });
        (leaf(0).ebx, leaf(0).ecx, leaf(1).ebx)
    };
    assert_eq!(sizes(1), (576, 2688, 576));
    assert_eq!(sizes(7), (832, 2688, 832));
    // In the compacted format AVX-512 follows AVX at once.
    assert_eq!(sizes(0xe7), (2688, 2688, 576 + 256 + 64 + 512 + 1024));
    assert_eq!((table.supported_xcr0(), table.extended_state_bytes()), (0xe7, 2688));
}

/// A CPU with an XSAVE that would write beyond the area that a vCPU has.
#[test]
fn a_component_that_ends_beyond_the_area_is_neither_shown_nor_saved() {
    let leaf = |component: u32| match component {
        2 => CpuidResult { eax: 256, ebx: 576, ecx: 0, edx: 0 },
        5 => CpuidResult { eax: 64, ebx: 4096 - 64, ecx: 0, edx: 0 },
        6 => CpuidResult { eax: 512, ebx: 4096 - 511, ecx: 0, edx: 0 },
        7 => CpuidResult { eax: u32::MAX, ebx: u32::MAX, ecx: 0, edx: 0 },
        _ => CpuidResult::default(),
    };
    assert_eq!(fitting(0xe7, leaf), (0x27, 4096));
    assert_eq!(fitting(0b111, leaf), (0b111, 832));
    assert_eq!(fitting(0b11, leaf), (0b11, 576));
    let host = |number: u32, subleaf: u32| match (number, subleaf) {
        (0xd, 0) => CpuidResult { eax: 0xe7, ..everything().leaf(0xd, 0) },
        (0xd, subleaf @ 2..) => leaf(subleaf),
        _ => everything().leaf(number, subleaf),
    };
    let table = CpuidTable::new(&host, &CpuidConfig { vcpus: 1, tsc_khz: 1, apic_timer_khz: 1 });
    assert_eq!((table.supported_xcr0(), table.extended_state_bytes()), (0b111, 832));
}

#[test]
fn xcr0_takes_only_combinations_that_the_architecture_allows() {
    let table = table(&everything(), 1);
    for valid in [1, 3, 7, 0xe7] {
        assert_eq!(table.check_xcr0(valid), Ok(()), "{valid:#x}");
    }
    for invalid in [0, 2, 5, 0x23, 0x27, 0xe3, 1 << 9 | 7, 0x18 | 7, 1 << 63 | 7] {
        assert_eq!(table.check_xcr0(invalid), Err(GeneralProtection), "{invalid:#x}");
    }
    assert_eq!(super::tests::table(&nothing(), 1).check_xcr0(1), Err(GeneralProtection));
}

#[test]
fn efer_bits_follow_the_features() {
    let all = efer::SCE | efer::LME | efer::LMA | efer::NXE | efer::FFXSR;
    assert_eq!(table(&everything(), 1).supported_efer(), all);
    assert_eq!(table(&nothing(), 1).supported_efer(), 0);
}

#[test]
fn a_leaf_beyond_the_hosts_last_is_not_asked_for() {
    let host = |leaf: u32, _: u32| match leaf {
        0 => CpuidResult { eax: 1, ..Default::default() },
        1 => CpuidResult::default(),
        0x8000_0000 => CpuidResult { eax: 0x8000_0000, ..Default::default() },
        leaf => panic!("leaf {leaf:#x} was asked for"),
    };
    CpuidTable::new(&host, &CONFIG);
}
