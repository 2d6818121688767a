// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control channel: requests come in over COM2, answers, log, events and consoles go out.
//!
//! One CPU serves it, between two entries of its guest. All input is untrusted: a frame that is no message is refused
//! with the reason and discarded, and the channel goes on with the next one.

mod access;
mod answering;
mod captures;
mod configuring;
mod confirming;
mod consoles;
mod counts;
pub mod cpu_loop;
mod cpus;
mod dump;
mod functions;
mod guest_lines;
mod images;
mod info;
mod keys;
mod last_words;

mod named;
mod outgoing;
mod polling;
mod profiles;
mod requests;
mod saving;
mod serving;
mod timeline;
mod updates;

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use ::iommu::Report;
use ::update::confirm::Confirmation;
use session::Guard;
use spin::{Mutex, Once};
use uart::{FifoDepth, Found, Interrupts, Peer, Policy, Rate};
use wire::{Decoder, EventKind, Quota, ReplyBody, UpdateReport};

use self::captures::Captures;
use self::counts::Counts;
use self::cpus::CpuOrders;
use self::functions::FunctionOrders;
use self::guest_lines::{Asked, GuestLine, LineId};
use self::images::{ImageOrders, Outcome, Requester};
use self::outgoing::Outgoing;
use self::polling::Polling;
use self::profiles::Profiles;
use self::updates::UpdateOrders;
use crate::arch::percpu::{BOOT_CPU, wake};
use crate::arch::serial::{self, Uart};
use crate::arch::timer;
use crate::guests::assigned::{guest_resets, lines, stopping, under_way};
use crate::guests::events::record;
use crate::guests::sockets::streams;
use crate::guests::{leases, pci};
use crate::kernel::inherited::{self, ChannelState, ControlStreams};
use crate::kernel::{iommu, ledger, outcome};
use crate::lifecycle::end;
use crate::lifecycle::restart::{Restart, successor};

/// Bytes read at once; more waits for the next turn, so that a flood cannot keep the CPU.
const BATCH_BYTES: usize = 512;

/// The channel as its CPU holds it.
pub struct Control {
    uart: Uart,
    decoder: Box<Decoder>,
    outgoing: &'static Mutex<Outgoing>,
    cpus: CpuOrders,
    functions: FunctionOrders,
    images: ImageOrders,
    updates: UpdateOrders,
    profiles: Profiles,
    captures: Captures,
    counts: Counts,
    polling: Polling,
    refusals: Quota,
    lines: Vec<GuestLine>,
    /// The time at which to check for guests' output although no CPU has reported any.
    check_consoles: Option<u64>,
    guard: Guard,
    confirmation: Confirmation,
    has_started_guests: bool,
    /// The request for the restart that led to this image, still to be answered.
    restart_request: Option<Asked>,
    /// The host is to power off: at this time, whether its guests have ended by then or not.
    departure: Option<u64>,
}

/// The output, for the end of the host as well: it has begun wherever the control channel was.
static OUTGOING: Once<Mutex<Outgoing>> = Once::new();
/// The UART that was found at COM2, for the same.
static FOUND: Once<Found> = Once::new();

/// Sends guests' output and events, once no CPU serves the channel any more. Waits for no lock for ever and allocates
/// nothing: the CPU that served it may have stopped amid either.
pub fn send_last_words() {
    const PATIENCE_US: u64 = 250_000;
    let (Some(found), Some(outgoing)) = (FOUND.get(), OUTGOING.get()) else { return };
    if let Some(mut outgoing) = timer::try_for(PATIENCE_US, || outgoing.try_lock()) {
        last_words::drain(&mut outgoing, &mut Uart::adopt(serial::com2_ports(), *found, Policy::Fifo));
    }
}

