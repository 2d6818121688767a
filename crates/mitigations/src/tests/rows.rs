// SPDX-License-Identifier: MIT OR Apache-2.0
use std::string::{String, ToString};
use std::vec::Vec;

use proptest::prelude::*;

use super::models::{ALL, GENOA, K8, MILAN, NAPLES, PILEDRIVER, ROME, TURIN};
use crate::{Actions, Cpu, Feature, Mode, Status, TABLE, Vendor, assess};

fn report(cpu: &Cpu, name: &str) -> String {
    let row = TABLE.iter().position(|row| row.name == name).expect("a row");
    assess(cpu, Mode::Auto).statuses[row].to_string()
}

fn actions(cpu: &Cpu) -> Actions {
    assess(cpu, Mode::Auto).actions
}

#[test]
fn rows_are_named_once_and_have_a_source() {
    for (place, row) in TABLE.iter().enumerate() {
        assert!(row.source.contains("CVE-"), "{}", row.name);
        assert!(TABLE[..place].iter().all(|other| other.name != row.name), "{}", row.name);
    }
}

#[test]
fn intels_own_vulnerabilities_are_not_amds() {
    for name in ["gather_data_sampling", "itlb_multihit", "l1tf", "mds", "meltdown", "mmio_stale_data", "srbds"] {
        ALL.iter().for_each(|cpu| assert_eq!(report(cpu, name), "Not affected", "{name}"));
    }
}

#[test]
fn automatic_ibrs_keeps_guests_predictions_out_of_the_host() {
    for cpu in [GENOA, TURIN] {
        assert!(actions(&cpu).contains(Actions::AUTO_IBRS | Actions::IBPB_BETWEEN_GUESTS));
        assert_eq!(report(&cpu, "spectre_v2"), "Mitigation: Enhanced / Automatic IBRS; IBPB: between guests");
    }
    assert!(!actions(&TURIN).contains(Actions::STUFF_RETURN_STACK));
}

#[test]
fn without_automatic_ibrs_an_ibpb_or_ibrs_follows_each_exit() {
    let safe = Cpu { extended_eax: 1 << 29, ..MILAN };
    assert!(actions(&safe).contains(Actions::IBRS | Actions::STUFF_RETURN_STACK));
    assert!(!actions(&safe).contains(Actions::IBRS_AT_EXIT));
    let restless = Cpu { sizes_ebx: safe.sizes_ebx & !(1 << 16), svm_edx: 0, ..safe };
    assert!(actions(&restless).contains(Actions::IBRS | Actions::IBRS_AT_EXIT));
    assert_eq!(report(&restless, "spectre_v2"), "Mitigation: IBRS; IBPB: between guests");
    assert!(actions(&NAPLES).contains(Actions::IBPB_AT_EXIT | Actions::STUFF_RETURN_STACK));
    assert_eq!(report(&NAPLES, "spectre_v2"), "Mitigation: IBPB on VMEXIT; IBPB: between guests");
    assert_eq!(report(&K8, "spectre_v2"), "Vulnerable: no Automatic IBRS, no IBRS, no IBPB");
}

#[test]
fn bounds_checks_without_barriers_are_admitted() {
    for cpu in &ALL {
        assert!(report(cpu, "spectre_v1").starts_with("Vulnerable: registers cleared"));
        assert!(actions(cpu).contains(Actions::CLEAR_REGISTERS));
    }
}

#[test]
fn branch_type_confusion_takes_an_ibpb_at_each_exit() {
    for cpu in [PILEDRIVER, NAPLES, ROME] {
        assert_eq!(report(&cpu, "retbleed"), "Mitigation: IBPB on VMEXIT");
        assert!(actions(&cpu).contains(Actions::IBPB_AT_EXIT));
        let shared = Cpu { shares_cores: true, ..cpu };
        assert_eq!(report(&shared, "retbleed"), "Mitigation: IBPB on VMEXIT; SMT vulnerable");
        assert_eq!(report(&Cpu { sizes_ebx: 0, ..cpu }, "retbleed"), "Vulnerable: no IBPB");
    }
    assert_eq!(report(&MILAN, "retbleed"), "Not affected");
}

