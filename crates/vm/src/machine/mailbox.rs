// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts from one vCPU to another: posted without a lock by the sender, taken by the receiver
//! before its next entry.

use core::array;

use handover::state::mail_flag::{EARLY_NMI, INIT, LATE_NMI, STARTUP};
use handover::state::{self, mail_flag, more_nmi, unhalt_flag};
use zerocopy::little_endian::U64;

use super::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::devices::lapic::{Addressing, Lapic};
use crate::devices::{DeliveryMode, Destination, InterruptMessage, StateError};

/// From the bit of a first NMI to that of a second one.
const SECOND_SHIFT: u32 = 2;

/// The receiver is to be woken, whatever it waits for.
const UNHALT: u32 = 1 << 14;

/// Messages from other CPUs to one vCPU.
pub(super) struct Mailbox {
    /// A field below has changed since the receiver checked.
    has_pending: AtomicBool,
    requested: [AtomicU64; 4],
    is_level: [AtomicU64; 4],
    /// NMIs, INIT and start-up interrupt in one word, which keeps their order: an INIT posted while they were taken one
    /// by one would come after its start-up interrupt. The bits are the hand-over's, with a start-up interrupt's page
    /// below, and above them those of second NMIs and [`UNHALT`].
    start: AtomicU32,
    /// [`Addressing::to_word`] of the receiver's local APIC.
    addressing: AtomicU32,
}

/// Pending NMIs, INIT and start-up interrupt, in the order in which they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PendingEvents {
    pub(super) init: bool,
    /// NMIs before a start-up interrupt: two at most.
    pub(super) early_nmis: u8,
    /// Start in this page of the first MiB.
    pub(super) startup: Option<u8>,
    /// NMIs after it: two at most.
    pub(super) late_nmis: u8,
    /// It is woken, and so is its next halt if it has not halted.
    pub(super) unhalts: bool,
}

impl Mailbox {
    /// An empty pending-interrupt mailbox of a local APIC.
    pub(super) fn new(addressing: Addressing) -> Self {
        Self {
            has_pending: AtomicBool::new(false),
            requested: array::from_fn(|_| AtomicU64::new(0)),
            is_level: array::from_fn(|_| AtomicU64::new(0)),
            start: AtomicU32::new(0),
            addressing: AtomicU32::new(addressing.to_word()),
        }
    }

    /// Publishes the addresses that the receiver's local APIC answers to from now on.
    pub(super) fn publish(&self, addressing: Addressing) {
        self.addressing.store(addressing.to_word(), Ordering::Release);
    }

    /// Returns whether a message is for the receiver, which has the identifier `id`.
    #[inline]
    pub(super) fn matches(&self, id: u32, destination: Destination, sender_id: u32) -> bool {
        Addressing::from_word(id, self.addressing.load(Ordering::Acquire)).matches(destination, sender_id)
    }

    /// Posts a message. Returns whether the receiver has to be notified: it has not been since it last checked.
    #[inline]
    pub(super) fn post(&self, message: &InterruptMessage) -> bool {
        match message.mode {
            DeliveryMode::Fixed | DeliveryMode::LowestPriority => self.request(message.vector, message.is_level),
            DeliveryMode::Init => _ = self.start.swap(INIT, Ordering::AcqRel),
            DeliveryMode::Startup => self.add(|start| start & !0xff | STARTUP | u32::from(message.vector)),
            DeliveryMode::Nmi => self.add(with_nmi),
            DeliveryMode::Smi | DeliveryMode::ExternalInterrupt => return false,
        }
        !self.has_pending.swap(true, Ordering::AcqRel)
    }

    /// Wakes the receiver. Returns whether it has to be notified.
    pub(super) fn unhalt(&self) -> bool {
        self.start.fetch_or(UNHALT, Ordering::AcqRel);
        !self.has_pending.swap(true, Ordering::AcqRel)
    }

    #[inline]
    fn request(&self, vector: u8, is_level: bool) {
        let (word, bit) = (usize::from(vector >> 6), 1u64 << (vector & 63));
        if is_level {
            self.is_level[word].fetch_or(bit, Ordering::AcqRel);
        } else {
            self.is_level[word].fetch_and(!bit, Ordering::AcqRel);
        }
        self.requested[word].fetch_or(bit, Ordering::AcqRel);
    }

    fn add(&self, change: impl Fn(u32) -> u32) {
        let _ = self.start.fetch_update(Ordering::AcqRel, Ordering::Acquire, |start| Some(change(start)));
    }

    /// Returns whether there is anything to take.
    #[inline]
    pub(super) fn has_pending(&self) -> bool {
        self.has_pending.load(Ordering::Acquire)
    }

