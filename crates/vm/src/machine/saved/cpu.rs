// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine's state of one vCPU, in the hand-over's format.

use handover::state::{self, event_state, unhalt_flag};

use super::lapic;
use crate::cpu::kvmclock::{SharedArea, VcpuClock, VcpuClockState};
use crate::cpu::msr::{MsrState, PlainMsrs};
use crate::cpu::steal_time::{StealTime, StealTimeState};
use crate::devices::StateError;
use crate::machine::NEVER;
use crate::machine::emulate::Recent;
use crate::machine::nmi::Nmi;
use crate::machine::{Activity, CountersSwitch, Cpu};

impl Cpu {
    /// Fills all but the registers and the pending messages.
    pub(super) fn save(&self, guest_ticks: u64, into: &mut state::Vcpu) {
        lapic::save(&self.lapic, &mut into.lapic);
        self.nmi.save(&mut into.events, &mut into.more_nmis);
        into.more_nmis.unhalt = if self.is_unhalted { unhalt_flag::TAKEN } else { 0 }.into();
        self.save_events(&mut into.events);
        self.save_time(&mut into.time);
        self.save_msrs(&mut into.msrs);
        self.exits.save(&mut into.counters);
        self.save_counters(guest_ticks, &mut into.pmu);
    }

    /// This CPU in a saved state.
    pub(super) fn restored(&self, from: &state::Vcpu) -> Result<Self, StateError> {
        let (events, time) = (&from.events, &from.time);
        let flags = events.flags.get();
        let lapic = lapic::restored(&from.lapic)?;
        let refuse = |field, reason| Err(StateError { field, reason });
        if lapic.id() != self.lapic.id() {
            return refuse("lapic.id", "it is another CPU's");
        }
        if flags & !event_state::ALL != 0 {
            return refuse("events.flags", "a flag is unknown");
        }
        let eoi_flag = shared_area("events.eoi_area", events.eoi_area.get())?;
        let eoi_flag_is_set = flags & event_state::EOI_OFFERED != 0;
        if eoi_flag_is_set && eoi_flag.address().is_none() {
            return refuse("events.flags", "an end of interrupt is offered nowhere");
        }
        Ok(Self {
            lapic,
            msrs: PlainMsrs::from_state(&msr_state(&from.msrs))?,
            clock: VcpuClock::from_state(&clock_state(time))?,
            steal: StealTime::from_state(&steal_state(time))?,
            eoi_flag,
            eoi_flag_is_set,
            nmi: Nmi::restored(events, &from.more_nmis)?,
            step: None,
            activity: activity(events.activity.get())?,
            is_unhalted: from.more_nmis.unhalt.get() & unhalt_flag::TAKEN != 0,
            tsc_at_start: time.tsc_at_start.get(),
            tsc_offset: time.tsc_offset.get(),
            alarm: (flags & event_state::HAS_ALARM != 0).then_some(time.alarm.get()),
            clock_read_at: None,
            recent: Recent::default(),
            is_executed_again: false,
            exits: self.exits.clone(),
            pmu: self.restored_counters(&from.pmu)?,
            counts: false,
            counters_switch: CountersSwitch::default(),
            overflow_at: NEVER,
            overflow_alarm: None,
        })
    }

    fn save_events(&self, into: &mut state::Events) {
        let offered = if self.eoi_flag_is_set { event_state::EOI_OFFERED } else { 0 };
        let alarm = if self.alarm.is_some() { event_state::HAS_ALARM } else { 0 };
        into.flags = (into.flags.get() | offered | alarm).into();
        into.eoi_area = self.eoi_flag.msr().into();
        into.activity = (match self.activity {
            Activity::Running => state::Activity::Running,
            Activity::Halted => state::Activity::Halted,
            Activity::HaltedForGood => state::Activity::HaltedForGood,
            Activity::WaitingForStartup => state::Activity::WaitingForStartup,
        } as u32)
            .into();
    }

    fn save_time(&self, into: &mut state::Time) {
        let (clock, steal) = (self.clock.state(), self.steal.state());
        *into = state::Time {
            tsc_at_start: self.tsc_at_start.into(),
            tsc_offset: self.tsc_offset.into(),
            alarm: self.alarm.unwrap_or(0).into(),
            clock_area: clock.msr.into(),
            steal_area: steal.msr.into(),
            steal_told_ns: steal.reported_ns.into(),
            stolen_ns: steal.stolen_ns.into(),
            clock_version: clock.version.into(),
            steal_version: steal.version.into(),
        };
    }

    fn save_msrs(&self, into: &mut state::Msrs) {
        let from = self.msrs.state();
        *into = state::Msrs {
            mcg_status: from.mcg_status.into(),
            misc_enable: from.misc_enable.into(),
            mtrr_default_type: from.mtrr_default_type.into(),
            hwcr: from.hwcr.into(),
            nb_cfg: from.nb_cfg.into(),
            microcode_revision: from.microcode_revision.into(),
            zero: 0.into(),
        };
    }
}

fn activity(number: u32) -> Result<Activity, StateError> {
    match state::Activity::from_number(number) {
        Some(state::Activity::Running) => Ok(Activity::Running),
        Some(state::Activity::Halted) => Ok(Activity::Halted),
        Some(state::Activity::HaltedForGood) => Ok(Activity::HaltedForGood),
        Some(state::Activity::WaitingForStartup) => Ok(Activity::WaitingForStartup),
        None => Err(StateError { field: "events.activity", reason: "it is unknown" }),
    }
}

fn shared_area(field: &'static str, msr: u64) -> Result<SharedArea, StateError> {
    SharedArea::from_msr(msr).map_err(|_| StateError { field, reason: "the address is not aligned" })
}

fn clock_state(time: &state::Time) -> VcpuClockState {
    VcpuClockState { msr: time.clock_area.get(), version: time.clock_version.get() }
}

fn steal_state(time: &state::Time) -> StealTimeState {
    StealTimeState {
        msr: time.steal_area.get(),
        version: time.steal_version.get(),
        reported_ns: time.steal_told_ns.get(),
        stolen_ns: time.stolen_ns.get(),
    }
}

fn msr_state(from: &state::Msrs) -> MsrState {
    MsrState {
        microcode_revision: from.microcode_revision.get(),
        mcg_status: from.mcg_status.get(),
        misc_enable: from.misc_enable.get(),
        mtrr_default_type: from.mtrr_default_type.get(),
        hwcr: from.hwcr.get(),
        nb_cfg: from.nb_cfg.get(),
    }
}