#[test]
fn return_stack_overflow_is_mitigated_as_each_generation_allows() {
    for cpu in [MILAN, GENOA] {
        assert_eq!(report(&cpu, "spec_rstack_overflow"), "Mitigation: IBPB on VMEXIT");
        assert!(actions(&cpu).contains(Actions::IBPB_AT_EXIT));
        let old = Cpu { extended_eax: cpu.extended_eax & !(1 << 28), ..cpu };
        assert_eq!(report(&old, "spec_rstack_overflow"), "Vulnerable: No microcode");
        let safe = Cpu { extended_eax: cpu.extended_eax | 1 << 29, ..cpu };
        assert_eq!(report(&safe, "spec_rstack_overflow"), "Not affected");
    }
    assert_eq!(report(&TURIN, "spec_rstack_overflow"), "Mitigation: Reduced Speculation");
    assert!(!actions(&TURIN).contains(Actions::IBPB_AT_EXIT));
    assert_eq!(report(&ROME, "spec_rstack_overflow"), "Mitigation: SMT disabled");
    let shared = Cpu { shares_cores: true, ..ROME };
    assert_eq!(report(&shared, "spec_rstack_overflow"), "Mitigation: IBPB on VMEXIT");
    assert_eq!(report(&K8, "spec_rstack_overflow"), "Not affected");
}

#[test]
fn store_bypass_is_the_guests_to_disable() {
    assert!(report(&MILAN, "spec_store_bypass").starts_with("Mitigation: Speculative Store Bypass disabled by guests"));
    assert_eq!(report(&NAPLES, "spec_store_bypass"), "Vulnerable: no SSBD for guests");
    assert_eq!(report(&Cpu { sizes_ebx: 1 << 26, ..MILAN }, "spec_store_bypass"), "Not affected");
}

#[test]
fn scheduler_attacks_take_verw_and_microcode() {
    for cpu in [MILAN, GENOA] {
        assert!(actions(&cpu).contains(Actions::CLEAR_BUFFERS));
        assert_eq!(report(&cpu, "tsa"), "Mitigation: Clear CPU buffers");
        let attempted = "Vulnerable: Clear CPU buffers attempted, no microcode";
        assert_eq!(report(&Cpu { microcode: cpu.microcode - 1, ..cpu }, "tsa"), attempted);
        assert_eq!(report(&Cpu { is_virtual: true, ..cpu }, "tsa"), attempted);
        let announced = Cpu { is_virtual: true, extended_eax: cpu.extended_eax | 1 << 5, ..cpu };
        assert_eq!(report(&announced, "tsa"), "Mitigation: Clear CPU buffers");
        assert_eq!(report(&Cpu { extended_ecx: 0b110, ..cpu }, "tsa"), "Not affected");
    }
    assert_eq!(report(&ROME, "tsa"), "Not affected");
    assert_eq!(report(&TURIN, "tsa"), "Not affected");
}

#[test]
fn zenbleed_is_zen_2s_and_old_microcodes() {
    assert_eq!(report(&ROME, "zenbleed"), "Mitigation: Microcode");
    let old = Cpu { microcode: 0x0830_107a, ..ROME };
    assert_eq!(report(&old, "zenbleed"), "Mitigation: DE_CFG bit 9");
    assert!(actions(&old).contains(Actions::ZENBLEED));
    assert!(!actions(&ROME).contains(Actions::ZENBLEED));
    assert_eq!(report(&Cpu { has_de_cfg: false, ..old }, "zenbleed"), "Vulnerable: No microcode");
    assert!(report(&Cpu { is_virtual: true, ..ROME }, "zenbleed").starts_with("Unknown: a hypervisor is below"));
    for cpu in [K8, NAPLES, MILAN] {
        assert_eq!(report(&cpu, "zenbleed"), "Not affected");
    }
}

