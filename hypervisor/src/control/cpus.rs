// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests about the host's CPUs. One that is to leave is not waited for: the answer follows when it has gone,
//! or when it has been given up.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use bringup::State;
use sched::placement::NoRoom;
use sched::{Leaving, Patience, Ticks, Verdict};
use wire::{CpuInfo, CpuState, CpuVcpu, EventKind, Refusal, RefusalCode, ReplyBody, VmState, page};

use super::guest_lines::{Answer, Asked};
use crate::arch::percpu::{self, BOOT_CPU};
use crate::arch::{cpu, timer};
use crate::guests::events::record;
use crate::guests::guest::Guest;
use crate::guests::slots::GUESTS;
use crate::kernel::cpus;

/// The most CPUs collected for one page; a frame holds fewer.
const PAGE_CPUS: usize = 64;
/// The time that a CPU may take to begin to leave, and then to halt. It may be loading a guest.
const PATIENCE_US: u64 = 10_000_000;

/// The order that is being carried out.
#[derive(Default)]
pub struct CpuOrders {
    leaving: Option<Waiting>,
}

struct Waiting {
    request: Asked,
    index: u32,
    patience: Patience,
}

impl CpuOrders {
    /// A CPU is to leave. `None`: that is under way, and [`Self::poll`] answers.
    pub fn take_offline(&mut self, request: Asked, index: u32) -> Option<Result<ReplyBody, Refusal>> {
        if let Err(refusal) = self.may_leave(index) {
            return Some(Err(refusal));
        }
        let patience = Patience::new(timer::us_to_ticks(PATIENCE_US), Ticks(cpu::tsc()));
        self.leaving = Some(Waiting { request, index, patience });
        percpu::wake(index);
        None
    }

    /// A CPU is to come.
    pub fn bring_online(&mut self, index: u32) -> Result<ReplyBody, Refusal> {
        self.is_free()?;
        match known(index)? {
            State::Offline | State::Parked => {}
            State::Online => return Err(wrong_state(index, "is online", String::new())),
            state => return Err(failed(index, state)),
        }
        match cpus::online_again(index) {
            Ok(()) => {
                record(EventKind::CpuOnline { index });
                Ok(ReplyBody::Done)
            }
            Err(error) => {
                record(EventKind::CpuFailed { index, reason: error.to_string() });
                let hint = "the host goes on without it until it starts again".to_string();
                Err(Refusal { code: RefusalCode::Failed, reason: format!("CPU {index}: {error}"), hint })
            }
        }
    }

    /// Returns when to check the clock, if a CPU is waited for.
    pub fn alarm(&self) -> Option<u64> {
        self.leaving.as_ref().map(|waiting| waiting.patience.deadline().0)
    }

    /// The answer to a request that has waited, if there is one now.
    pub fn poll(&mut self) -> Option<Answer> {
        let waiting = self.leaving.as_mut()?;
        let result = waiting.outcome()?;
        let asked = waiting.request;
        self.leaving = None;
        Some((asked, result))
    }

    fn may_leave(&self, index: u32) -> Result<(), Refusal> {
        self.is_free()?;
        let state = known(index)?;
        if index == BOOT_CPU {
            let hint = "it stays; take another one offline".to_string();
            return Err(wrong_state(index, "serves the control channel", hint));
        }
        match state {
            State::Online if cpus::online().len() == 1 => {
                Err(wrong_state(index, "is the last one online", "bring another one online first".to_string()))
            }
            State::Online if cpus::leave_order(index).ask() => Ok(()),
            State::Online => Err(wrong_state(index, "is leaving already", String::new())),
            State::Offline | State::Parked => Err(wrong_state(index, "is offline", String::new())),
            state => Err(failed(index, state)),
        }
    }

    fn is_free(&self) -> Result<(), Refusal> {
        match &self.leaving {
            None => Ok(()),
            Some(waiting) => {
                let hint = "ask again when that request has been answered".to_string();
                Err(wrong_state(waiting.index, "is leaving, and one changes at a time", hint))
            }
        }
    }
}

