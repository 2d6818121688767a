// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a CPU's first safe code to its loop, and from there out of the host.

use core::sync::atomic::{AtomicBool, Ordering};

use ::update::trial::TrialPage;
use bringup::state::Phase;
use bringup::{CpuCell, Follower, Next, State};

use super::crews::{CREW, LATER};
use super::table::{APIC_IDS, cell};
use super::virtualization::VIRT;
use crate::arch::apic;
use crate::arch::percpu::{self, BOOT_CPU, PerCpu};
use crate::arch::smp::Machine;
use crate::arch::virt::{Unavailable, Virt};
use crate::arch::{cpu, descriptor, ending, fault, timer};
use crate::kernel::timeline::{self, Name};
use crate::kernel::{hooks, inherited};

/// The guests are known: every CPU may enter its loop.
static MAY_JOIN: AtomicBool = AtomicBool::new(false);

/// Lets CPUs that are online into their loops.
pub fn let_in() {
    MAY_JOIN.store(true, Ordering::Release);
}

/// Runs a started CPU: its own way through the states, then its loop.
pub fn enter() -> ! {
    let (Some(first), Some(apic_ids)) = (CREW.get(), APIC_IDS.get()) else { cpu::halt_forever() };
    let Some(index) = first.index_of(apic::id()) else { cpu::halt_forever() };
    let crew = LATER.get().map_or(first, |later| later.crew(index));
    // The CPU that sleeps takes interrupts, which need these three; all of it was made before.
    PerCpu::install(index, apic::id());
    descriptor::load(index);
    timer::prepare_this_cpu();
    if inherited::generation() > 1 && LATER.get().is_none() {
        timeline::end(Name::Parked, index);
    }
    let stop = fault::point!(crate::kernel::faults::stop_at(index), else None);
    if stop == Some(Phase::FirstSign) {
        cpu::halt_forever();
    }
    let mut machine = Machine::new(apic_ids);
    let Ok(mut follower) = Follower::arrive(crew, index, &mut machine) else { cpu::halt_forever() };
    loop {
        if ending::is_under_way() || (stop.is_some() && stop == crew.state(index).awaited()) {
            cpu::halt_forever();
        }
        match follower.poll(&mut machine) {
            Next::Again => machine.relax(),
            Next::Sleep { until } => machine.sleep_until(until),
            Next::Initialise => {
                if follower.initialised(&mut machine) == Next::Halt {
                    cpu::halt_forever();
                }
            }
            Next::Online => break machine.stay_awake(),
            Next::Halt => cpu::halt_forever(),
        }
    }
    note_way(index);
    // Interrupts are masked from each check to the wait itself, so the wake-up that follows the flag is not lost.
    while !MAY_JOIN.load(Ordering::Acquire) {
        cpu::wait_for_interrupt();
    }
    run()
}

/// Puts the calling CPU's way to here on its timeline.
pub fn note_way(index: u32) {
    let Some(stamps) = cell(index).map(CpuCell::stamps) else { return };
    let [kicked, alive, initialised] = [stamps.kicked, stamps.alive, stamps.initialised];
    timeline::spent(Name::FirstSign, index, kicked, alive);
    timeline::spent(Name::Initialisation, index, alive, initialised);
    timeline::spent(Name::TscSync, index, initialised, stamps.synchronised);
    timeline::spent(Name::GoingOnline, index, stamps.synchronised, stamps.online);
}

pub fn run() -> ! {
    let virt = match VIRT.get() {
        Some(Ok(virt)) => virt.prepare(PerCpu::current().index).and_then(|()| virt.enable()).map(|()| *virt),
        Some(Err(unavailable)) => Err(*unavailable),
        None => Err(Unavailable::NoExtension),
    };
    if let Some(hooks) = hooks::get() {
        (hooks.run)(virt);
    }
    rest(virt)
}

/// The calling CPU, which has given away all it had, leaves the host.
fn rest(virt: Result<Virt, Unavailable>) -> ! {
    let me = PerCpu::current();
    timer::clear_alarm();
    apic::mask_timer();
    if let Ok(virt) = virt {
        virt.disable();
    }
    if let Some(cell) = cell(me.index)
        && let Err(state) = cell.leave(State::Offline)
    {
        log::error!("CPU {} leaves, and was {state}", me.index);
    }
    // From here on INIT may come at any moment: nothing is held and nothing half done.
    me.leave();
    percpu::wake(BOOT_CPU);
    cpu::halt_forever()
}

/// The calling CPU's guests are restored, and it goes on with them if all CPUs do.
pub fn take_over(index: u32, page: &'static TrialPage) -> ! {
    let virt = VIRT.get().copied().unwrap_or(Err(Unavailable::NoExtension));
    if let Some(hooks) = hooks::get() {
        (hooks.take_over)(virt, index, page);
    }
    rest(virt)
}