#[test]
fn the_first_zen_clears_its_divider() {
    assert_eq!(report(&NAPLES, "div0"), "Mitigation: Clear divider before VMRUN");
    assert!(actions(&NAPLES).contains(Actions::CLEAR_DIVIDER));
    assert_eq!(report(&ROME, "div0"), "Not affected");
}

#[test]
fn sleeping_threads_concern_cores_that_guests_share() {
    assert_eq!(report(&ROME, "smt_rsb"), "Not affected");
    let shared = Cpu { shares_cores: true, ..ROME };
    assert_eq!(report(&shared, "smt_rsb"), "Mitigation: HLT and MWAIT intercepted");
    assert_eq!(report(&GENOA, "vmscape"), "Mitigation: no user mode in the host");
}

#[test]
fn a_vendor_without_a_column_is_unknown_and_untouched() {
    let cpu = Cpu { vendor: Vendor::Other, ..MILAN };
    let assessment = assess(&cpu, Mode::Auto);
    assert!(assessment.statuses.iter().all(|status| matches!(status, Status::Unknown(_))));
    assert!(assessment.actions.is_empty());
}

#[test]
fn lfence_is_made_serializing_where_it_is_not_whatever_the_mode() {
    for mode in [Mode::Auto, Mode::Off] {
        assert!(assess(&ROME, mode).actions.contains(Actions::SERIALIZE_LFENCE));
        assert!(!assess(&MILAN, mode).actions.contains(Actions::SERIALIZE_LFENCE));
        assert!(!assess(&K8, mode).actions.contains(Actions::SERIALIZE_LFENCE));
    }
    assert!(ROME.lfence_serializes() && MILAN.lfence_serializes() && K8.lfence_serializes());
    assert!(!ROME.without(Feature::DeCfg).lfence_serializes());
}

#[test]
fn guests_are_shown_lfence_and_verw_only_where_they_work() {
    let announced = |cpu: &Cpu| assess(cpu, Mode::Auto).leaf(0x8000_0021, [cpu.extended_eax, 0, 0, 0])[0] & 0b10_0100;
    assert_eq!(announced(&ROME), 1 << 2);
    assert_eq!(announced(&ROME.without(Feature::DeCfg)), 0);
    assert_eq!(announced(&MILAN), 1 << 5 | 1 << 2);
    assert_eq!(announced(&Cpu { is_virtual: true, ..MILAN }), 1 << 2);
    // The leaf that reports it is there, even where the CPU has none.
    assert_eq!(assess(&ROME, Mode::Auto).leaf(0x8000_0000, [0x8000_001f, 1, 2, 3]), [0x8000_0021, 1, 2, 3]);
    let mute = Cpu { has_de_cfg: false, ..ROME };
    assert_eq!(assess(&mute, Mode::Auto).leaf(0x8000_0000, [0x8000_001f, 1, 2, 3]), [0x8000_001f, 1, 2, 3]);
}

#[test]
fn what_a_hypervisor_below_claims_and_refuses_is_not_used_or_shown() {
    for feature in Feature::ALL {
        let cpu = TURIN.without(feature);
        assert!(!cpu.has(feature), "{feature:?}");
        assert!(Feature::ALL.iter().all(|other| *other == feature || cpu.has(*other)), "{feature:?}");
    }
    let none = Feature::ALL.iter().fold(GENOA, |cpu, feature| cpu.without(*feature));
    assert_eq!(report(&none, "spectre_v2"), "Vulnerable: no Automatic IBRS, no IBRS, no IBPB");
    let registers = Actions::AUTO_IBRS
        | Actions::IBRS
        | Actions::IBPB_AT_EXIT
        | Actions::IBPB_BETWEEN_GUESTS
        | Actions::SERIALIZE_LFENCE
        | Actions::REDUCE_SPECULATION
        | Actions::ZENBLEED;
    assert!(!actions(&none).intersects(registers));
    assert_eq!(assess(&none, Mode::Auto).leaf(0x8000_0008, [0, u32::MAX, 0, 0])[1], 1 << 29);
}

