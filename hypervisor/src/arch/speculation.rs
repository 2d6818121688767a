// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mitigations of speculation vulnerabilities, by the instructions that carry them out. `mitigations` decides, and has
//! the order of each CPU's writes; `svm/switch.S` has what is done at entries and exits.

use core::sync::atomic::{AtomicU32, Ordering};

use mitigations::barrier::LastGuest;
use mitigations::registers::{IBPB, Refused, Register, Registers};
use mitigations::{Actions, Assessment, Cpu, Feature, Mode, assess};
use spin::Once;

use super::cpu_local::cpu_local;
use super::percpu::PerCpu;
use super::{cpu, probe};

const MSR_MICROCODE: u32 = 0x8b;

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
        let refused = Feature::ALL
            .into_iter()
            .filter(|feature| may_probe && claimed.has(*feature) && !claimed.works(*feature, &mut ThisCpu));
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

/// The calling CPU's registers, behind an IDT of this image's.
struct ThisCpu;

impl Registers for ThisCpu {
    fn read(&mut self, register: Register) -> Result<u64, Refused> {
        // SAFETY: reading any of these has no effect.
        unsafe { probe::read_msr(register as u32) }.map_err(|probe::Refused| Refused)
    }

    fn write(&mut self, register: Register, value: u64) -> Result<(), Refused> {
        // SAFETY: `mitigations` changes bits that hold speculation back or make LFENCE wait, which change no result of
        // any instruction, and leaves the others as they were.
        unsafe { probe::write_msr(register as u32, value) }.map_err(|probe::Refused| Refused)
    }
}

/// Carries out what is done once on each CPU, on the calling one, which has this image's traps.
pub fn prepare_this_cpu() {
    if let Some(assessment) = assessment() {
        fail(assessment.prepare(&mut ThisCpu));
    }
}

fn fail(failed: Actions) {
    if !actions().intersects(failed) {
        return;
    }
    FAILED.fetch_or(failed.bits(), Ordering::Relaxed);
    log::error!(
        "CPU {}: mitigation {failed:?} cannot be carried out: it is not done any more",
        PerCpu::current().index
    );
}

/// The calling CPU loads a vCPU of this guest: predictions of another guest's are flushed.
pub fn follow_guest(guest: u32) {
    let barrier = actions().contains(Actions::IBPB_BETWEEN_GUESTS);
    if barrier && LAST_GUEST.mine().follow(guest) {
        // SAFETY: the register took the command when this CPU was prepared; a barrier has no other effect.
        unsafe { cpu::write_msr(Register::PredCmd as u32, IBPB) };
    }
}
