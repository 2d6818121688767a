// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides whether all time stamp counters agree.
//!
//! They are reset together and run from one crystal, and only a write can set them apart. Where the CPU shows each
//! write in `IA32_TSC_ADJUST`, equal values prove equal counters (within one package), and nothing need be measured
//! ([`decide`]). Elsewhere a CPU asks one that is already synchronised for the time, until an answer was quick enough
//! or sixteen times. It believes the quickest answer ([`Estimate`]). This takes some microseconds, instead of
//! milliseconds of watching whether time runs backwards. A CPU asks its parent in the tree, so that all but the first
//! few are measured at the same time; under a hypervisor it asks the boot CPU, which lets them take turns. With its
//! first question a CPU wakes the one that it asks, and sleeps until it is answered; the answer wakes it. From then on
//! both execute, and poll without pause, for a short spell.

mod estimate;
mod exchange;
mod measure;

pub use estimate::Estimate;
pub use exchange::Exchange;
pub use measure::{Measurement, Patience, Progress, ROUNDS, SHARED_ROUNDS};

/// The operator's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Measure unless it is proven needless.
    Auto,
    /// Never measure.
    Skip,
    /// Always measure.
    Measure,
}

/// Facts known before the first CPU is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncPlan {
    /// The operator's choice.
    pub mode: Mode,
    /// CPUID `8000_0007h` EDX bit 8: the counter runs at one rate, whatever the CPU does.
    pub is_invariant: bool,
    /// The boot CPU's `IA32_TSC_ADJUST`, where it exists.
    pub boot_adjust: Option<u64>,
    /// APIC identifiers shifted right by this are numbers of packages (CPUID leaf 0Bh or 1Fh, the last level's shift).
    /// Packages may have left reset at different times, so equal adjustments prove something within one only.
    pub package_shift: u32,
    /// CPUID leaf 1 ECX bit 31: a hypervisor or an emulator is below, and may have fewer CPUs than it shows. Then
    /// pairs that exchange stamps at the same time keep each other from executing, so all ask the boot CPU, in
    /// turn.
    pub shares_cpus: bool,
}

impl SyncPlan {
    /// The number of a CPU's package.
    pub const fn package(&self, apic_id: u32) -> u32 {
        match apic_id.checked_shr(self.package_shift) {
            Some(package) => package,
            None => 0,
        }
    }

    /// Questions per measurement at most. Of partners that cannot both execute the quickest answer comes as soon as
    /// any.
    pub const fn rounds(&self) -> u32 {
        if self.shares_cpus { SHARED_ROUNDS } else { ROUNDS }
    }

    /// Returns whether CPUs will probably have to be measured, so that those already synchronised had better stay to
    /// answer.
    pub const fn expects_exchanges(&self, is_one_package: bool) -> bool {
        match self.mode {
            Mode::Auto => !(self.is_invariant && self.boot_adjust.is_some() && is_one_package),
            Mode::Skip => false,
            Mode::Measure => true,
        }
    }
}

/// The decision about one CPU's counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Do nothing.
    Skip,
    /// Measure it.
    Measure,
}

/// Returns whether a CPU with this `IA32_TSC_ADJUST`, in the boot CPU's package or not, must be measured (Intel SDM
/// vol 3, section 18.17.3: the register holds the sum of everything that was ever written to the counter since reset).
pub fn decide(plan: &SyncPlan, is_same_package: bool, adjust: Option<u64>) -> Decision {
    let is_proven = plan.is_invariant && is_same_package && adjust.is_some() && adjust == plan.boot_adjust;
    match plan.mode {
        Mode::Skip => Decision::Skip,
        Mode::Auto if is_proven => Decision::Skip,
        Mode::Auto | Mode::Measure => Decision::Measure,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