    /// Takes everything: vectors go into `lapic`, the rest is returned. An INIT comes before the vectors that were
    /// posted with it, and clears none that came after it: nothing shows which, and a lost interrupt is worse than a
    /// spurious one.
    pub(super) fn take(&self, lapic: &mut Lapic) -> PendingEvents {
        // First, and an exchange: a sender that finds the flag set sends no kick, since this exchange comes after its
        // own and sees what it has posted.
        self.has_pending.swap(false, Ordering::AcqRel);
        // Most words are empty, and a load costs less than an exchange.
        let events = match self.start.load(Ordering::Acquire) {
            0 => PendingEvents::default(),
            _ => PendingEvents::from_word(self.start.swap(0, Ordering::AcqRel)),
        };
        if events.init {
            lapic.reset_to_init();
        }
        for word in 0..4 {
            if self.requested[word].load(Ordering::Acquire) == 0 {
                continue;
            }
            let mut requested = self.requested[word].swap(0, Ordering::AcqRel);
            let is_level = self.is_level[word].load(Ordering::Acquire);
            while requested != 0 {
                let bit = requested.trailing_zeros();
                requested &= requested - 1;
                let message = InterruptMessage {
                    destination: Destination::Itself,
                    mode: DeliveryMode::Fixed,
                    vector: (word as u32 * 64 + bit) as u8,
                    is_level: is_level >> bit & 1 != 0,
                };
                // An APIC that is disabled by now ignores it, as it would have on its bus.
                let _ = lapic.accept(&message);
            }
        }
        events
    }
}

/// Adds an NMI. An NMI that is taken at once and one that waits for the end of its handler are distinguished; a third
/// one merges with the second.
fn with_nmi(start: u32) -> u32 {
    let first = if start & STARTUP == 0 { EARLY_NMI } else { LATE_NMI };
    start | if start & first == 0 { first } else { first << SECOND_SHIFT }
}

/// The mailbox as it is handed over. No CPU posts meanwhile.
impl Mailbox {
    /// Fills the hand-over's words; in `more`, those of its own.
    pub(super) fn save(&self, into: &mut state::Mail, more: &mut state::MoreNmis) {
        for word in 0..4 {
            let requested = self.requested[word].load(Ordering::Acquire);
            into.requested[word] = requested.into();
            into.is_level[word] = (requested & self.is_level[word].load(Ordering::Acquire)).into();
        }
        let start = self.start.load(Ordering::Acquire);
        (into.start, into.zero) = ((start & (mail_flag::ALL | 0xff)).into(), 0.into());
        let second = |first: u32, flag: u32| if start & first << SECOND_SHIFT != 0 { flag } else { 0 };
        let seconds = second(EARLY_NMI, more_nmi::EARLY) | second(LATE_NMI, more_nmi::LATE);
        more.flags = (more.flags.get() & more_nmi::PENDING | seconds).into();
        let sent = if start & UNHALT != 0 { unhalt_flag::SENT } else { 0 };
        more.unhalt = (more.unhalt.get() & unhalt_flag::TAKEN | sent).into();
    }

    /// Checks that such messages are possible.
    pub(super) fn check(&self, from: &state::Mail, more: &state::MoreNmis) -> Result<(), StateError> {
        let refuse = |field, reason| Err(StateError { field, reason });
        let start = from.start.get();
        let has_startup = start & STARTUP != 0;
        if start & !(mail_flag::ALL | 0xff) != 0 {
            return refuse("mail.start", "a flag is unknown");
        }
        if !has_startup && start & (LATE_NMI | 0xff) != 0 {
            return refuse("mail.start", "it describes a start-up interrupt, and none is pending");
        }
        let lacks = |flag: u32, first: u32| more.flags.get() & flag != 0 && start & first == 0;
        if lacks(more_nmi::EARLY, EARLY_NMI) || lacks(more_nmi::LATE, LATE_NMI) {
            return refuse("more_nmis.flags", "a second NMI without a first one");
        }
        if more.unhalt.get() & !unhalt_flag::ALL != 0 {
            return refuse("more_nmis.unhalt", "a flag is unknown");
        }
        let is_more = |(requested, is_level): (&U64, &U64)| is_level.get() & !requested.get() != 0;
        if from.requested.iter().zip(&from.is_level).any(is_more) {
            return refuse("mail.is_level", "a vector is not requested");
        }
        Ok(())
    }

    /// Holds these messages from now on, and no other.
    pub(super) fn restore(&self, from: &state::Mail, more: &state::MoreNmis) {
        for word in 0..4 {
            self.requested[word].store(from.requested[word].get(), Ordering::Release);
            self.is_level[word].store(from.is_level[word].get(), Ordering::Release);
        }
        let second = |flag: u32, first: u32| if more.flags.get() & flag != 0 { first << SECOND_SHIFT } else { 0 };
        let seconds = second(more_nmi::EARLY, EARLY_NMI) | second(more_nmi::LATE, LATE_NMI);
        let unhalt = if more.unhalt.get() & unhalt_flag::SENT != 0 { UNHALT } else { 0 };
        let start = from.start.get() | seconds | unhalt;
        self.start.store(start, Ordering::Release);
        let has_pending = start != 0 || from.requested.iter().any(|word| word.get() != 0);
        self.has_pending.store(has_pending, Ordering::Release);
    }
}

impl PendingEvents {
    fn from_word(start: u32) -> Self {
        let nmis = |first: u32| [first, first << SECOND_SHIFT].map(|bit| u8::from(start & bit != 0)).iter().sum();
        Self {
            init: start & INIT != 0,
            early_nmis: nmis(EARLY_NMI),
            startup: (start & STARTUP != 0).then_some(start as u8),
            late_nmis: nmis(LATE_NMI),
            unhalts: start & UNHALT != 0,
        }
    }
}
