// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles of the host itself: one at a time, for the first client that asks.

use alloc::string::ToString;

use profile::{Session, session};
use wire::{MAX_PROFILE_WORDS, ProfilePage, Refusal, RefusalCode, ReplyBody};

use crate::arch::sampling::Sampling;
use crate::arch::{address, boot, cpu, percpu, timer, watchdog};
use crate::kernel::interrupts;

/// The time that the clock may be late before it is set again, and between two searches for the last handlers.
const POLL_US: u64 = 50_000;
const LAST_POLL_US: u64 = 1000;

/// The profile that is taken, if one is.
#[derive(Default)]
pub struct Profiles(Option<Profile>);

struct Profile {
    /// Its owner; none once it is over.
    session: Option<Session>,
    sampling: Sampling,
    period_us: u64,
    /// Samples taken when the clock was checked, and when that is to be again.
    seen: u64,
    next_poll: u64,
}

impl Profiles {
    /// Begins one for the client `by`.
    pub fn begin(&mut self, by: u32, hz: u32) -> Result<ReplyBody, Refusal> {
        if self.0.is_some() {
            return refuse(
                "a profile is being taken",
                "ask again when it is over; one without questions ends after 5 s",
            );
        }
        if !interrupts::prepare_watchdog() {
            return refuse(
                "no timer of this machine can send an NMI",
                "use one with an HPET that has an I/O APIC's input of its own",
            );
        }
        let period_us = session::period_us(hz, percpu::online());
        let Some(sampling) = Sampling::begin(period_us) else {
            return refuse("there is no memory for samples", "stop a guest");
        };
        let session = Some(Session::begin(by, timer::uptime_ns()));
        let profile =
            self.0.insert(Profile { session, sampling, period_us, seen: 0, next_poll: in_us(POLL_US + 2 * period_us) });
        Ok(profile.page())
    }

    /// Reports what there is to the client that takes it.
    pub fn read(&mut self, by: u32, is_end: bool) -> Result<ReplyBody, Refusal> {
        let mine = self.0.as_mut().and_then(|profile| {
            let is_mine = profile.session.as_mut()?.hear(by, timer::uptime_ns());
            is_mine.then_some(profile)
        });
        let Some(profile) = mine else {
            return refuse("the profile is over", "an update, a restart or 5 s without a question end it");
        };
        if is_end {
            profile.sampling.end();
        }
        let page = profile.page();
        if is_end && matches!(&page, ReplyBody::Profile(page) if page.samples.is_empty()) {
            self.stop();
        }
        Ok(page)
    }

    /// Ends the profile, no matter which client takes it: the image is about to leave.
    pub fn stop(&mut self) {
        if let Some(profile) = &mut self.0 {
            profile.stop();
            self.poll();
        }
    }

    /// Checks whether it has ended, and whether its clock goes on.
    pub fn poll(&mut self) {
        let Some(profile) = self.0.as_mut().filter(|profile| profile.next_poll <= cpu::tsc()) else { return };
        if profile.session.is_some_and(|session| session.is_abandoned(timer::uptime_ns())) {
            profile.stop();
        }
        if profile.session.is_some() {
            profile.read_clock();
        } else if profile.sampling.is_quiet() {
            self.0 = None;
        } else {
            profile.next_poll = in_us(LAST_POLL_US);
        }
    }

    /// Returns when to check again, while there is one.
    pub fn alarm(&self) -> Option<u64> {
        self.0.as_ref().map(|profile| profile.next_poll)
    }
}

impl Profile {
    fn page(&mut self) -> ReplyBody {
        let (samples, lost) = self.sampling.take(MAX_PROFILE_WORDS);
        ReplyBody::Profile(ProfilePage {
            build: boot::build_id(),
            code: address::text_start(),
            period_us: self.period_us as u32,
            asked: self.sampling.asked(),
            lost,
            samples,
        })
    }

    fn stop(&mut self) {
        self.session = None;
        self.sampling.end();
        self.next_poll = 0;
    }

    fn read_clock(&mut self) {
        let asked = self.sampling.asked();
        if asked == self.seen {
            // An emulator can lose an NMI, and a comparator that was passed while it was set fires after a whole round.
            watchdog::arm(self.period_us);
        }
        self.seen = asked;
        self.next_poll = in_us(POLL_US + 2 * self.period_us);
    }
}

fn in_us(us: u64) -> u64 {
    cpu::tsc() + timer::us_to_ticks(us)
}

fn refuse<T>(reason: &str, hint: &str) -> Result<T, Refusal> {
    Err(Refusal { code: RefusalCode::WrongState, reason: reason.to_string(), hint: hint.to_string() })
}
