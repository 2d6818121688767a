// SPDX-License-Identifier: MIT OR Apache-2.0
//! Updates that the operator asks for: one at a time, answered when it is over, by whichever image runs then.

use alloc::boxed::Box;
use alloc::string::{String, ToString};

use wire::{Refusal, RefusalCode, ReplyBody, RequestBody, Response};

use crate::arch::virt::Virt;
use crate::arch::{cpu, timer};
use crate::lifecycle::restart::staging::Staged;
use crate::lifecycle::update::{self, Preparing, Progress, guests_have_changed};

/// How long the gap waits for the channel to have nothing left to send.
const PATIENCE_US: u64 = 200_000;

/// An update that is under way, if one is.
#[derive(Default)]
pub enum UpdateOrders {
    /// None.
    #[default]
    Idle,
    /// The new image prepares itself.
    Preparing {
        /// The request that is answered when it is over.
        request: u32,
        /// Nothing is to be replaced.
        is_dry_run: bool,
        /// How far it is.
        preparing: Preparing,
    },
    /// It has prepared itself, and the gap may begin, at this time at the latest.
    Ready {
        /// As above.
        request: u32,
        /// As above.
        preparing: Preparing,
        /// When.
        until: u64,
    },
    /// Processors are on their way back.
    Returning {
        /// As above.
        request: u32,
    },
}

impl UpdateOrders {
    /// Lets a new image begin, asked for at this time. [`Self::poll`] answers.
    pub fn begin(&mut self, request: u32, is_dry_run: bool, staged: Staged, asked: u64) {
        *self = Self::Preparing { request, is_dry_run, preparing: Preparing::begin(staged, asked) };
    }

    /// While an update is under way, nothing else changes the host.
    pub fn forbids(&self, body: &RequestBody) -> Result<(), Refusal> {
        let is_change = matches!(
            body,
            RequestBody::Update { .. }
                | RequestBody::Restart
                | RequestBody::RestartUploaded
                | RequestBody::CpuOffline { .. }
                | RequestBody::CpuOnline { .. }
                | RequestBody::ProfileBegin { .. }
        );
        if is_change && !matches!(self, Self::Idle) {
            return Err(Refusal {
                code: RefusalCode::WrongState,
                reason: "an update is under way".into(),
                mend: "ask again when it is over".into(),
            });
        }
        Ok(())
    }

    /// When to look again, if an update is under way.
    pub fn alarm(&self) -> Option<u64> {
        match self {
            Self::Idle => None,
            Self::Preparing { preparing, .. } => Some(preparing.alarm()),
            Self::Ready { until, .. } => Some((*until).min(cpu::tsc() + timer::us_to_ticks(1000))),
            Self::Returning { .. } => Some(cpu::tsc() + timer::us_to_ticks(1000)),
        }
    }

    /// The request that the new image is to answer.
    pub fn request(&self) -> Option<u32> {
        match self {
            Self::Ready { request, .. } | Self::Returning { request } => Some(*request),
            _ => None,
        }
    }

    /// Whether the gap may begin; `is_quiet`: nothing waits to be sent.
    pub fn may_go(&self, is_quiet: bool) -> bool {
        matches!(self, Self::Ready { until, .. } if is_quiet || *until <= cpu::tsc())
    }

    /// Opens the gap, if every guest still is what the new image was told. `false`: it is over, and this is the answer.
    pub fn open_gap<V: Virt>(&mut self) -> Result<(), Box<Response>> {
        let Self::Ready { request, preparing, .. } = core::mem::take(self) else { return Ok(()) };
        let asked = preparing.asked();
        let staged = preparing.into_staged();
        if !staged.parcel.baggage.is_current::<V>() {
            return Err(Box::new(Response { id: request, result: Err(guests_have_changed()) }));
        }
        *self = Self::Returning { request };
        update::open_gap(staged, asked);
        Ok(())
    }

    /// Goes on with it. The answer, once it is over.
    pub fn poll(&mut self) -> Option<Response> {
        match core::mem::take(self) {
            Self::Preparing { request, is_dry_run, preparing } => self.prepare(request, is_dry_run, preparing),
            Self::Returning { request } if update::current_gap().as_ref().is_none_or(|gap| gap.are_all_back()) => {
                let reason = wire::bounded(&why_back(), wire::MAX_REASON_BYTES).to_string();
                log::error!("{reason}");
                let refusal = Refusal { code: RefusalCode::Failed, reason, mend: "use another image".into() };
                Some(Response { id: request, result: Err(refusal) })
            }
            other => {
                *self = other;
                None
            }
        }
    }

    fn prepare(&mut self, request: u32, is_dry_run: bool, preparing: Preparing) -> Option<Response> {
        let result = match preparing.turn() {
            Progress::UnderWay(preparing) => {
                *self = Self::Preparing { request, is_dry_run, preparing };
                return None;
            }
            Progress::Prepared(preparing) if !is_dry_run => {
                let until = cpu::tsc() + timer::us_to_ticks(PATIENCE_US);
                *self = Self::Ready { request, preparing, until };
                return None;
            }
            Progress::Prepared(preparing) => Ok(ReplyBody::Updated(preparing.dry_run_report())),
            Progress::Failed(refusal) => Err(refusal),
        };
        Some(Response { id: request, result })
    }
}

/// All processors are back: why.
fn why_back() -> String {
    let gap = update::close_gap();
    let us = gap.as_ref().map_or(0, |gap| gap.lasted_ns() / 1000);
    let fault_point = gap.as_ref().and_then(|gap| gap.fault_point());
    let fault_point = fault_point.map_or_else(String::new, |report| alloc::format!(" ({report})"));
    let blamed = gap.and_then(|gap| gap.blamed());
    let problem = update::take_problem()
        .or_else(|| blamed.map(|index| alloc::format!("processor {index} waited too long for the others")));
    let problem = problem.unwrap_or_else(|| "no processor says why".to_string());
    alloc::format!(
        "the update was rolled back after {us} us, and guests go on in the old image: {problem}{fault_point}"
    )
}
