// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bringing up the other CPUs at boot, by the policy chosen.

use alloc::vec::Vec;

use boot::options::{KickTime, LogBuffer, Options, Smp};
use bringup::{BringUp, CpuCell, Crew, State, Summary, in_order, last_first_sign};

use super::crews::{CREW, LATER, Later, SHARED, plan};
use super::entry::enter;
use super::table::{APIC_IDS, apic_id, cell, cells, groups, identifiers, online, set_identifiers};
use crate::arch::apic;
use crate::arch::percpu::{MAX_CPUS, PerCpu};
use crate::arch::smp::{self, Machine};
use crate::arch::{descriptor, stack};
use crate::kernel::platform::options;
use crate::kernel::timeline::{self, Name};
use crate::kernel::{console, inherited, places};

pub const NOT_STARTED: &str = "the other CPUs are not started";

/// The other CPUs, on their way or not yet.
pub struct Others {
    machine: Machine,
    crew: Option<&'static Crew<'static>>,
    /// Those that are wanted from the start.
    wanted: Vec<u32>,
    under_way: Option<BringUp<'static>>,
}

impl Others {
    /// Prepares every CPU that the firmware names and the operator wants, and (unless the operator wants that later)
    /// orders them to start; waits for none.
    pub fn kick() -> Self {
        let mut this = Self { machine: Machine::new(&[]), crew: None, wanted: Vec::new(), under_way: None };
        let Some(options) = options() else { return this };
        let (ids, named) = identifiers(apic::id());
        let ids = set_identifiers(ids);
        places::prepare(ids.len());
        if ids.len() > 1 {
            this.machine = Machine::new(ids);
            let parked = if options.smp == Smp::Park { adopt_parked(ids) } else { Vec::new() };
            this.wanted = if parked.is_empty() { wanted(options, ids.len() as u32) } else { parked };
            this.crew = prepare(ids, &this.wanted, options, named);
        }
        if options.kick == KickTime::Early {
            this.begin();
        }
        this
    }

    fn begin(&mut self) {
        if let (Some(crew), None, false) = (self.crew, &self.under_way, self.wanted.is_empty()) {
            let _span = timeline::span(Name::Kick, self.wanted.len() as u32);
            self.under_way = Some(BringUp::begin(crew, &self.wanted, &mut self.machine));
        }
    }

    /// Does what has become due since. Called between the steps of the boot.
    pub fn tend(&mut self) {
        if let Some(under_way) = &mut self.under_way {
            under_way.tend(&mut self.machine);
        }
    }

    /// Waits until each of them is online or given up. Those that were not wanted can be brought online later.
    pub fn wait(mut self) {
        self.begin();
        if let (Some(crew), Some(under_way)) = (self.crew, self.under_way) {
            let _span = timeline::span(Name::AwaitOthers, self.wanted.len() as u32);
            let summary = under_way.wait(&mut self.machine);
            self.machine.stay_awake();
            report(crew, &summary);
        }
        if let (Some(crew), Some(ids)) = (self.crew, APIC_IDS.get()) {
            Later::after(crew.plan(), ids).into_iter().for_each(|later| _ = LATER.call_once(|| later));
        }
        console::log::log_memory();
        log::info!("CPUs: {} online", online().len());
    }
}

/// The CPUs that wait at their mailboxes: they are those that are wanted.
pub fn adopt_parked(ids: &[u32]) -> Vec<u32> {
    let Some(adoption) = inherited::adoption(ids) else { return Vec::new() };
    let indices = 0..adoption.mailboxes.len() as u32;
    let parked = indices.filter(|index| adoption.mailboxes[*index as usize].is_some());
    let marked = parked.filter(|index| cell(*index).is_some_and(CpuCell::mark_parked));
    let marked = marked.collect();
    smp::adopt(adoption);
    marked
}

/// Returns which of `count` CPUs the operator wants from the start, but for the first, which is there.
pub fn wanted(options: &Options, count: u32) -> Vec<u32> {
    if let Some(list) = &options.cpu {
        if let Some(absent) = list.numbers().find(|number| *number >= count) {
            log::warn!("option cpu: there is no CPU {absent}; this machine has 0 to {}", count - 1);
        }
        if !list.contains(0) {
            log::warn!("option cpu: CPU 0 boots the host and is used too");
        }
    }
    let others = (1..count).filter(|index| options.cpu.is_none_or(|list| list.contains(*index)));
    others.take(options.cpus.map_or(MAX_CPUS, |limit| limit as usize - 1)).collect()
}

/// Makes everything that those that are wanted need, so that none of them waits for a lock or for memory later.
pub fn prepare(ids: &'static [u32], wanted: &[u32], options: &Options, named: usize) -> Option<&'static Crew<'static>> {
    let _span = timeline::span(Name::PrepareOthers, wanted.len() as u32);
    let is_made = wanted.iter().all(|&index| prepare_one(index).is_ok());
    let page = smp::prepare(ids, enter).map_err(|error| log::error!("{NOT_STARTED}: {error}"));
    // One interrupt for all would wake those too that are not wanted, or that the firmware calls disabled.
    let plan = plan(options, page.ok().filter(|_| is_made)?, wanted.len() + 1 == named);
    let crew = Crew::new(ids, cells(), groups(), &SHARED, plan).map_err(|error| log::error!("{NOT_STARTED}: {error}"));
    crew.ok().map(|crew| CREW.call_once(|| crew))
}

/// Makes what one of them needs, unless it has it.
pub fn prepare_one(index: u32) -> Result<(), smp::OutOfMemory> {
    let apic_id = apic_id(index).ok_or(smp::OutOfMemory)?;
    smp::give_stack(index)?;
    let log_bytes = options().map_or(LogBuffer::DEFAULT, |options| options.log_buffer).other_bytes();
    console::log::add_ring(index, log_bytes);
    timeline::add_ring(index);
    if prepare_cpu(index, apic_id) { Ok(()) } else { Err(smp::OutOfMemory) }
}

/// Makes what a CPU has for itself, before it starts. Returns whether there was memory for it.
pub fn prepare_cpu(index: u32, apic_id: u32) -> bool {
    let new_stack = || {
        let made = stack::new_interrupt_stack();
        made.map_err(|error| log::error!("no interrupt stack for CPU {index}: {error:?}")).ok()
    };
    PerCpu::prepare(index, apic_id).is_some() && descriptor::prepare(index, new_stack)
}

pub fn report(crew: &Crew<'_>, summary: &Summary) {
    for (index, phase) in &summary.dead {
        let apic_id = crew.apic_id(*index).unwrap_or(0);
        log::error!("CPU {index} (APIC id {apic_id}) did not come further than {phase}: the host goes on without it");
    }
    let came = |(index, _): &(u32, _)| crew.state(*index) != State::Offline;
    for (index, waits) in in_order(crew, summary.wait_began).filter(came) {
        let Some(sync) = crew.cell(index).map(CpuCell::sync) else { continue };
        log::debug!(
            "CPU {index}: bring-up waits: first-sign {} initialisation {} tsc-sync {} online {} cycles; TSC {sync:?}",
            waits.first_sign,
            waits.initialisation,
            waits.tsc_sync,
            waits.online
        );
    }
    log::debug!("bring-up policy: {:?}", crew.plan().policy);
    log::info!(
        "bring-up: {} CPUs online after {} cycles ({} us): kicks {}, waits {}, wait for the last \
         CPU's first sign {} cycles",
        summary.online,
        summary.total_ticks,
        smp::ticks_to_us(summary.total_ticks),
        summary.kick_ticks,
        summary.wait_ticks,
        last_first_sign(crew, summary.wait_began)
    );
}
