// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers' writes on each CPU, modelled: no emulator has AutoIBRS, SPEC_CTRL, DE_CFG or BP_CFG.

use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use super::models::{ALL, GENOA, K8, MILAN, PILEDRIVER, ROME, TURIN};
use crate::registers::{Refused, Register, Registers};
use crate::{Actions, Assessment, Cpu, Feature, Mode, assess};

const FEATURES: [(Feature, Register); 5] = [
    (Feature::SpecCtrl, Register::SpecCtrl),
    (Feature::PredCmd, Register::PredCmd),
    (Feature::AutoIbrs, Register::Efer),
    (Feature::DeCfg, Register::DeCfg),
    (Feature::BpCfg, Register::BpCfg),
];
/// SCE, LME, LMA, NXE and SVME; and bits of firmware's in the others.
const EFER: u64 = 1 | 1 << 8 | 1 << 10 | 1 << 11 | 1 << 12;
const FIRMWARES: u64 = 1 << 33;

/// A CPU's registers: only those exist that CPUID shows, and EFER.
struct Model {
    values: BTreeMap<Register, u64>,
    /// Does not keep what is written.
    ignores: Option<Register>,
    writes: Vec<(Register, u64)>,
}

impl Model {
    fn of(cpu: &Cpu) -> Self {
        let shown = FEATURES.into_iter().filter(|(feature, _)| cpu.has(*feature));
        let mut values: BTreeMap<_, _> = shown.map(|(_, register)| (register, FIRMWARES)).collect();
        values.insert(Register::Efer, EFER);
        if cpu.has(Feature::SpecCtrl) {
            values.insert(Register::SpecCtrl, cpu.spec_ctrl_bits());
        }
        Self { values, ignores: None, writes: Vec::new() }
    }

    fn without(cpu: &Cpu, register: Register) -> Self {
        let mut model = Self::of(cpu);
        model.values.remove(&register);
        model
    }

    fn ignoring(cpu: &Cpu, register: Register) -> Self {
        Self { ignores: Some(register), ..Self::of(cpu) }
    }
}

impl Registers for Model {
    fn read(&mut self, register: Register) -> Result<u64, Refused> {
        assert_ne!(register, Register::PredCmd, "PRED_CMD is write-only");
        self.values.get(&register).copied().ok_or(Refused)
    }

    fn write(&mut self, register: Register, value: u64) -> Result<(), Refused> {
        self.writes.push((register, value));
        let kept = self.values.get_mut(&register).ok_or(Refused)?;
        if self.ignores != Some(register) {
            *kept = value;
        }
        Ok(())
    }
}

fn prepared(cpu: &Cpu, mode: Mode) -> (Assessment, Model) {
    let (assessment, mut model) = (assess(cpu, mode), Model::of(cpu));
    assert_eq!(assessment.prepare(&mut model), Actions::empty(), "{cpu:?}");
    (assessment, model)
}

#[test]
fn each_cpus_registers_are_written_in_this_order() {
    let writes = |cpu: &Cpu| prepared(cpu, Mode::Auto).1.writes;
    let efer = (Register::Efer, EFER | 1 << 21);
    let (lfence, zenbleed) = ((Register::DeCfg, FIRMWARES | 1 << 1), (Register::DeCfg, FIRMWARES | 1 << 1 | 1 << 9));
    let (ibrs, none, barrier) = ((Register::SpecCtrl, 1), (Register::SpecCtrl, 0), (Register::PredCmd, 1));
    let reduced = (Register::BpCfg, FIRMWARES | 1 << 4);
    assert_eq!(writes(&K8), vec![]);
    assert_eq!(writes(&PILEDRIVER), vec![lfence, barrier]);
    // An IBPB follows each exit: IBRS is not needed.
    assert_eq!(writes(&ROME), vec![lfence, none, barrier]);
    let old_microcode = Cpu { microcode: 1, ..ROME };
    assert_eq!(writes(&old_microcode), vec![lfence, zenbleed, none, barrier]);
    assert_eq!(writes(&MILAN), vec![none, barrier]);
    let srso_is_no_matter = Cpu { extended_eax: MILAN.extended_eax | 1 << 29, ..MILAN };
    assert_eq!(writes(&srso_is_no_matter), vec![ibrs, barrier]);
    assert_eq!(writes(&GENOA), vec![efer, none, barrier]);
    assert_eq!(writes(&TURIN), vec![efer, reduced, none, barrier]);
}

