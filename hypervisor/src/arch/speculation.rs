// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mitigations of speculation vulnerabilities, by the instructions that carry them out. `mitigations` decides;
//! `svm/switch.S` has what is done at entries and exits.
//!
//! Registers: EFER.AIBRSE (AMD APM vol. 2, section 3.1.7), SPEC_CTRL and PRED_CMD (section 3.2.9), DE_CFG and BP_CFG
//! (as named in `mitigations::table`).

use core::sync::atomic::{AtomicU32, Ordering};

use mitigations::barrier::LastGuest;
use mitigations::{Actions, Assessment, Cpu, Feature, Mode, assess};
use spin::Once;

use super::cpu_local::cpu_local;
use super::percpu::PerCpu;
use super::{cpu, probe};

const MSR_SPEC_CTRL: u32 = 0x48;
const MSR_PRED_CMD: u32 = 0x49;
const PRED_CMD_IBPB: u64 = 1;
const MSR_MICROCODE: u32 = 0x8b;
const MSR_EFER: u32 = 0xc000_0080;
const EFER_AIBRSE: u64 = 1 << 21;
const MSR_DE_CFG: u32 = 0xc001_1029;
const DE_CFG_LFENCE_SERIALIZES: u64 = 1 << 1;
const DE_CFG_ZENBLEED: u64 = 1 << 9;
const MSR_BP_CFG: u32 = 0xc001_102e;
const BP_CFG_REDUCE_SPECULATION: u64 = 1 << 4;

static ASSESSMENT: Once<Assessment> = Once::new();
/// Actions that a CPU could not carry out although the boot CPU could, or because nothing could be probed.
static FAILED: AtomicU32 = AtomicU32::new(0);
cpu_local! {
    /// The guest that the CPU ran last.
    static LAST_GUEST: LastGuest = LastGuest::new();
}

/// Assesses the calling CPU, once and for all. `may_probe`: its traps are this image's; else what CPUID reports is
/// believed until [`prepare_this_cpu`].
pub fn detect(mode: Mode, shares_cores: bool, may_probe: bool) -> &'static Assessment {
    ASSESSMENT.call_once(|| {
        let leaf = |leaf| {
            let found = cpu::cpuid(leaf, 0);
            [found.eax, found.ebx, found.ecx, found.edx]
        };
        let claimed = Cpu { shares_cores, ..Cpu::read(leaf) };
        // SAFETY: every CPU has the register; reading it has no effect. A hypervisor's CPU may not, and its revision
        // states nothing.
        let microcode = if claimed.is_virtual { 0 } else { unsafe { cpu::read_msr(MSR_MICROCODE) } };
        let claimed = Cpu { microcode: microcode as u32, ..claimed };
        let refused = Feature::ALL.into_iter().filter(|feature| may_probe && claimed.has(*feature) && !works(*feature));
        let found = refused.fold(claimed, |cpu, feature| {
            log::warn!("mitigations: CPUID shows {feature:?}, but its register does not work: it is not used");
            cpu.without(feature)
        });
        assess(&found, mode)
    })
}

/// Returns what is known and done; nothing before [`detect`].
pub fn assessment() -> Option<&'static Assessment> {
    ASSESSMENT.get()
}

/// Returns what is done on every CPU.
pub fn actions() -> Actions {
    let failed = Actions::from_bits_retain(FAILED.load(Ordering::Relaxed));
    assessment().map_or(Actions::empty(), |assessment| assessment.actions) & !failed
}

/// Returns whether a register that CPUID shows takes a value and keeps it. All is as it was afterwards.
fn works(feature: Feature) -> bool {
    let (msr, bit) = match feature {
        Feature::SpecCtrl => (MSR_SPEC_CTRL, lowest(cpu::cpuid(0x8000_0008, 0).ebx)),
        // Write-only: a barrier more does no harm.
        // SAFETY: see above.
        Feature::PredCmd => return unsafe { probe::write_msr(MSR_PRED_CMD, PRED_CMD_IBPB) }.is_ok(),
        Feature::AutoIbrs => (MSR_EFER, EFER_AIBRSE),
        Feature::DeCfg => (MSR_DE_CFG, DE_CFG_LFENCE_SERIALIZES),
        Feature::BpCfg => (MSR_BP_CFG, BP_CFG_REDUCE_SPECULATION),
    };
    // SAFETY: reading these has no effect.
    let Ok(before) = (unsafe { probe::read_msr(msr) }) else { return false };
    let holds = set(msr, bit);
    // SAFETY: what it was.
    holds && unsafe { probe::write_msr(msr, before) }.is_ok()
}

/// The lowest bit of SPEC_CTRL that CPUID 8000_0008h EBX shows.
fn lowest(sizes_ebx: u32) -> u64 {
    let bits = Cpu { sizes_ebx, ..Cpu::default() }.spec_ctrl_bits();
    bits & bits.wrapping_neg()
}

/// Sets bits of a register of those above; whether it kept them.
fn set(msr: u32, bits: u64) -> bool {
    // SAFETY: each of these bits holds speculation back or makes LFENCE wait, and changes no result of any instruction.
    let change = || unsafe {
        let before = probe::read_msr(msr)?;
        probe::write_msr(msr, before | bits)?;
        probe::read_msr(msr)
    };
    change().is_ok_and(|after| after & bits == bits)
}

/// Carries out what is done once on each CPU, on the calling one, which has this image's traps.
pub fn prepare_this_cpu() {
    let Some(assessment) = assessment() else { return };
    let wanted = assessment.actions;
    let steps = [
        (Actions::AUTO_IBRS, MSR_EFER, EFER_AIBRSE),
        (Actions::SERIALIZE_LFENCE, MSR_DE_CFG, DE_CFG_LFENCE_SERIALIZES),
        (Actions::ZENBLEED, MSR_DE_CFG, DE_CFG_ZENBLEED),
        (Actions::REDUCE_SPECULATION, MSR_BP_CFG, BP_CFG_REDUCE_SPECULATION),
    ];
    for (action, msr, bits) in steps {
        if wanted.contains(action) && !set(msr, bits) {
            fail(action);
        }
    }
    let exchanges = Actions::IBRS | Actions::IBRS_AT_EXIT;
    if assessment.cpu.has(Feature::SpecCtrl) {
        // SAFETY: the host's value, of bits that the CPU has.
        let written = unsafe { probe::write_msr(MSR_SPEC_CTRL, wanted.host_spec_ctrl()) };
        if written.is_err() {
            fail(wanted & exchanges);
        }
    }
    let barriers = Actions::IBPB_BETWEEN_GUESTS | Actions::IBPB_AT_EXIT;
    // SAFETY: a barrier has no other effect.
    if wanted.intersects(barriers) && unsafe { probe::write_msr(MSR_PRED_CMD, PRED_CMD_IBPB) }.is_err() {
        fail(wanted & barriers);
    }
}

fn fail(action: Actions) {
    if !actions().intersects(action) {
        return;
    }
    FAILED.fetch_or(action.bits(), Ordering::Relaxed);
    log::error!(
        "CPU {}: mitigation {action:?} cannot be carried out: it is not done any more",
        PerCpu::current().index
    );
}

/// The calling CPU loads a vCPU of this guest: predictions of another guest's are flushed.
pub fn follow_guest(guest: u32) {
    let barrier = actions().contains(Actions::IBPB_BETWEEN_GUESTS);
    if barrier && LAST_GUEST.mine().follow(guest) {
        // SAFETY: the register took the command when this CPU was prepared; a barrier has no other effect.
        unsafe { cpu::write_msr(MSR_PRED_CMD, PRED_CMD_IBPB) };
    }
}
