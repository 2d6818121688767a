// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models on hosts with recorded CPUID.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::cpu::cpuid::{CpuidConfig, CpuidTable, CpuidView};

/// Leaf 1 ECX, EDX; leaf 7 EBX, ECX, EDX; leaf 0x8000_0001 ECX, EDX; leaf 0x8000_0008 EBX; leaf 0xD.0 EAX, leaf 0xD.1
/// EAX.
type Snapshot = [u32; 10];

/// A Core i7 of 2013 (Haswell).
const HASWELL: Snapshot = [0x7ffa_fbff, 0xbfeb_fbff, 0x27ab, 0, 0, 0x21, 0x2c10_0800, 0, 7, 1];
/// A Xeon of 2010 (Westmere).
const WESTMERE: Snapshot = [0x029e_e3ff, 0xbfeb_fbff, 0, 0, 0, 0x1, 0x2c10_0800, 0, 0, 0];
const ZEN: Snapshot = [0x7ed8_320b, 0x178b_fbff, 0x209c_01a9, 0, 0, 0x35c2_33ff, 0x2fd3_fbff, 0x1007, 7, 0xf];
const ZEN_2: Snapshot =
    [0x7ed8_320b, 0x178b_fbff, 0x219c_91a9, 0x40_0004, 0, 0x75c2_37ff, 0x2fd3_fbff, 0x10e_b757, 0x207, 0xf];
const ZEN_3: Snapshot =
    [0x7ef8_320b, 0x178b_fbff, 0x219c_97a9, 0x40_069c, 0x10, 0x75c2_37ff, 0x2fd3_fbff, 0x111e_f657, 0x207, 0xf];

fn host(of: Snapshot) -> impl Fn(u32, u32) -> CpuidResult {
    let zero = CpuidResult::default();
    move |leaf, subleaf| match (leaf, subleaf) {
        (0, _) => CpuidResult { eax: 0xd, ..zero },
        (1, _) => CpuidResult { ecx: of[0], edx: of[1], ..zero },
        (7, 0) => CpuidResult { ebx: of[2], ecx: of[3], edx: of[4], ..zero },
        (0x8000_0000, _) => CpuidResult { eax: 0x8000_0008, ..zero },
        (0x8000_0001, _) => CpuidResult { ecx: of[5], edx: of[6], ..zero },
        (0x8000_0008, _) => CpuidResult { eax: 0x3030, ebx: of[7], ..zero },
        (0xd, 0) => CpuidResult { eax: of[8], ebx: 832, ecx: 832, ..zero },
        (0xd, 1) => CpuidResult { eax: of[9], ..zero },
        (0xd, 2) => CpuidResult { eax: 256, ebx: 576, ..zero },
        _ => zero,
    }
}

fn model(name: &str) -> Model {
    Model::named(name).unwrap()
}

fn names() -> impl Iterator<Item = &'static str> {
    MODELS.iter().map(|(name, _)| *name)
}

fn missing(name: &str, of: Snapshot) -> Vec<&'static str> {
    model(name).missing(&host(of)).collect()
}

/// The table of a guest of this model.
fn table(model: Model, of: Snapshot) -> CpuidTable {
    let shown = |leaf, subleaf| model.mask(leaf, subleaf, host(of)(leaf, subleaf));
    CpuidTable::new(&shown, &CpuidConfig { vcpus: 1, tsc_khz: 1_000_000, apic_timer_khz: 1_000_000 })
}

#[test]
fn a_guest_that_was_shown_features_goes_on_where_they_are() {
    let of_host =
        |of| CpuidTable::new(&host(of), &CpuidConfig { vcpus: 1, tsc_khz: 1_000_000, apic_timer_khz: 1_000_000 });
    let missing = |shown: &CpuidTable, of| missing_of(shown, &host(of)).collect::<Vec<_>>();
    for of in [HASWELL, WESTMERE, ZEN, ZEN_2, ZEN_3] {
        assert_eq!(missing(&of_host(of), of), [""; 0]);
    }
    assert_eq!(missing(&of_host(ZEN), ZEN_3), [""; 0]);
    assert_eq!(missing(&table(model("v2"), ZEN_2), ZEN_3), [""; 0]);
    assert!(missing(&of_host(ZEN_3), ZEN).contains(&"VAES"));
    assert!(missing(&of_host(HASWELL), WESTMERE).contains(&"AVX2"));
}

#[test]
fn hosts_have_the_models_of_their_generation_and_of_those_before() {
    let names = |of| names().filter(|name| missing(name, of).is_empty()).collect::<Vec<_>>();
    assert_eq!(names(WESTMERE), ["v2"]);
    assert_eq!(names(HASWELL), ["v2", "v3"]);
    assert_eq!(names(ZEN), ["v2", "v3", "epyc"]);
    assert_eq!(names(ZEN_2), ["v2", "v3", "epyc", "epyc-rome"]);
    assert_eq!(names(ZEN_3), ["v2", "v3", "epyc", "epyc-rome", "epyc-milan"]);
}

