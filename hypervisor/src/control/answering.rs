// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests of operators, carried out or passed on to the part of the channel that does.

use alloc::format;
use alloc::string::String;

use seal::{Announced, Packed};
use uart::Interrupts;
use wire::{EventKind, Refusal, RefusalCode, ReplyBody, RequestBody, UpdateBy};

use super::Control;
use super::confirming::deadline;
use super::guest_lines::{Asked, LineId};
use super::images::{Requester, Wanted};
use super::{requests, saving};
use crate::arch::percpu::{BOOT_CPU, wake};
use crate::arch::{cpu, timer};
use crate::guests::events::record;
use crate::guests::slots::GUESTS;
use crate::kernel::outcome;
use crate::lifecycle::restart::{Preparation, Restart};
use crate::lifecycle::update::hand_over_state::HandOverState;

/// The request number of an answer to what could not be read.
const NO_REQUEST: u32 = 0;
/// The time that guests may take to stop before the host powers off. One that runs does so at its next exit.
const DEPARTURE_US: u64 = 2_000_000;

impl Control {
    /// Begins an update by an image that has been checked.
    pub(super) fn begin_update(&mut self, requester: Requester, is_dry_run: bool, image: Preparation) {
        let staged = match self.check_idle() {
            Ok(()) => image.stage(HandOverState::pack),
            Err(refusal) => Err(image.refuse(refusal)),
        };
        match staged {
            Ok((staged, asked)) => self.updates.begin(requester, is_dry_run, staged, asked),
            Err(refused) => {
                let refusal = self.images.keep(refused);
                self.conclude(requester, Err(refusal));
            }
        }
        wake(BOOT_CPU);
    }

    /// Opens the blackout, unless guests have changed: then the request is refused.
    pub(super) fn open_blackout(&mut self) {
        if let Err(ended) = self.updates.open_blackout() {
            let (requester, result) = *ended;
            self.conclude(requester, result);
        }
    }

    /// Switches to the next image, with the channel's state. The next image answers the request, unless a client
    /// in a guest has asked: that ends with its guest.
    pub fn hand_over(&mut self, requester: Requester, restart: Restart) -> ! {
        let request = requester.filter(|asked| asked.line == LineId::Com2).map(|asked| asked.id);
        self.profiles.stop();
        self.captures.stop();
        record(EventKind::HostRestarts { generation: restart.generation() });
        self.finish();
        restart.go(&mut || {
            // Guests on other CPUs have written on until these were parked.
            self.finish();
            self.uart.watch(Interrupts::empty());
            self.outgoing.lock().channel_state(request)
        })
    }

    /// Answers the request for the restart that led to this image, once there is something to report.
    pub(super) fn answer_restart(&mut self) {
        let Some(asked) = self.restart_request else { return };
        let is_starting = self.has_started_guests && !GUESTS.is_none_starting();
        if let Some(report) = outcome::report(is_starting) {
            self.restart_request = None;
            self.respond(asked, Ok(ReplyBody::Restarted(report)));
        }
    }