impl Waiting {
    /// `None`: wait on.
    fn outcome(&mut self) -> Option<Result<ReplyBody, Refusal>> {
        let index = self.index;
        let is_offline = cpus::state(index) == Some(State::Offline);
        let seconds = PATIENCE_US / 1_000_000;
        Some(match self.patience.judge(cpus::leave_order(index), is_offline, Ticks(cpu::tsc())) {
            Verdict::Wait => return None,
            Verdict::Left => {
                cpus::park(index);
                record(EventKind::CpuOffline { index });
                Ok(ReplyBody::Done)
            }
            Verdict::NoRoom => Err(Refusal {
                code: RefusalCode::Exhausted,
                reason: format!("CPU {index} stays: {NoRoom}"),
                hint: "stop a guest, or bring another CPU online".to_string(),
            }),
            Verdict::Late => {
                let reason = format!("it did not begin to leave within {seconds} s, and stays");
                Err(gave_up(index, reason, "try again when it has less to do"))
            }
            Verdict::Stuck => {
                let reason = format!("its vCPUs have left it, but it did not halt within {seconds} s");
                Err(gave_up(index, reason, "`baton cpu list` shows whether it has meanwhile"))
            }
        })
    }
}

fn gave_up(index: u32, reason: String, hint: &str) -> Refusal {
    record(EventKind::CpuFailed { index, reason: reason.clone() });
    Refusal { code: RefusalCode::Failed, reason: format!("CPU {index}: {reason}"), hint: hint.to_string() }
}

fn known(index: u32) -> Result<State, Refusal> {
    cpus::state(index).ok_or_else(|| Refusal {
        code: RefusalCode::Invalid,
        reason: format!("there is no CPU {index}"),
        hint: match cpus::count() {
            1 => "this host has only 0".to_string(),
            count => format!("this host has 0 to {}", count - 1),
        },
    })
}

fn wrong_state(index: u32, is: &str, hint: String) -> Refusal {
    Refusal { code: RefusalCode::WrongState, reason: format!("CPU {index} {is}"), hint }
}

fn failed(index: u32, state: State) -> Refusal {
    let hint = "the host goes on without it until it starts again".to_string();
    wrong_state(index, &format!("is {state}"), hint)
}

/// A page of the host's CPUs.
pub fn list(from_index: u32) -> ReplyBody {
    let count = cpus::count();
    let cpus = page::fill((from_index..count).filter_map(describe), PAGE_CPUS);
    let next = cpus.last().map_or(count, |cpu| cpu.index + 1);
    ReplyBody::Cpus { cpus, next_index: (next < count).then_some(next) }
}

fn describe(index: u32) -> Option<CpuInfo> {
    let (state, reason) = match cpus::state(index)? {
        State::Online if cpus::leave_order(index).progress() != Leaving::Stays => (CpuState::Leaving, None),
        State::Online => (CpuState::Online, None),
        State::Offline | State::Parked => (CpuState::Offline, None),
        State::Dead(phase) => (CpuState::Failed, Some(format!("it did not come further than {phase}"))),
        state => (CpuState::Failed, Some(state.to_string())),
    };
    let is_busy = matches!(state, CpuState::Online | CpuState::Leaving);
    let busy_permille = percpu::of(index).filter(|_| is_busy).map(|percpu| percpu.busy_permille());
    Some(CpuInfo { index, apic_id: cpus::apic_id(index)?, state, reason, busy_permille, vcpus: vcpus_on(index) })
}

fn vcpus_on(index: u32) -> Vec<CpuVcpu> {
    let there = |guest: &Guest| !matches!(guest.status().state, VmState::Stopped | VmState::Failed | VmState::Loading);
    let on = |guest: &Guest| {
        let vcpus = (0..guest.config.vcpus).filter(|vcpu| guest.cpu_of(*vcpu as usize) == index);
        vcpus.map(|vcpu| CpuVcpu { vm: guest.config.name.clone(), vcpu }).collect::<Vec<_>>()
    };
    GUESTS.all().filter(|guest| there(guest)).flat_map(|guest| on(&guest)).collect()
}