#[test]
fn what_a_host_lacks_is_named() {
    assert_eq!(missing("v3", WESTMERE), ["FMA", "MOVBE", "XSAVE", "AVX", "F16C", "BMI1", "AVX2", "BMI2", "LZCNT"]);
    assert_eq!(missing("epyc-rome", ZEN), ["CLWB", "RDPID", "WBNOINVD"]);
    assert_eq!(missing("epyc-milan", ZEN_2), ["ERMS", "INVPCID", "VAES", "VPCLMULQDQ", "FSRM"]);
    let nothing = |_, _| CpuidResult::default();
    assert!(model("v2").missing(&nothing).any(|name| name == "long mode"));
}

/// The CPUs of two hosts differ, those of guests do not, but for protections and what is the host's by its nature.
#[test]
fn guests_of_one_model_see_the_same_features_on_different_hosts() {
    for (name, one, other) in [("v3", HASWELL, ZEN_3), ("v2", HASWELL, ZEN), ("epyc-rome", ZEN_2, ZEN_3)] {
        let model = model(name);
        let [one, other] = [one, other].map(|of| features_of(&table(model, of)));
        for (((leaf, _, register, _), as_host), (one, other)) in
            PLACES.iter().zip(data::AS_HOST).zip(one.into_iter().zip(other))
        {
            assert_eq!(one & !as_host, other & !as_host, "{name}: leaf {leaf:#x} {register:?}");
        }
    }
}

fn features_of(table: &CpuidTable) -> [u32; REGISTERS] {
    let view = CpuidView { apic_id: 0, cr4: 0, xcr0: 1, has_no_apic: false };
    PLACES.map(|(leaf, subleaf, register, _)| *register.of(&mut table.lookup(leaf, subleaf, &view)))
}

#[test]
fn state_and_registers_follow_the_model() {
    assert_eq!(table(model("v3"), ZEN_3).supported_xcr0(), 0b111);
    assert_eq!(table(model("v2"), ZEN_3).supported_xcr0(), 0, "without XSAVE there is no XCR0");
    let speculation = |name| table(model(name), ZEN_3).speculation();
    assert_eq!(speculation("v2"), speculation("epyc-milan"), "protections are the host's");
    assert!(speculation("v2").has_ibpb);
    let no_fast_fxsave = |name| table(model(name), ZEN_3).supported_efer() & crate::vcpu::efer::FFXSR == 0;
    assert!(no_fast_fxsave("v3") && !no_fast_fxsave("epyc"));
}

/// A model that had a bit which no guest is shown would promise it in vain.
#[test]
fn each_bit_of_a_model_is_named_and_shown_where_the_host_has_it() {
    for (name, has) in &MODELS {
        for ((leaf, subleaf, register, features), has) in PLACES.iter().zip(has) {
            for bit in (0..32).filter(|bit| has & 1 << bit != 0) {
                let is_shown = features.iter().any(|(named, _, show)| *named == bit && *show == Show::AsHost);
                assert!(is_shown, "{name}: leaf {leaf:#x}.{subleaf} {register:?} bit {bit}");
            }
        }
    }
}

#[test]
fn names_are_unique_and_others_are_no_models() {
    assert!(names().all(|name| names().filter(|other| *other == name).count() == 1));
    assert!(Model::named("host").is_none() && Model::named("V3").is_none());
}

proptest! {
    /// Whatever a host has, its guest sees nothing beyond host and model; where nothing is missing, all of the model.
    #[test]
    fn a_guest_sees_the_intersection(of: [u32; 10], at in 0..MODELS.len(), is_complete: bool) {
        let model = Model { has: &MODELS[at].1 };
        let mut of = of;
        if is_complete {
            for (register, place) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 8), (6, 9), (7, 10), (9, 7)] {
                of[register] |= model.has[place];
            }
        }
        let seen = features_of(&table(model, of));
        let alone = features_of(&CpuidTable::new(
            &host(of),
            &CpuidConfig { vcpus: 1, tsc_khz: 1_000_000, apic_timer_khz: 1_000_000 },
        ));
        for (place, ((seen, alone), has)) in seen.into_iter().zip(alone).zip(model.has).enumerate() {
            let always = PLACES[place].3.iter().filter(|(_, _, show)| *show == Show::Always);
            let always: u32 = always.map(|(bit, _, _)| 1 << bit).sum();
            prop_assert_eq!(seen & !(alone & (has | data::AS_HOST[place]) | always), 0, "place {}", place);
            // Components that XSAVE saves are shown only where they can be saved.
            if is_complete && PLACES[place].0 != 0xd {
                prop_assert_eq!(has & !seen, 0, "place {}", place);
            }
        }
        prop_assert_eq!(model.missing(&host(of)).next().is_none() || !is_complete, true);
    }
}
