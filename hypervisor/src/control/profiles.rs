// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles of the host itself: one at a time, for whoever asked first.

use alloc::string::ToString;

use profile::{Session, session};
use wire::{MAX_PROFILE_WORDS, ProfileOrder, ProfilePage, Refusal, RefusalCode, ReplyBody};

use crate::arch::sampling::Sampling;
use crate::arch::{boot, cpu, percpu, timer};
use crate::start;

/// How often the clock is looked at while a profile is taken, and while its last handlers end.
const LOOK_US: u64 = 250_000;
const LAST_LOOK_US: u64 = 1000;

/// The profile that is taken, if one is.
#[derive(Default)]
pub struct Profiles(Option<Profile>);

struct Profile {
    /// Whose it is; nobody's once it is over.
    session: Option<Session>,
    sampling: Sampling,
    period_us: u64,
    /// Looks taken when the clock was looked at, and when that is to be again.
    seen: u64,
    next_look: u64,
}

impl Profiles {
    /// Carries out an order of whoever calls itself `by`.
    pub fn answer(&mut self, by: u32, order: ProfileOrder) -> Result<ReplyBody, Refusal> {
        if let ProfileOrder::Begin { hz } = order {
            self.begin(by, hz)?;
        }
        let Some(profile) = self.0.as_mut().and_then(|profile| profile.hear(by)) else {
            return refuse("the profile is over", "an update, a restart or five seconds without a question end it");
        };
        if order == ProfileOrder::End {
            profile.sampling.end();
        }
        let page = profile.page();
        if order == ProfileOrder::End && page.samples.is_empty() {
            self.stop();
        }
        Ok(ReplyBody::Profile(page))
    }

    fn begin(&mut self, by: u32, hz: u32) -> Result<(), Refusal> {
        self.poll();
        if self.0.is_some() {
            return refuse("a profile is being taken", "ask again when it is over; one without questions ends after 5 s");
        }
        if !start::prepare_watchdog() {
            return refuse("no timer of this machine can send an NMI", "use one whose HPET has an I/O APIC's input of its own");
        }
        let period_us = session::period_us(hz, percpu::online());
        let Some(sampling) = Sampling::begin(period_us) else {
            return refuse("there is no memory for samples", "stop a guest");
        };
        let session = Some(Session::begin(by, now_us()));
        self.0 = Some(Profile { session, sampling, period_us, seen: 0, next_look: in_us(LOOK_US) });
        Ok(())
    }

    /// It is over, whoever takes it: an image is about to go.
    pub fn stop(&mut self) {
        if let Some(profile) = &mut self.0 {
            profile.session = None;
            profile.sampling.end();
        }
        self.poll();
    }

    /// Looks whether it has ended, and whether its clock goes on.
    pub fn poll(&mut self) {
        let Some(profile) = &mut self.0 else { return };
        if profile.session.is_some_and(|session| session.is_forgotten(now_us())) {
            profile.session = None;
            profile.sampling.end();
        }
        if profile.session.is_none() && profile.sampling.is_quiet() {
            self.0 = None;
        } else if profile.next_look <= cpu::tsc() {
            profile.look_at_clock();
        }
    }

    /// When to look again, while there is one.
    pub fn alarm(&self) -> Option<u64> {
        self.0.as_ref().map(|profile| profile.next_look)
    }
}

impl Profile {
    /// It, if it is this one's who asks.
    fn hear(&mut self, by: u32) -> Option<&mut Self> {
        let is_mine = self.session.as_mut().is_some_and(|session| session.hear(by, now_us()));
        is_mine.then_some(self)
    }

    fn page(&mut self) -> ProfilePage {
        ProfilePage {
            build: boot::build_id(),
            code: crate::arch::address::text_start(),
            period_us: self.period_us as u32,
            asked: self.sampling.asked(),
            lost: self.sampling.lost(),
            samples: self.sampling.take(MAX_PROFILE_WORDS),
        }
    }

    fn look_at_clock(&mut self) {
        let asked = self.sampling.asked();
        if self.session.is_some() && asked == self.seen {
            self.sampling.go_on(self.period_us);
        }
        self.seen = asked;
        self.next_look = in_us(if self.session.is_some() { LOOK_US.max(2 * self.period_us) } else { LAST_LOOK_US });
    }
}

fn now_us() -> u64 {
    timer::uptime_ns() / 1000
}

fn in_us(us: u64) -> u64 {
    cpu::tsc() + timer::us_to_ticks(us)
}

fn refuse<T>(reason: &str, mend: &str) -> Result<T, Refusal> {
    Err(Refusal { code: RefusalCode::WrongState, reason: reason.to_string(), mend: mend.to_string() })
}
