// SPDX-License-Identifier: MIT OR Apache-2.0
//! Non-maskable interrupts of one virtual processor: one at a time, until the handler's IRET (AMD APM vol. 2, sections
//! 8.2.3 and 8.9.4; Intel SDM vol. 3, section 7.7.1).
//!
//! ```text
//!          injected                IRET exits                another RIP is seen
//!   Open ───────────► Handler ─────────────────► Returning ───────────────────────► Open
//! ```
//!
//! One that comes meanwhile is kept; a second one is the same. A processor that keeps no count of its own lets the host
//! intercept IRET, which exits *before* it has returned: an NMI then would overwrite the very frame that it returns by.
//! So the gate opens when the processor is next seen elsewhere, and while one waits for that, the processor is looked
//! at soon. (An IRET that faults has opened the gate too: its handler's RIP is another one.)

use handover::state::{Events, NmiGate, event_state};

use crate::devices::StateError;

/// How long one that waits for a moment without an exit of its own waits at most: some 50 µs at today's rates.
const LOOK_TICKS: u64 = 1 << 17;

/// Whether an NMI may come.
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

/// One virtual processor's NMIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nmi {
    is_pending: bool,
    gate: Gate,
    /// When to look again, on the host's time stamp counter.
    look_at: Option<u64>,
}

impl Nmi {
    /// None pending, none in its handler.
    pub(super) const fn new() -> Self {
        Self { is_pending: false, gate: Gate::Open, look_at: None }
    }

    /// Fills the hand-over's words; the flags' other bits are cleared.
    pub(super) fn save(&self, into: &mut Events) {
        let pending = if self.is_pending { event_state::NMI_PENDING } else { 0 };
        let looks = if self.look_at.is_some() { event_state::LOOKS } else { 0 };
        let (gate, rip) = match self.gate {
            Gate::Open => (NmiGate::Open, 0),
            Gate::Handler => (NmiGate::Handler, 0),
            Gate::Returning { rip } => (NmiGate::Returning, rip),
        };
        into.flags = (pending | looks).into();
        into.look_at = self.look_at.unwrap_or(0).into();
        (into.nmi_gate, into.nmi_return_rip) = ((gate as u32).into(), rip.into());
    }

    /// From a saved state.
    pub(super) fn restored(from: &Events) -> Result<Self, StateError> {
        let flags = from.flags.get();
        let gate = match NmiGate::from_number(from.nmi_gate.get()) {
            Some(NmiGate::Open) => Gate::Open,
            Some(NmiGate::Handler) => Gate::Handler,
            Some(NmiGate::Returning) => Gate::Returning { rip: from.nmi_return_rip.get() },
            None => return Err(StateError { field: "events.nmi_gate", reason: "it is unknown" }),
        };
        let look_at = (flags & event_state::LOOKS != 0).then_some(from.look_at.get());
        Ok(Self { is_pending: flags & event_state::NMI_PENDING != 0, gate, look_at })
    }

    /// One has come.
    pub(super) fn request(&mut self) {
        self.is_pending = true;
    }

    /// Whether one waits, for whatever reason.
    #[inline]
    pub(super) const fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// Whether one would be taken by the processor, which is seen at `rip`.
    pub(super) fn is_open(&mut self, rip: u64) -> bool {
        if let Gate::Returning { rip: of_return } = self.gate
            && of_return != rip
        {
            self.gate = Gate::Open;
        }
        self.gate == Gate::Open
    }

    /// Whether the handler runs and has not come to its IRET.
    #[inline]
    pub(super) fn is_in_handler(&self) -> bool {
        self.gate == Gate::Handler
    }

    /// The pending one is injected.
    pub(super) fn take(&mut self) {
        *self = Self { is_pending: false, gate: Gate::Handler, look_at: None };
    }

    /// The processor is about to execute the IRET at `rip`.
    pub(super) fn returns(&mut self, rip: u64) {
        self.gate = Gate::Returning { rip };
    }

    /// Nothing may ever exit by itself: the processor is to be looked at soon.
    pub(super) fn look_soon(&mut self, now: u64) {
        self.look_at = Some(now.saturating_add(LOOK_TICKS));
    }

    /// The processor is being looked at.
    pub(super) fn looked(&mut self) {
        self.look_at = None;
    }

    /// When to look again, on the host's time stamp counter.
    #[inline]
    pub(super) const fn look_at(&self) -> Option<u64> {
        self.look_at
    }
}