#[test]
fn each_action_is_in_its_register_and_all_other_bits_are_as_they_were() {
    for (cpu, mode) in ALL.iter().flat_map(|cpu| [(cpu, Mode::Auto), (cpu, Mode::Off)]) {
        let (assessment, model) = prepared(cpu, mode);
        let bit = |action, bit| if assessment.actions.contains(action) { 1_u64 << bit } else { 0 };
        let de_cfg = bit(Actions::SERIALIZE_LFENCE, 1) | bit(Actions::ZENBLEED, 9);
        let expected = [
            (Register::Efer, EFER | bit(Actions::AUTO_IBRS, 21)),
            (Register::DeCfg, FIRMWARES | de_cfg),
            (Register::BpCfg, FIRMWARES | bit(Actions::REDUCE_SPECULATION, 4)),
            (Register::SpecCtrl, bit(Actions::IBRS, 0)),
        ];
        for (register, value) in expected {
            assert!(model.values.get(&register).is_none_or(|found| *found == value), "{cpu:?} {mode:?} {register:?}");
        }
        let barriers = model.writes.iter().filter(|write| **write == (Register::PredCmd, 1)).count();
        let has_barriers = assessment.actions.intersects(Actions::IBPB_BETWEEN_GUESTS | Actions::IBPB_AT_EXIT);
        assert_eq!(barriers, usize::from(has_barriers), "{cpu:?} {mode:?}");
        let is_there = |(register, _): &(Register, u64)| model.values.contains_key(register);
        assert!(model.writes.iter().all(is_there), "{cpu:?} {mode:?}: a register that CPUID does not show");
    }
}

/// A register that one CPU refuses or does not keep costs the actions behind it and no other.
#[test]
fn what_a_register_does_not_take_is_reported_and_the_rest_is_done() {
    let cases = [
        (&TURIN, Register::Efer, Actions::AUTO_IBRS),
        (&ROME, Register::DeCfg, Actions::SERIALIZE_LFENCE),
        (&TURIN, Register::BpCfg, Actions::REDUCE_SPECULATION),
    ];
    for (cpu, register, action) in cases {
        for mut model in [Model::without(cpu, register), Model::ignoring(cpu, register)] {
            assert_eq!(assess(cpu, Mode::Auto).prepare(&mut model), action);
            assert_eq!(model.writes.last(), Some(&(Register::PredCmd, 1)), "the rest");
        }
    }
    let srso_is_no_matter = Cpu { extended_eax: MILAN.extended_eax | 1 << 29, ..MILAN };
    let assessment = assess(&srso_is_no_matter, Mode::Auto);
    let refused = assessment.prepare(&mut Model::without(&srso_is_no_matter, Register::SpecCtrl));
    assert_eq!(refused, assessment.actions & (Actions::IBRS | Actions::IBRS_AT_EXIT));
    assert!(!refused.is_empty());
    let refused = assessment.prepare(&mut Model::without(&srso_is_no_matter, Register::PredCmd));
    assert_eq!(refused, Actions::IBPB_BETWEEN_GUESTS);
}

#[test]
fn a_feature_works_if_its_register_keeps_a_bit_and_is_as_before_afterwards() {
    for cpu in &ALL {
        for (feature, register) in FEATURES.into_iter().filter(|(feature, _)| cpu.has(*feature)) {
            let mut model = Model::of(cpu);
            model.values.entry(Register::SpecCtrl).and_modify(|value| *value = 0);
            let before = model.values.clone();
            assert!(cpu.works(feature, &mut model), "{cpu:?} {feature:?}");
            model.values.entry(Register::PredCmd).and_modify(|value| *value = FIRMWARES);
            assert_eq!(model.values, before, "{cpu:?} {feature:?}");
            assert!(!cpu.works(feature, &mut Model::without(cpu, register)), "{cpu:?} {feature:?} is refused");
            let mut ignoring = Model::ignoring(cpu, register);
            ignoring.values.entry(Register::SpecCtrl).and_modify(|value| *value = 0);
            let is_readable = register != Register::PredCmd;
            assert_eq!(cpu.works(feature, &mut ignoring), !is_readable, "{cpu:?} {feature:?} is ignored");
        }
    }
}
