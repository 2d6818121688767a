// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model-specific registers behind [`Actions`]: whether a CPU's work, and what is written on each CPU, in order.
//!
//! Registers: EFER.AIBRSE (AMD APM vol. 2, section 3.1.7), SPEC_CTRL and PRED_CMD (section 3.2.9), DE_CFG and BP_CFG
//! (as named in [`crate::table`]).

use crate::{Actions, Assessment, Cpu, Feature};

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
#[allow(missing_docs)] // The manual's names.
pub enum Register {
    SpecCtrl = 0x48,
    PredCmd = 0x49,
    Efer = 0xc000_0080,
    DeCfg = 0xc001_1029,
    BpCfg = 0xc001_102e,
}

/// PRED_CMD: indirect branch prediction barrier.
pub const IBPB: u64 = 1;
const EFER_AIBRSE: u64 = 1 << 21;
const DE_CFG_LFENCE_SERIALIZES: u64 = 1 << 1;
const DE_CFG_ZENBLEED: u64 = 1 << 9;
const BP_CFG_REDUCE_SPECULATION: u64 = 1 << 4;

/// #GP answered the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// The registers of the calling CPU. A hypervisor below may refuse each of them, or ignore what is written.
pub trait Registers {
    /// Reads one.
    ///
    /// # Errors
    /// [`Refused`]
    fn read(&mut self, register: Register) -> Result<u64, Refused>;

    /// Writes one.
    ///
    /// # Errors
    /// [`Refused`]
    fn write(&mut self, register: Register, value: u64) -> Result<(), Refused>;
}

impl Cpu {
    /// Returns whether a register that CPUID shows takes a value and keeps it. All is as it was afterwards.
    pub fn works(&self, feature: Feature, registers: &mut impl Registers) -> bool {
        let (register, bit) = match feature {
            Feature::SpecCtrl => (Register::SpecCtrl, self.spec_ctrl_bits() & self.spec_ctrl_bits().wrapping_neg()),
            // Write-only: a barrier more does no harm.
            Feature::PredCmd => return registers.write(Register::PredCmd, IBPB).is_ok(),
            Feature::AutoIbrs => (Register::Efer, EFER_AIBRSE),
            Feature::DeCfg => (Register::DeCfg, DE_CFG_LFENCE_SERIALIZES),
            Feature::BpCfg => (Register::BpCfg, BP_CFG_REDUCE_SPECULATION),
        };
        let Ok(before) = registers.read(register) else { return false };
        let keeps = set(registers, register, bit);
        keeps && registers.write(register, before).is_ok()
    }
}

/// Sets bits of a register; returns whether it kept them.
fn set(registers: &mut impl Registers, register: Register, bits: u64) -> bool {
    let mut change = || {
        let before = registers.read(register)?;
        registers.write(register, before | bits)?;
        registers.read(register)
    };
    change().is_ok_and(|after| after & bits == bits)
}

impl Assessment {
    /// Carries out what is done once on each CPU, on the calling one. Returns the actions that it cannot carry out.
    pub fn prepare(&self, registers: &mut impl Registers) -> Actions {
        let wanted = self.actions;
        let steps = [
            (Actions::AUTO_IBRS, Register::Efer, EFER_AIBRSE),
            (Actions::SERIALIZE_LFENCE, Register::DeCfg, DE_CFG_LFENCE_SERIALIZES),
            (Actions::ZENBLEED, Register::DeCfg, DE_CFG_ZENBLEED),
            (Actions::REDUCE_SPECULATION, Register::BpCfg, BP_CFG_REDUCE_SPECULATION),
        ];
        let mut failed = Actions::empty();
        for (action, register, bits) in steps {
            if wanted.contains(action) && !set(registers, register, bits) {
                failed |= action;
            }
        }
        // Without IBRS too: the image before, or firmware, may have left bits set.
        if self.cpu.has(Feature::SpecCtrl) && registers.write(Register::SpecCtrl, wanted.host_spec_ctrl()).is_err() {
            failed |= Actions::IBRS | Actions::IBRS_AT_EXIT;
        }
        let barriers = Actions::IBPB_BETWEEN_GUESTS | Actions::IBPB_AT_EXIT;
        if wanted.intersects(barriers) && registers.write(Register::PredCmd, IBPB).is_err() {
            failed |= barriers;
        }
        failed & wanted
    }
}
