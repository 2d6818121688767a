// SPDX-License-Identifier: MIT OR Apache-2.0
//! Non-maskable interrupts of one vCPU: one at a time, until the handler's IRET (AMD APM vol. 2, sections
//! 8.2.3 and 8.9.4; Intel SDM vol. 3, section 7.7.1).
//!
//! ```text
//!          injected                IRET exits                 the step ends
//!   Open ───────────► Handler ─────────────────► Returning ───────────────────────► Open
//!                        ▲                           │
//!                        └───────────────────────────┘ an event comes before the IRET
//! ```
//!
//! An NMI that comes meanwhile is kept; further ones merge with it. Without an NMI in its handler two are kept: the
//! first is taken, the other waits for its IRET. The host intercepts IRET, which exits *before* it has returned: an NMI
//! then would overwrite the very frame that it returns by. So the IRET is stepped over ([`super::step`]), and the NMI
//! comes right behind it. Intel's CPUs report the end of the handler behind its IRET (virtual NMIs): there the gate
//! opens from `Handler` at once. An instruction in a shadow of STI or of a load of SS is stepped over likewise. Where
//! no step is possible, the CPU is polled soon.

use handover::state::{Events, MoreNmis, NmiGate, event_state, more_nmi};

use crate::devices::StateError;

/// Longest wait in ticks of an NMI for a moment that has no exit of its own: some 5 µs at today's rates.
const POLL_TICKS: u64 = 1 << 14;

/// Readiness for an NMI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Open,
    /// The handler runs; its IRET exits.
    Handler,
    /// The IRET at this address is being executed.
    Returning {
        rip: u64,
    },
}

/// One vCPU's NMIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nmi {
    /// Number of NMIs that wait.
    pending: u8,
    gate: Gate,
    /// Time of the next poll, on the host's time stamp counter.
    next_poll: Option<u64>,
}

impl Nmi {
    /// No NMI is pending, none in its handler.
    pub(super) const fn new() -> Self {
        Self { pending: 0, gate: Gate::Open, next_poll: None }
    }

    /// Fills the hand-over's words; the flags' other bits are cleared.
    pub(super) fn save(&self, into: &mut Events, more: &mut MoreNmis) {
        let pending = if self.pending > 0 { event_state::NMI_PENDING } else { 0 };
        let polls = if self.next_poll.is_some() { event_state::LOOKS } else { 0 };
        let (gate, rip) = match self.gate {
            Gate::Open => (NmiGate::Open, 0),
            Gate::Handler => (NmiGate::Handler, 0),
            Gate::Returning { rip } => (NmiGate::Returning, rip),
        };
        into.flags = (pending | polls).into();
        into.look_at = self.next_poll.unwrap_or(0).into();
        (into.nmi_gate, into.nmi_return_rip) = ((gate as u32).into(), rip.into());
        more.flags = if self.pending > 1 { more_nmi::PENDING } else { 0 }.into();
    }

    /// Restores the NMIs from a saved state.
    pub(super) fn restored(from: &Events, more: &MoreNmis) -> Result<Self, StateError> {
        let flags = from.flags.get();
        let gate = match NmiGate::from_number(from.nmi_gate.get()) {
            Some(NmiGate::Open) => Gate::Open,
            Some(NmiGate::Handler) => Gate::Handler,
            Some(NmiGate::Returning) => Gate::Returning { rip: from.nmi_return_rip.get() },
            None => return Err(StateError { field: "events.nmi_gate", reason: "it is unknown" }),
        };
        let next_poll = (flags & event_state::LOOKS != 0).then_some(from.look_at.get());
        let (is_pending, is_more) = (flags & event_state::NMI_PENDING != 0, more.flags.get() & more_nmi::PENDING != 0);
        if more.flags.get() & !more_nmi::ALL != 0 || is_more && (!is_pending || gate != Gate::Open) {
            return Err(StateError { field: "more_nmis.flags", reason: "more NMIs wait than can" });
        }
        Ok(Self { pending: u8::from(is_pending) + u8::from(is_more), gate, next_poll })
    }

    /// Requests an NMI.
    pub(super) fn request(&mut self) {
        let most = if self.gate == Gate::Open { 2 } else { 1 };
        self.pending = (self.pending + 1).min(most);
    }

    /// Returns whether an NMI waits, for whatever reason.
    #[inline]
    pub(super) const fn is_pending(&self) -> bool {
        self.pending > 0
    }

    /// Returns how many NMIs wait.
    #[cfg(test)]
    pub(super) const fn pending(&self) -> u8 {
        self.pending
    }

    /// Returns whether an entry has to handle NMIs.
    #[inline]
    pub(super) const fn wants_care(&self) -> bool {
        self.pending > 0 || self.is_returning()
    }

    /// Returns whether the CPU would take an NMI at `rip`.
    pub(super) fn is_open(&mut self, rip: u64) -> bool {
        if let Gate::Returning { rip: of_return } = self.gate
            && of_return != rip
        {
            self.gate = Gate::Open;
        }
        self.gate == Gate::Open
    }

    /// Returns whether the handler runs and has not come to its IRET.
    #[inline]
    pub(super) fn is_in_handler(&self) -> bool {
        self.gate == Gate::Handler
    }

    /// Returns whether the handler has come to its IRET, which has not been executed.
    #[inline]
    pub(super) const fn is_returning(&self) -> bool {
        matches!(self.gate, Gate::Returning { .. })
    }

    /// Takes the pending NMI, which is injected.
    pub(super) fn take(&mut self) {
        *self = Self { pending: self.pending.saturating_sub(1), gate: Gate::Handler, next_poll: None };
    }

    /// Requests the injected NMI again, which has not been delivered.
    pub(super) fn requeue(&mut self) {
        *self = Self { gate: Gate::Open, next_poll: None, ..*self };
        self.request();
    }

    /// Notes that the CPU is about to execute the IRET at `rip`.
    pub(super) fn note_return(&mut self, rip: u64) {
        self.gate = Gate::Returning { rip };
    }

    /// Notes that an event comes before the IRET: the handler runs on, and another IRET may be its first.
    pub(super) fn note_blocked(&mut self) {
        self.gate = Gate::Handler;
    }

    /// Notes the end of the handler, which the CPU has reported: its IRET has been executed.
    pub(super) fn note_handled(&mut self) {
        self.gate = Gate::Open;
    }

    /// Notes that the IRET has been executed.
    pub(super) fn returned(&mut self) {
        if self.is_returning() {
            self.gate = Gate::Open;
        }
    }

    /// Sets a poll soon: the guest may never exit by itself.
    pub(super) fn poll_soon(&mut self, now: u64) {
        self.next_poll = Some(now.saturating_add(POLL_TICKS));
    }

    /// Notes that the CPU is being polled.
    pub(super) fn note_polled(&mut self) {
        self.next_poll = None;
    }

    /// Returns the time of the next poll, on the host's time stamp counter.
    #[inline]
    pub(super) const fn next_poll(&self) -> Option<u64> {
        self.next_poll
    }
}
