// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans by which CPUs come up: the first one, and those for CPUs that come later.

use core::sync::atomic::{AtomicU64, Ordering};

use boot::options::{KickTime, Options, Smp, TscSync};
use bringup::startup::{Limits, Reach, Vendor, after_init_us, family};
use bringup::tsc::{Mode, SyncPlan};
use bringup::{Crew, Plan, Policy, Shared, SyncOutcome};
use spin::Once;

use super::table::{cells, groups};
use crate::arch::smp;
use crate::arch::{cpu, timer};
use crate::kernel::inherited;
use crate::kernel::timeline::{self, Name};

pub static SHARED: Shared = Shared::new();
pub static CREW: Once<Crew<'static>> = Once::new();
/// The same CPUs with the plans by which they come later: each by name, whatever the first plan was.
pub static LATER: Once<Later> = Once::new();
/// The time at which INIT was sent to all others; 0 if that has not been.
pub static RESET_AT: AtomicU64 = AtomicU64::new(0);

/// The way in which CPUs come that did not come at first, or have left.
pub struct Later {
    new: Crew<'static>,
    /// Without a comparison of clocks.
    back: Crew<'static>,
}

impl Later {
    /// Each by name, whatever the first plan was.
    pub fn after(first: &Plan, ids: &'static [u32]) -> Option<Self> {
        let new = Plan { policy: Policy::Parallel, reach: Reach::Each, reset_at: None, ..*first };
        let back = Plan { sync: SyncPlan { mode: Mode::Skip, ..new.sync }, ..new };
        let [new, back] = [new, back].map(|plan| Crew::new(ids, cells(), groups(), &SHARED, plan).ok());
        Some(Self { new: new?, back: back? })
    }

    /// The plan for one of them. INIT leaves a time stamp counter and its adjustment as they are (AMD APM vol 2, table
    /// 14-1; Intel SDM vol 3, table 10-1), so a decision about a clock stays valid.
    pub fn crew(&self, index: u32) -> &Crew<'static> {
        let outcome = self.new.cell(index).map(|cell| cell.sync().outcome);
        match outcome {
            Some(SyncOutcome::Skipped | SyncOutcome::Agrees | SyncOutcome::Corrected) => &self.back,
            _ => &self.new,
        }
    }
}

/// Sends INIT to the others first of all: if they are of a kind that needs time then, it passes while the boot goes on.
pub fn reset_others(options: &Options) {
    let are_all_wanted = options.cpus.is_none() && options.cpu.is_none();
    // Those that another image has parked are to stay as they are.
    let are_parked = options.smp == Smp::Park && inherited::known().is_some();
    if options.kick == KickTime::Early && options.smp != Smp::Serial && are_all_wanted && !are_parked {
        let _span = timeline::span(Name::ResetOthers, 0);
        RESET_AT.store(smp::reset_others().unwrap_or(0), Ordering::Relaxed);
    }
}

pub fn plan(options: &Options, page: u8, is_all: bool) -> Plan {
    let reset_at = RESET_AT.load(Ordering::Relaxed);
    Plan {
        policy: match options.smp {
            Smp::Serial => Policy::Serial,
            Smp::Park if smp::is_adopting() => Policy::Park,
            Smp::Park | Smp::Parallel => Policy::Parallel,
        },
        reach: if is_all { Reach::Everyone } else { Reach::Each },
        startup_page: page,
        limits: limits(),
        sync: sync_plan(options),
        reset_at: (reset_at != 0).then_some(reset_at),
    }
}

pub fn limits() -> Limits {
    let leaf = cpu::cpuid(0, 0);
    let mut letters = [0; 12];
    for (place, register) in letters.chunks_exact_mut(4).zip([leaf.ebx, leaf.edx, leaf.ecx]) {
        place.copy_from_slice(&register.to_le_bytes());
    }
    let family = family(cpu::cpuid(1, 0).eax);
    Limits::new(timer::us_to_ticks(1), after_init_us(Vendor::from_letters(&letters), family))
}

pub fn sync_plan(options: &Options) -> SyncPlan {
    SyncPlan {
        mode: match options.tsc {
            // The clock of a parked CPU has not stopped.
            TscSync::Auto if options.smp == Smp::Park && inherited::clocks_agree() => Mode::Skip,
            TscSync::Auto => Mode::Auto,
            TscSync::Skip => Mode::Skip,
            TscSync::Measure => Mode::Measure,
        },
        is_invariant: cpu::cpuid(0x8000_0000, 0).eax >= 0x8000_0007 && cpu::cpuid(0x8000_0007, 0).edx & (1 << 8) != 0,
        boot_adjust: smp::tsc_adjust(),
        package_shift: package_shift(),
        shares_cpus: smp::is_virtual(),
    }
}

/// CPUID leaf 0Bh: the last level's shift.
pub fn package_shift() -> u32 {
    if cpu::cpuid(0, 0).eax < 0xb {
        return 0;
    }
    let levels = (0..8).map(|level| cpu::cpuid(0xb, level)).take_while(|leaf| leaf.ecx >> 8 & 0xff != 0);
    levels.map(|leaf| leaf.eax & 0x1f).last().unwrap_or(0)
}