    pub(super) fn answer(&mut self, asked: Asked, body: RequestBody) {
        self.has_started_guests |= requests::is_start(&body);
        if let Err(refusal) = self.updates.forbids(&body).and_then(|()| self.keep_way_back(&body)) {
            return self.respond(asked, Err(refusal));
        }
        let result = match body {
            RequestBody::Restart => return self.prepare(asked, UpdateBy::Bundle, Wanted::Restart),
            RequestBody::RestartUploaded => return self.prepare(asked, UpdateBy::Upload, Wanted::Restart),
            RequestBody::Update { is_dry_run, by } => {
                return self.prepare(asked, by, Wanted::Update { is_dry_run, confirm_within_s: None });
            }
            RequestBody::UpdateUnlessConfirmed { is_dry_run, by, seconds } => match deadline(seconds) {
                Ok(confirm_within_s) => {
                    return self.prepare(asked, by, Wanted::Update { is_dry_run, confirm_within_s });
                }
                Err(refusal) => Err(refusal),
            },
            RequestBody::Confirm => self.confirm(),
            RequestBody::UploadBegin { kind, bytes, sha256: digest } => {
                self.images.begin_upload(Announced { kind, bytes, digest })
            }
            RequestBody::UploadData { offset, bytes } => self.images.take(offset, &bytes),
            RequestBody::UploadPacked { offset, bytes, packed, begins } => {
                self.images.take_packed(Packed { offset, bytes: bytes.into(), begins, packed: &packed })
            }
            RequestBody::UploadDrop => Ok(self.images.drop_upload()),
            RequestBody::PermitDowngrade => self.images.permit_downgrade(),
            RequestBody::ProfileBegin { by, hz } => self.profiles.begin(by, hz),
            RequestBody::ProfileRead { by, is_end } => self.profiles.read(by, is_end),
            RequestBody::CaptureBegin { by, network, guest, snap_bytes } => {
                self.captures.begin(by, &network, guest.as_deref(), snap_bytes)
            }
            RequestBody::CaptureRead { by, is_end } => self.captures.read(by, is_end),
            RequestBody::VmRestore { name, state, memory } => saving::restore(&mut self.images, &name, &state, &memory),
            RequestBody::CpuPerf { index } => self.counts.read(index),
            RequestBody::PciAssign { function, guest, without_reset } => {
                match self.functions.assign(asked, &function, &guest, without_reset) {
                    Some(result) => result,
                    None => return,
                }
            }
            RequestBody::PciRelease { function, guest, is_forced } => {
                match self.functions.release(asked, &function, guest.as_deref(), is_forced) {
                    Some(result) => result,
                    None => return,
                }
            }
            RequestBody::Subscribe(subscription) => {
                self.with_outgoing(asked.line, |outgoing| outgoing.subscribe(subscription));
                self.note_followers();
                Ok(ReplyBody::Done)
            }
            RequestBody::SubscribeConsoles { names } => {
                self.with_outgoing(asked.line, |outgoing| outgoing.subscribe_consoles(names));
                Ok(ReplyBody::Done)
            }
            RequestBody::PowerOff => {
                self.depart();
                Ok(ReplyBody::Done)
            }
            body => match requests::answer(asked, body, &mut self.cpus) {
                Some(result) => result,
                None => return,
            },
        };
        self.respond(asked, result);
    }

    /// Refuses while another client's request is unanswered.
    fn check_idle(&self) -> Result<(), Refusal> {
        let busy = match (self.cpus.alarm(), self.functions.are_busy()) {
            (None, false) => return Ok(()),
            (Some(_), _) => "a CPU is being taken offline or online",
            (None, true) => "a PCI function comes to a guest that runs, or leaves one",
        };
        let hint = "try again in a moment".into();
        Err(Refusal { code: RefusalCode::WrongState, reason: busy.into(), hint })
    }

    fn prepare(&mut self, asked: Asked, by: UpdateBy, wanted: Wanted) {
        if let Err(refusal) = self.begin_order(Some(asked), by, wanted) {
            self.respond(asked, Err(refusal));
        }
    }

    pub(super) fn begin_order(&mut self, requester: Requester, by: UpdateBy, wanted: Wanted) -> Result<(), Refusal> {
        self.profiles.stop();
        self.captures.stop();
        self.check_idle().and_then(|()| self.images.begin(requester, by, wanted))
    }

    /// Prepares the host's power-off: first its guests stop, so that none of them writes output that is never read.
    fn depart(&mut self) {
        log::info!("power off: asked for over the control channel");
        self.departure.get_or_insert(cpu::tsc() + timer::us_to_ticks(DEPARTURE_US));
        requests::stop_guests();
        wake(BOOT_CPU);
    }

    /// Returns whether the host is to power off, and does nothing else any more.
    pub fn is_departing(&self) -> bool {
        self.departure.is_some()
    }

    /// Returns whether the host is to power off now.
    pub fn is_to_power_off(&self) -> bool {
        self.departure.is_some_and(|at| GUESTS.are_done() || cpu::tsc() >= at)
    }

    /// Refuses what is no request: not more often than a line that sends our answers back may make us.
    pub(super) fn refuse(&mut self, line: LineId, reason: String) {
        let Some(left_out) = self.take_refusal(line) else { return };
        let reason = match self.grant_of(line) {
            Some(grant) => format!("a client in guest '{}': {reason}", grant.guest),
            None => reason,
        };
        let reason = if left_out > 0 { format!("{reason}; {left_out} more were dropped before it") } else { reason };
        record(EventKind::Garbage { reason: reason.clone() });
        let refusal = Refusal { code: RefusalCode::Protocol, reason, hint: String::new() };
        self.respond(Asked { line, id: NO_REQUEST }, Err(refusal));
    }
}