impl Control {
    /// Opens the channel; the guests that start with the host are ordered to.
    pub fn start() -> Box<Self> {
        let mut uart = serial::com2();
        match uart.start(Rate::FASTEST, Policy::Fifo, Peer::Talks) {
            Ok(_) => uart.watch(Interrupts::RECEIVED),
            Err(absent) => log::warn!("COM2: {absent}; there is no control channel"),
        }
        let has_started_guests = requests::start_guests();
        if !has_started_guests {
            ledger::background::open();
        }
        pci::let_the_idle_probe();
        record(EventKind::HostReady);
        successor::record_succession();
        outcome::note_ready();
        let channel_state = inherited::known().map(|known| known.channel_state).unwrap_or_default();
        Box::new(Self::with(uart, has_started_guests, &channel_state))
    }

    /// Goes on with the channel where the image before left it; its guests run.
    pub fn take_over(channel_state: &ChannelState, report: UpdateReport) -> Self {
        let mut uart = take_over_line(channel_state);
        uart.watch(Interrupts::RECEIVED);
        let mut this = Self::with(uart, true, channel_state);
        this.await_confirmation();
        if let Some(asked) = this.restart_request.take() {
            this.respond(asked, Ok(ReplyBody::Updated(report)));
        }
        this
    }

    fn with(uart: Uart, has_started_guests: bool, channel_state: &ChannelState) -> Self {
        if let Some(found) = uart.found() {
            FOUND.call_once(|| found);
        }
        end::set_last_words(send_last_words);
        let mut lines = guest_lines::all();
        let asked_by_guest = (0..)
            .zip(&mut lines)
            .find_map(|(number, line)| Some(Asked { line: LineId::Guest(number), id: line.take_request()? }));
        let asked = channel_state.request.map(|id| Asked { line: LineId::Com2, id }).or(asked_by_guest);
        let mut this = Self {
            uart,
            decoder: Box::new(Decoder::new()),
            outgoing: OUTGOING.call_once(|| Mutex::new(Outgoing::resume(channel_state))),
            cpus: CpuOrders::default(),
            functions: FunctionOrders::default(),
            images: ImageOrders::default(),
            updates: UpdateOrders::default(),
            profiles: Profiles::default(),
            captures: Captures::default(),
            counts: Counts::default(),
            polling: Polling::default(),
            refusals: Quota::new(),
            lines,
            check_consoles: None,
            guard: keys::guard(),
            confirmation: Confirmation::default(),
            has_started_guests,
            restart_request: asked,
            departure: None,
        };
        this.note_followers();
        this
    }

    /// Returns whether any guest was ever started: before that, no guest running does not mean that all have ended.
    pub fn has_started_guests(&self) -> bool {
        self.has_started_guests
    }

    /// Answers what has come in and sends what was subscribed to; goes on with an update. Afterwards a blackout may be
    /// [open](crate::lifecycle::update::is_blackout_open), for this CPU too. Returns a restart that is ready, and its
    /// request: the caller goes there by [`Self::hand_over`] once nothing of a guest is in this CPU.
    pub fn serve(&mut self) -> Option<(Requester, Box<Restart>)> {
        self.answer_restart();
        if self.updates.is_idle() {
            self.functions.take_ejected();
        }
        self.functions.poll().into_iter().for_each(|(asked, result)| self.respond(asked, result));
        let mut bytes = [0; BATCH_BYTES];
        let count = self.receive(&mut bytes);
        self.polling.note_served(count, self.images.is_receiving());
        let mut rest = &bytes[..count];
        while let Some(result) = self.decoder.push_to_host(&mut rest) {
            self.take_frame(LineId::Com2, result);
        }
        if count == BATCH_BYTES {
            wake(BOOT_CPU);
        }
        self.receive_from_guests();
        self.expire_sessions();
        self.profiles.poll();
        self.captures.poll();
        self.counts.poll();
        leases::poll();
        for storm in iommu::polling::poll(record_refused) {
            record(stopping::stop(storm));
        }
        for place in lines::take_unserved() {
            record(stopping::stop_unserved(place));
        }
        // A reset that is requested when an update is ready begins in the next image.
        for (place, result) in guest_resets::step(!self.updates.is_ready()) {
            let answer = self.functions.note_reset(place, result);
            answer.into_iter().for_each(|(asked, result)| self.respond(asked, result));
        }
        self.cpus.poll().into_iter().for_each(|(asked, result)| self.respond(asked, result));
        self.updates.poll().into_iter().for_each(|(requester, result)| self.conclude(requester, result));
        self.return_if_due();
        let mut ready = None;
        match self.images.poll() {
            Some(Outcome::Ready(requester, restart)) => ready = Some((requester, restart)),
            Some(Outcome::Checked(requester, is_dry_run, image)) if !self.is_departing() => {
                self.begin_update(requester, is_dry_run, *image);
            }
            Some(Outcome::Refused(requester, refusal)) => self.conclude(requester, Err(refusal)),
            Some(Outcome::Checked(..)) | None => {}
        }
        self.send();
        let is_quiet = self.hold_guests() && self.outgoing.lock().is_quiet() && self.decoder.is_between_frames();
        // Last: meanwhile disks get no answers.
        let is_quiet = streams::hold(is_quiet && self.updates.is_ready()) && is_quiet;
        if ready.is_none() && !self.is_departing() && self.updates.may_go(is_quiet) && !under_way::are_under_way() {
            self.open_blackout();
        }
        ready
    }