#[test]
fn with_mitigations_off_nothing_is_done_at_a_switch() {
    for cpu in ALL {
        let assessment = assess(&cpu, Mode::Off);
        assert_eq!(assessment.actions & !Actions::ALWAYS, Actions::empty());
        let auto = assess(&cpu, Mode::Auto);
        for (off, auto) in assessment.statuses.iter().zip(&auto.statuses) {
            assert_eq!(*off == Status::NotAffected, *auto == Status::NotAffected);
            assert!(*off == Status::NotAffected || off.to_string() == "Vulnerable: mitigations=off");
        }
    }
}

#[test]
fn families_and_models_are_read_as_amd_encodes_them() {
    let cpuid = |leaf| match leaf {
        0 => [0xd, 0x6874_7541, 0x444d_4163, 0x6974_6e65],
        1 => [0x00a0_0f11, 0, 1 << 31, 0],
        0x8000_0000 => [0x8000_0021, 0, 0, 0],
        0x8000_0008 => [0, 7, 0, 0],
        0x8000_000a => [0, 0, 0, 8],
        0x8000_0021 => [9, 0, 10, 0],
        leaf => panic!("leaf {leaf:#x} was asked for"),
    };
    let cpu = Cpu::read(cpuid);
    assert_eq!((cpu.vendor, cpu.family, cpu.model, cpu.microcode), (Vendor::Amd, 0x19, 0x01, 0));
    assert_eq!((cpu.sizes_ebx, cpu.svm_edx, cpu.extended_eax, cpu.extended_ecx), (7, 8, 9, 10));
    assert!(cpu.is_virtual && cpu.has_de_cfg);
    let short = |leaf| if leaf == 0x8000_0000 { [0x8000_0007, 0, 0, 0] } else { cpuid(leaf) };
    assert_eq!(Cpu::read(short).sizes_ebx, 0);
}

proptest! {
    #[test]
    fn nothing_is_done_that_the_cpu_has_no_register_for(
        family in 0_u32..0x20, model in 0_u32..0x100, microcode: u32, is_virtual: bool, sizes_ebx: u32, svm_edx: u32,
        extended_eax: u32, extended_ecx: u32, has_de_cfg: bool, shares_cores: bool,
    ) {
        let vendor = Vendor::Amd;
        let cpu = Cpu {
            vendor, family, model, microcode, is_virtual, sizes_ebx, svm_edx, extended_eax, extended_ecx, has_de_cfg, shares_cores,
        };
        let done = actions(&cpu);
        let needs: Vec<(Actions, bool)> = std::vec![
            (Actions::AUTO_IBRS, cpu.has(Feature::AutoIbrs)),
            (Actions::IBRS | Actions::IBRS_AT_EXIT, cpu.has_ibrs()),
            (Actions::IBPB_AT_EXIT | Actions::IBPB_BETWEEN_GUESTS, cpu.has(Feature::PredCmd)),
            (Actions::SERIALIZE_LFENCE | Actions::ZENBLEED, cpu.has(Feature::DeCfg)),
            (Actions::REDUCE_SPECULATION, cpu.has(Feature::BpCfg)),
        ];
        for (action, is_there) in needs {
            prop_assert!(is_there || !done.intersects(action), "{action:?}");
        }
        // No vulnerability is called mitigated by an IBPB that is not done.
        for status in assess(&cpu, Mode::Auto).statuses {
            let is_reported = matches!(status, Status::Mitigation(first, _) if first.starts_with("IBPB on VMEXIT"));
            prop_assert!(!is_reported || done.contains(Actions::IBPB_AT_EXIT));
        }
    }
}
