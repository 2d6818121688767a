// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work of an image that has taken over, once its guests run: a step at a time, so that those on the boot CPU
//! wait for none of them long.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::cmp::Reverse;

use ::update::finish::{self, Step};
use ::update::trial::{BUSY_TICKS, STAMPS, Stamp};
use handover::state::BlockKind;
use wire::{EventKind, MAX_UPDATE_STEPS, UpdateReport, UpdateSteps};

use super::{adoption, held, on_demand, picture};
use crate::arch::boot::BUILD;
use crate::arch::percpu::BOOT_CPU;
use crate::arch::tsc::Tsc;
use crate::arch::{apic, fault, timer};
use crate::guests::events;
use crate::guests::instance::Instance;
use crate::guests::pci;
use crate::guests::slots::GUESTS;
use crate::guests::sockets::services;
use crate::kernel::console;
use crate::kernel::cpus;
use crate::kernel::inherited::{self, ChannelState};
use crate::kernel::platform::options;
use crate::kernel::{address_space, interrupts};
use crate::kernel::{timeline, trial_pages};
use crate::lifecycle::restart::successor;

/// The progress of that work.
pub struct Finishing {
    state: finish::Finishing,
    report: UpdateReport,
    stamps: Vec<(u32, [u64; STAMPS])>,
}

impl Finishing {
    /// Everything is still to be done. For the boot CPU, before it enters its guests.
    pub fn begin() -> Self {
        Self { state: finish::Finishing::begin(&Tsc), report: UpdateReport::default(), stamps: Vec::new() }
    }

    /// Returns when the next step is due.
    pub fn alarm(&self) -> u64 {
        self.state.alarm()
    }

    /// Takes a step, if one is due. `Err`: that was the last one, and this is what the control channel continues with.
    pub fn step(mut self) -> Result<Self, Box<(ChannelState, UpdateReport)>> {
        let Some(step) = self.state.turn(&Tsc, have_all_entered) else { return Ok(self) };
        match step {
            Step::Memory => self.take_memory(),
            Step::Account => {
                pci::note_guest_runs();
                address_space::furnish_memory();
            }
            Step::Logs => {
                take_logs();
                picture::draw(self.report.generation as u32, &self.stamps);
            }
            Step::Iommus => pci::take_iommus_over(),
            Step::Functions => resume_functions(),
            Step::Console => interrupts::take_console(),
            Step::Consoles => take_consoles(),
            Step::Cpus => {
                interrupts::take_interrupts();
                cpus::expect_others();
                pci::let_the_idle_probe();
            }
            Step::Control => return Err(Box::new(self.finish())),
        }
        self.state.end_step(&Tsc);
        Ok(self)
    }

    fn take_memory(&mut self) {
        interrupts::silence_watchdog();
        apic::open_nmi_line();
        self.stamps = trial_pages::stamps().collect();
        self.report = report(&self.stamps);
        trial_pages::end();
        adoption::drop_slots();
        address_space::take_all_memory(&on_demand::ranges());
        held::settle_all();
    }

    fn finish(self) -> (ChannelState, UpdateReport) {
        let channel_state = inherited::late().map_or_else(ChannelState::default, |(channel_state, _)| channel_state);
        successor::take_events();
        inherited::announce();
        events::record(EventKind::HostUpdated { generation: self.report.generation });
        successor::record_succession();
        successor::give_back(&cpus::online_apic_ids());
        picture::end(self.report.generation as u32, &self.stamps);
        fault::point!(crate::lifecycle::faults::interrupt::report());
        log::info!(
            "update: from the first CPU that left its guests to the last one back: {} ns",
            self.report.blackout_ns
        );
        (channel_state, self.report)
    }
}

/// Logs and timelines go on where they were.
fn take_logs() {
    let Some(options) = options() else { return };
    timeline::adopt(inherited::timelines());
    for index in cpus::online() {
        let is_boot = index == BOOT_CPU;
        let bytes = if is_boot { options.log_buffer.boot_bytes() } else { options.log_buffer.other_bytes() };
        console::log::add_ring(index, bytes);
        timeline::add_ring(index);
    }
}

/// Goes on with the physical functions of guests.
fn resume_functions() {
    GUESTS.all().filter_map(|guest| guest.run::<Instance>()).for_each(|run| run.resume_functions());
}

/// Takes over the output that waited on guests' consoles.
fn take_consoles() {
    services::resume_all();
    let Some(record) = inherited::record() else { return };
    for guest in GUESTS.all() {
        let Some(place) = record.block_of(BlockKind::Console, guest.number, 0) else { continue };
        let adopted = inherited::with_block(place.start.get(), place.bytes.get(), |bytes| guest.adopt_console(bytes));
        if let Some(Err(problem)) = adopted {
            log::error!("guest {}: its console: {problem}", guest.config.name);
        }
    }
}

/// Returns whether every CPU is back with its guests, and has recorded the time.
fn have_all_entered() -> bool {
    trial_pages::stamps().all(|(_, stamps)| stamps[Stamp::Entered as usize] != 0)
}

/// Returns the report of the update, as far as the blackout.
fn report(all: &[(u32, [u64; STAMPS])]) -> UpdateReport {
    let (Some(known), Some((_, stamps))) = (inherited::known(), inherited::late()) else {
        return UpdateReport::default();
    };
    let stopped = stamps.stopped.get();
    let ns = |ticks: u64| timer::ticks_to_ns(ticks.saturating_sub(stopped));
    let times = |stamp: Stamp| all.iter().map(move |(_, stamps)| stamps[stamp as usize]);
    let blackout = times(Stamp::Entered).max().unwrap_or(0).saturating_sub(times(Stamp::Left).min().unwrap_or(0));
    let cpus = all.iter().map(|(index, stamps)| UpdateSteps {
        index: *index,
        left_ns: ns(stamps[Stamp::Left as usize]),
        saved_ns: ns(stamps[Stamp::Saved as usize]),
        gone_ns: ns(stamps[Stamp::Gone as usize]),
        arrived_ns: ns(stamps[Stamp::Arrived as usize]),
        restored_ns: ns(stamps[Stamp::Restored as usize]),
        committed_ns: ns(stamps[Stamp::Committed as usize]),
        entered_ns: ns(stamps[Stamp::Entered as usize]),
    });
    let cpus = bounded(cpus.collect());
    UpdateReport {
        is_dry_run: false,
        generation: known.generation,
        old_version: known.old_version.to_string(),
        new_version: env!("CARGO_PKG_VERSION").to_string(),
        preparation_ns: timer::ticks_to_ns(stopped.saturating_sub(stamps.asked.get())),
        preparation_busy_ns: timer::ticks_to_ns(all.first().map_or(0, |(_, stamps)| stamps[BUSY_TICKS])),
        slices: 0,
        memory_bytes: inherited::on_trial().map_or(0, |(staging_memory, _)| staging_memory.bytes()),
        blackout_ns: timer::ticks_to_ns(blackout),
        cpus,
        old_build: inherited::old_build().to_string(),
        new_build: BUILD.to_string(),
        signer: inherited::signer(),
    }
}

/// As many steps as a frame holds: those of the CPUs that were last to enter guests, by number.
fn bounded(mut steps: Vec<UpdateSteps>) -> Vec<UpdateSteps> {
    if steps.len() > MAX_UPDATE_STEPS {
        sort::by_key(&mut steps, |steps| Reverse(steps.entered_ns));
        steps.truncate(MAX_UPDATE_STEPS);
        sort::by_key(&mut steps, |steps| steps.index);
    }
    steps
}