    /// Returns the state of COM2's session and of those of clients in guests, as the next image continues them.
    pub fn channel_state(&self) -> (ChannelState, ControlStreams) {
        let line = self.uart.found().map(|found| (found.depth.bytes() as u8, found.is_paced));
        let request = |line| self.updates.request().filter(|asked| asked.line == line).map(|asked| asked.id);
        let lines = (0..).zip(&self.lines);
        let streams = lines.filter_map(|(number, line)| line.save(request(LineId::Guest(number)))).collect();
        (ChannelState { line, ..self.outgoing.lock().channel_state(request(LineId::Com2)) }, streams)
    }

    /// Returns when to serve it although nothing has come: something is waited for.
    pub fn alarm(&self) -> Option<u64> {
        let orders = [self.cpus.alarm(), self.functions.alarm(), self.images.alarm(), self.updates.alarm()];
        let checks = [
            self.profiles.alarm(),
            self.captures.alarm(),
            self.counts.alarm(),
            self.check_consoles,
            self.departure,
            self.confirmation.alarm(),
            leases::alarm(),
            under_way::alarm(),
        ];
        let polls = self.uart.found().map(|_| self.polling.alarm()).into_iter().chain(iommu::polling::next_poll());
        let lines = self.lines.iter().filter_map(GuestLine::alarm);
        orders.into_iter().chain(checks).flatten().chain(polls).chain(lines).min()
    }

    /// Sends all that is left: the host is about to end.
    pub fn finish(&mut self) {
        last_words::drain(&mut self.outgoing.lock(), &mut self.uart);
    }
}

/// The line as the image before had it: what has come meanwhile waits there. It is searched for again if that is not
/// reported.
fn take_over_line(channel_state: &ChannelState) -> Uart {
    if let Some((depth, is_paced)) = channel_state.line {
        let depth = if depth > 1 { FifoDepth::Bytes(depth) } else { FifoDepth::None };
        let found = Found { depth, is_paced, rate: Rate::FASTEST };
        return Uart::adopt(serial::com2_ports(), found, Policy::Fifo);
    }
    let mut uart = serial::com2();
    if let Err(absent) = uart.start(Rate::FASTEST, Policy::Fifo, Peer::Talks) {
        log::warn!("COM2: {absent}; there is no control channel");
    }
    uart
}

/// An IOMMU has refused accesses of a function.
fn record_refused(report: Report) {
    let Report { first, refused } = report;
    let (segment, bus) = (first.source.segment, first.source.bus);
    let place = (segment, bus, first.source.device(), first.source.function());
    record(EventKind::AccessRefused { place, refused, reason: first.to_string() });
}
