// SPDX-License-Identifier: MIT OR Apache-2.0
//! Updates that the operator asks for: one at a time, answered when it is over, by whichever image runs then.

use alloc::boxed::Box;
use alloc::string::{String, ToString};

use ::update::order::{End, Order};
use wire::{Refusal, RefusalCode, ReplyBody, RequestBody};

use super::images::Requester;
use crate::arch::fault;
use crate::arch::tsc::Tsc;
use crate::lifecycle::restart::hand_over::Staged;
use crate::lifecycle::update::{self, Preparing};

/// The result of an order, and the request that it answers.
pub type Ended = (Requester, Result<ReplyBody, Refusal>);

/// An update that is under way, if one is.
#[derive(Default)]
pub struct UpdateOrders(Order<Requester, Preparing>);

impl UpdateOrders {
    /// Lets a new image begin, asked for at this time. [`Self::poll`] answers.
    pub fn begin(&mut self, request: Requester, is_dry_run: bool, staged: Staged, asked: u64) {
        self.0.begin(request, is_dry_run, Preparing::begin(staged, asked));
    }

    /// Returns whether none is under way.
    pub fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    /// While an update is under way, nothing else changes the host.
    pub fn forbids(&self, body: &RequestBody) -> Result<(), Refusal> {
        let is_change = matches!(
            body,
            RequestBody::Update { .. }
                | RequestBody::UpdateUnlessConfirmed { .. }
                | RequestBody::Restart
                | RequestBody::RestartUploaded
                | RequestBody::CpuOffline { .. }
                | RequestBody::CpuOnline { .. }
                | RequestBody::ProfileBegin { .. }
                | RequestBody::CaptureBegin { .. }
                | RequestBody::PciAssign { .. }
                | RequestBody::PciRelease { .. }
                | RequestBody::VmShutdown { .. }
                | RequestBody::VmSet { .. }
                | RequestBody::VmDelete { .. }
                | RequestBody::VmCreate { .. }
                | RequestBody::FileRemove { .. }
        );
        if is_change && !self.0.is_idle() {
            return Err(Refusal {
                code: RefusalCode::WrongState,
                reason: "an update is under way".into(),
                hint: "ask again when it is over".into(),
            });
        }
        Ok(())
    }

    /// Returns when to check again, if an update is under way.
    pub fn alarm(&self) -> Option<u64> {
        self.0.alarm(&Tsc, Preparing::alarm)
    }

    /// The request that the new image is to answer.
    pub fn request(&self) -> Requester {
        self.0.request().flatten()
    }

    /// Returns whether an update is ready, or CPUs are on their way.
    pub fn is_ready(&self) -> bool {
        self.0.request().is_some()
    }

    /// Returns whether the blackout may begin; `is_quiet`: nothing waits to be sent.
    pub fn may_go(&self, is_quiet: bool) -> bool {
        self.0.may_depart(&Tsc, is_quiet)
    }

    /// Opens the blackout, if every guest still is as the new image knows it. `Err`: it is over, and this is
    /// refused.
    pub fn open_blackout(&mut self) -> Result<(), Box<Ended>> {
        match self.0.depart(Preparing::outdated) {
            None => {}
            Some(Ok(preparing)) => {
                let asked = preparing.asked();
                update::open_blackout(preparing.into_staged(), asked);
            }
            Some(Err((requester, refusal))) => return Err(Box::new((requester, Err(refusal)))),
        }
        Ok(())
    }

    /// Goes on with it. The answer, once it is over.
    pub fn poll(&mut self) -> Option<Ended> {
        let are_all_back = || update::current_blackout().as_ref().is_none_or(|blackout| blackout.are_all_back());
        let (requester, end) = self.0.poll(&Tsc, Preparing::turn, are_all_back)?;
        let result = match end {
            End::DryRun(preparing) => Ok(ReplyBody::Updated(preparing.dry_run_report())),
            End::Failed(refusal) => Err(refusal),
            End::RolledBack => {
                let reason = wire::bounded(&why_back(), wire::MAX_REASON_BYTES).to_string();
                log::error!("{reason}");
                Err(Refusal { code: RefusalCode::Failed, reason, hint: "use another image".into() })
            }
        };
        Some((requester, result))
    }
}

/// Closes the blackout once all CPUs are back, and returns the reason.
fn why_back() -> String {
    let blackout = update::close_blackout();
    let us = blackout.as_ref().map_or(0, |blackout| blackout.lasted_ns() / 1000);
    let waits: Option<String> = fault::point!(blackout.as_ref().and_then(|blackout| blackout.waits()), else None);
    let waits = waits.map_or_else(String::new, |waits| alloc::format!(" ({waits})"));
    let blamed = blackout.and_then(|blackout| blackout.blamed());
    let problem = update::take_problem()
        .or_else(|| blamed.map(|index| alloc::format!("CPU {index} waited too long for the others")));
    let problem = problem.unwrap_or_else(|| "no CPU gave a reason".to_string());
    alloc::format!("the update was rolled back after {us} us, and guests go on in the old image: {problem}{waits}")
}
